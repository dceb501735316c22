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

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, time::Duration};

    use http::{HeaderValue, StatusCode};

    use super::*;
    use crate::{Selection, WindowLimit};

    #[tokio::test]
    async fn refusals_are_answered_and_the_rest_goes_through() {
        let selection = Selection::from_variables(|name| match name {
            "TIDEGATE_CLIENT_FAMILIES" => Some("proxy".into()),
            "TIDEGATE_CLIENT_BACKEND" => Some("off".into()),
            _ => None,
        });
        // Without a store this instance counts by itself; so long that it doesn't end amid the test.
        let window = WindowLimit::fixed(2, Duration::from_secs(100 * 86_400));
        let limiter = Arc::new(RouteLimiter::new(&selection, "api", [window]).unwrap());
        let layer = RouteLimitLayer::new(limiter, |head| {
            head.headers.get("peer").and_then(|peer| peer.to_str().ok()).map_or(Caller::unknown(), Caller::at)
        });
        let echo = tower::service_fn(|request: Request<String>| async {
            Ok::<_, Infallible>(Response::new(request.into_body()))
        });
        let mut service = layer.layer(echo);
        for (peer, expected) in
            [("192.0.2.7", 200), ("192.0.2.7", 200), ("192.0.2.7", 429), ("192.0.2.8", 200)]
        {
            let request = Request::get("/").header("peer", peer).body("hello".to_owned()).unwrap();
            std::future::poll_fn(|context| Service::<Request<String>>::poll_ready(&mut service, context))
                .await
                .unwrap();
            let response = service.call(request).await.unwrap();
            assert_eq!(response.status(), expected, "{peer}");
            if response.status() == StatusCode::OK {
                assert_eq!(response.body(), "hello");
                continue;
            }
            let headers = response.headers();
            assert_eq!(headers["ratelimit-policy"], HeaderValue::from_static("\"100d\";q=2;w=8640000"));
            assert!(headers["ratelimit"].to_str().unwrap().starts_with("\"100d\";r=0;t="), "{headers:?}");
            assert!(headers.contains_key("retry-after") && response.body().contains("rate_limited"));
        }
    }
}
