//! How a handler reaches the leases of its request.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;

use crate::{
    http::{HttpAdmission, Lease, Scope},
    refusal::RateLimited,
};

/// The leases of one request, which end when the last part of it does: its handler, the body of its response,
/// its tunnel.
#[derive(Debug)]
pub(crate) struct Held {
    lease: Mutex<Lease>,
    body_too_large: AtomicBool,
}

/// Stage two of a request that the layer has admitted. The layer puts it into the request's extensions; under
/// axum it is an extractor.
///
/// It doesn't hold the leases: once the request is over nothing more is admitted with it.
#[derive(Debug, Clone)]
pub struct StageTwo(Weak<Held>);

/// Keeps the leases of a request whose connection was upgraded. Keep it as long as the tunnel.
#[derive(Debug)]
#[must_use = "dropping it ends the tunnel's leases"]
pub struct Tunnel(#[expect(dead_code, reason = "held, not read")] Arc<Held>);

impl Held {
    pub(crate) fn new(lease: Lease) -> Arc<Self> {
        Arc::new(Self { lease: Mutex::new(lease), body_too_large: AtomicBool::new(false) })
    }

    pub(crate) fn admission(&self) -> HttpAdmission {
        self.lease.lock().admission().clone()
    }

    pub(crate) fn was_body_too_large(&self) -> bool {
        self.body_too_large.load(Ordering::Relaxed)
    }
}

impl StageTwo {
    pub(crate) fn of(held: &Arc<Held>) -> Self {
        Self(Arc::downgrade(held))
    }

    /// Charges the budgets of all that `scope` names and holds a lease of each, until the request is over. See
    /// [`Lease::stage_two`].
    ///
    /// # Errors
    /// One of them has no room, or the request is over. Nothing was charged.
    pub fn admit(&self, scope: &Scope<'_>) -> Result<(), RateLimited> {
        let held = self.0.upgrade().ok_or(RateLimited { retry_after_seconds: 1 })?;
        held.lease.lock().stage_two(scope)
    }

    /// Keeps the leases past the response, for a connection that is upgraded. `None` if the request is over.
    #[must_use]
    pub fn tunnel(&self) -> Option<Tunnel> {
        self.0.upgrade().map(Tunnel)
    }

    pub(crate) fn body_is_too_large(&self) {
        if let Some(held) = self.0.upgrade() {
            held.body_too_large.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(feature = "axum")]
mod extractor {
    use axum::{
        extract::FromRequestParts,
        response::{IntoResponse, Response},
    };
    use http::{StatusCode, request::Parts};
    use thiserror::Error;

    use super::StageTwo;

    /// 503: the handler wants admission, and no [`crate::AdmissionLayer`] lies above it.
    #[derive(Debug, Clone, Copy, Error)]
    #[error("no admission layer above this handler")]
    pub struct NoAdmission;

    impl<S: Sync> FromRequestParts<S> for StageTwo {
        type Rejection = NoAdmission;

        async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, NoAdmission> {
            parts.extensions.get().cloned().ok_or(NoAdmission)
        }
    }

    impl IntoResponse for NoAdmission {
        fn into_response(self) -> Response {
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
    }
}
#[cfg(feature = "axum")]
pub use extractor::NoAdmission;
