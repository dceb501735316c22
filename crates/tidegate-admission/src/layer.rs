//! Stage one in front of a `tower` service.

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{
    Extensions, HeaderValue, Request, Response, StatusCode, Version,
    header::{CONNECTION, CONTENT_LENGTH},
    request::Parts,
};
use http_body::Body;
use pin_project_lite::pin_project;
use tower::{BoxError, Layer, Service};

use crate::{
    body::{AdmittedBody, CappedBody},
    http::HttpAdmission,
    operation::Operation,
    refusal::RateLimited,
    stage_two::{Held, StageTwo},
};

/// Caps bodies and admits requests before the service below sees them. `classify` names the operation by the
/// request's head.
///
/// The source is the TCP peer, or the client that trusted proxies name. Who the peer is must be said: by
/// [`AdmissionLayer::with_peer`], by a [`Peer`] in the request's extensions, or by axum's `ConnectInfo`. Where
/// nothing says it, the answer is 503: strangers must not share a budget, nor go without one.
#[derive(Debug, Clone)]
pub struct AdmissionLayer<C> {
    admission: HttpAdmission,
    classify: C,
    peer: Option<IpAddr>,
}

/// The service that [`AdmissionLayer`] makes.
#[derive(Debug, Clone)]
pub struct AdmissionService<S, C> {
    inner: S,
    layer: AdmissionLayer<C>,
}

/// Whom the connection is from, as an extension of its requests.
#[derive(Clone, Copy)]
pub struct Peer(pub IpAddr);

impl<C> AdmissionLayer<C>
where
    C: Fn(&Parts) -> Operation,
{
    /// A layer over these budgets. Layers over clones of `admission` share them.
    #[must_use]
    pub const fn new(admission: HttpAdmission, classify: C) -> Self {
        Self { admission, classify, peer: None }
    }

    /// For all requests of one connection; or for a listener without addresses, such as a Unix socket, whose
    /// peer is a trusted proxy by this name.
    #[must_use]
    pub fn with_peer(mut self, peer: IpAddr) -> Self {
        self.peer = Some(peer);
        self
    }

    /// Admits the request's head.
    fn admit<B: Body>(&self, parts: &mut Parts, body: &B) -> Result<Arc<Held>, Refused> {
        if body.size_hint().lower() > self.admission.body_bytes_max() || self.announces_too_much(parts) {
            return Err(Refused::BodyTooLarge);
        }
        let peer = self.peer.or_else(|| peer_in(&parts.extensions)).ok_or(Refused::PeerUnknown)?;
        let source = self.admission.source(peer, &parts.headers);
        let lease = self.admission.stage_one(source, (self.classify)(parts)).map_err(Refused::RateLimited)?;
        let held = Held::new(lease);
        parts.extensions.insert(StageTwo::of(&held));
        Ok(held)
    }

    /// Of several lengths the server below makes an error; whichever is too much is refused here.
    fn announces_too_much(&self, parts: &Parts) -> bool {
        parts.headers.get_all(CONTENT_LENGTH).iter().any(|length| {
            let digits = length.as_bytes();
            let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
            let length = length.to_str().ok().and_then(|text| text.parse::<u64>().ok());
            is_number && length.is_none_or(|length| length > self.admission.body_bytes_max())
        })
    }
}

impl<S, C: Clone> Layer<S> for AdmissionLayer<C> {
    type Service = AdmissionService<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        AdmissionService { inner, layer: self.clone() }
    }
}

impl<S, C, B, R> Service<Request<B>> for AdmissionService<S, C>
where
    S: Service<Request<CappedBody<B>>, Response = Response<R>>,
    C: Fn(&Parts) -> Operation + Clone,
    B: Body<Error: Into<BoxError>>,
    R: Body<Data = Bytes>,
{
    type Response = Response<AdmittedBody<R>>;
    type Error = S::Error;
    type Future = AdmissionFuture<S::Future, R>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        let held = match self.layer.admit(&mut parts, &body) {
            Ok(held) => held,
            Err(refused) => {
                let response = Some(refused.response(&self.layer.admission, parts.version));
                return AdmissionFuture { state: State::Refused { response } };
            }
        };
        let version = parts.version;
        let body = CappedBody::new(body, self.layer.admission.body_cap(), StageTwo::of(&held));
        let future = self.inner.call(Request::from_parts(parts, body));
        AdmissionFuture { state: State::Admitted { future, held: Some(held), version } }
    }
}

pin_project! {
    /// The answer of the service below, or a refusal. Dropping it ends the request's leases.
    #[derive(Debug)]
    pub struct AdmissionFuture<F, R> {
        #[pin]
        state: State<F, R>,
    }
}

pin_project! {
    #[project = StateProjection]
    #[derive(Debug)]
    enum State<F, R> {
        Admitted { #[pin] future: F, held: Option<Arc<Held>>, version: Version },
        Refused { response: Option<Response<AdmittedBody<R>>> },
    }
}

impl<F, R, E> Future for AdmissionFuture<F, R>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<AdmittedBody<R>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjection::Refused { response } => {
                Poll::Ready(Ok(response.take().expect("a future is not polled after it was ready")))
            }
            StateProjection::Admitted { future, held, version } => {
                let answer = ready!(future.poll(context));
                let held = held.take().expect("a future is not polled after it was ready");
                // However the handler took it: a body that was cut off is answered as one that was announced.
                if held.was_body_too_large() {
                    return Poll::Ready(Ok(body_too_large(&held.admission(), *version)));
                }
                Poll::Ready(answer.map(|response| response.map(|body| AdmittedBody::admitted(body, held))))
            }
        }
    }
}

/// Why the service below isn't called.
enum Refused {
    BodyTooLarge,
    PeerUnknown,
    RateLimited(RateLimited),
}

impl Refused {
    fn response<R>(self, admission: &HttpAdmission, version: Version) -> Response<AdmittedBody<R>> {
        match self {
            Self::BodyTooLarge => body_too_large(admission, version),
            Self::PeerUnknown => {
                admission.peer_unknown();
                peer_unknown()
            }
            Self::RateLimited(limited) => limited.response(),
        }
    }
}

fn peer_in(extensions: &Extensions) -> Option<IpAddr> {
    let peer = extensions.get::<Peer>().map(|peer| peer.0);
    #[cfg(feature = "axum")]
    let peer = peer.or_else(|| {
        let info = extensions.get::<axum::extract::ConnectInfo<SocketAddr>>();
        info.map(|info| info.0.ip())
    });
    peer
}

/// What is left of the body is not read, so an HTTP/1 connection can't go on.
fn body_too_large<R>(admission: &HttpAdmission, version: Version) -> Response<AdmittedBody<R>> {
    let mut response = admission.body_too_large().response();
    if version <= Version::HTTP_11 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn peer_unknown<R>() -> Response<AdmittedBody<R>> {
    let body = r#"{"error":{"code":"PeerUnknown"}}"#.to_owned();
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self(address.ip())
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Peer(…)")
    }
}
