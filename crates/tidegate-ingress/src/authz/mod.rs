//! Forward-auth: other proxies ask the defense about each of their requests.
//!
//! `/authz` is for proxies that tell of a request in headers (nginx, Traefik, Caddy), `/authz/…` for Envoy's
//! HTTP service, which appends the path, and Envoy's gRPC service has a path of its own. All of them come to
//! the same [`Defense::judge`].

use std::{error::Error, fmt, net::IpAddr, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::body::Body;

use crate::defense::{AppId, Caller, Defense, Refusal};

mod forward;
mod grpc;
pub mod messages;
mod serve;

pub use serve::{ListenerOptions, serve};

/// Answers proxies; clones are handles of the same one.
#[derive(Clone)]
pub struct Authz(Arc<Inner>);

struct Inner {
    defense: Defense,
    app_of_host: Box<AppOfHost>,
}

type AppOfHost = dyn Fn(&str) -> Option<AppId> + Send + Sync;

/// The body of an answer.
pub type AnswerBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

impl Authz {
    /// Asks `defense`. `app_of_host` tells the app that has a host, where the proxy doesn't say which app it
    /// is; the host may have a port.
    #[must_use]
    pub fn new(
        defense: Defense,
        app_of_host: impl Fn(&str) -> Option<AppId> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner { defense, app_of_host: Box::new(app_of_host) }))
    }

    /// Answers a proxy at `peer`. What it says about addresses counts if it is one of the trusted ones.
    pub async fn answer<B>(&self, peer: IpAddr, request: Request<B>) -> Response<AnswerBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    {
        match request.uri().path() {
            grpc::PATH => grpc::answer(self, peer, request).await,
            path if path == forward::PATH || path.starts_with(forward::PATH_BEFORE) => {
                forward::answer(self, peer, &request.into_parts().0).map(whole)
            }
            _ => {
                let mut response = Response::new(whole(Bytes::from_static(b"Not found.\n")));
                *response.status_mut() = StatusCode::NOT_FOUND;
                response
            }
        }
    }

    /// Asks about a request to the app that the proxy names, or to the one that has the host. What is for no app passes
    /// the firewall all the same.
    fn judge(
        &self,
        named: Option<&str>,
        host: &str,
        caller: &Caller<'_>,
        method: &str,
        path: &str,
    ) -> Option<Refusal> {
        let app = match named {
            Some(name) => self.0.defense.app(name),
            None => (self.0.app_of_host)(host),
        };
        if let Some(app) = app {
            return self.0.defense.judge(&app, caller, method, path).refusal;
        }
        self.0.defense.count_unknown_app();
        self.0.defense.firewall(caller)
    }
}

impl fmt::Debug for Authz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authz").finish_non_exhaustive()
    }
}

fn whole(bytes: Bytes) -> AnswerBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}
