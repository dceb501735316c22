//! [`RouteLimiter`] in front of any tower service.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, request::Parts};
use tower::{Layer, Service};

use crate::{Caller, RouteLimiter, Verdict};

/// Asks a [`RouteLimiter`] before each request, and answers refusals: status, `Retry-After`, `RateLimit`,
/// `RateLimit-Policy`, and a JSON body.
///
/// `who` finds the caller in the head of a request: from the connection, or from what a trusted proxy says;
/// never from what the request claims about itself.
#[derive(Clone)]
pub struct RouteLimitLayer<F> {
    limiter: Arc<RouteLimiter>,
    who: F,
}

/// What [`RouteLimitLayer`] makes of a service.
#[derive(Clone)]
pub struct RouteLimited<S, F> {
    service: S,
    limiter: Arc<RouteLimiter>,
    who: F,
}

impl<F> RouteLimitLayer<F>
where
    F: for<'a> Fn(&'a Parts) -> Caller<'a>,
{
    /// Limits whoever `who` says.
    pub const fn new(limiter: Arc<RouteLimiter>, who: F) -> Self {
        Self { limiter, who }
    }
}

impl<S, F: Clone> Layer<S> for RouteLimitLayer<F> {
    type Service = RouteLimited<S, F>;

    fn layer(&self, service: S) -> Self::Service {
        RouteLimited { service, limiter: Arc::clone(&self.limiter), who: self.who.clone() }
    }
}

impl<S, F, B, R> Service<Request<B>> for RouteLimited<S, F>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    F: for<'a> Fn(&'a Parts) -> Caller<'a> + Clone + Send + Sync + 'static,
    B: Send + 'static,
    R: From<String>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The service that said it was ready is the one that is called.
        let ready = self.service.clone();
        let mut service = std::mem::replace(&mut self.service, ready);
        let (limiter, who) = (Arc::clone(&self.limiter), self.who.clone());
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let verdict = limiter.check(who(&head)).await;
            match verdict {
                Verdict::Allowed(()) => service.call(Request::from_parts(head, body)).await,
                Verdict::Refused(refusal) => Ok(refusal.to_response()),
            }
        })
    }
}

impl<F> fmt::Debug for RouteLimitLayer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteLimitLayer").field("limiter", &self.limiter).finish_non_exhaustive()
    }
}

impl<S, F> fmt::Debug for RouteLimited<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteLimited").field("limiter", &self.limiter).finish_non_exhaustive()
    }
}
