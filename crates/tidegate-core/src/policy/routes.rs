//! Routes: which requests fall under a limit of their own.

use alloc::{string::String, vec::Vec};

use super::DocumentRoute;
use crate::{defense::Limit, path::Normal};

/// A route that has a limit.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    prefix: Vec<u8>,
    methods: Option<Vec<String>>,
    pub(crate) limit: Limit,
}

impl Route {
    /// None where its rate is 0: it limits nothing.
    pub(super) fn compile(route: &DocumentRoute) -> Option<Self> {
        let limit = Limit::of_route(route)?;
        Some(Self { prefix: route.path_prefix.as_bytes().to_vec(), methods: route.methods.clone(), limit })
    }

    pub(crate) fn matches(&self, method: &str, path: Normal<'_>) -> bool {
        let method_fits = match &self.methods {
            Some(methods) => methods.iter().any(|listed| listed.eq_ignore_ascii_case(counted_as(method))),
            // A preflight asks before the call that is limited; the client's own limit counts it.
            None => !method.eq_ignore_ascii_case("OPTIONS"),
        };
        method_fits && path.begins_with(&self.prefix)
    }
}

/// HEAD is GET without the body: the same work.
fn counted_as(method: &str) -> &str {
    if method.eq_ignore_ascii_case("HEAD") { "GET" } else { method }
}
