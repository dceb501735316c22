//! A service behind admission, and requests to it.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::net::SocketAddr;

use axum::{Router, body::Body, extract::ConnectInfo};
use http::{Method, Request, request::Parts};
use http_body_util::BodyExt as _;
use tidegate_admission::{AdmissionLayer, Clock, HttpAdmission, Operation, Profile, Seed};
use tower::ServiceExt as _;

/// Budgets after the default profile, changed, and the clock that they go by.
pub(crate) fn admission(change: impl FnOnce(&mut Profile)) -> (HttpAdmission, Clock) {
    let (mut profile, clock) = (Profile::default(), Clock::manual());
    change(&mut profile);
    (HttpAdmission::new(&profile, Seed::from([9; 16]), clock.clone()).unwrap(), clock)
}

/// Health by the exact path and method; what changes things is critical.
pub(crate) fn classify(head: &Parts) -> Operation {
    match (&head.method, head.uri.path()) {
        (&Method::GET, "/healthz") => Operation::health(),
        (&Method::PUT | &Method::DELETE, _) => Operation::critical(1),
        _ => Operation::optional(1),
    }
}

pub(crate) fn layer(admission: &HttpAdmission) -> AdmissionLayer<fn(&Parts) -> Operation> {
    AdmissionLayer::new(admission.clone(), classify)
}

/// A request from a TCP peer.
pub(crate) fn request(peer: &str, method: Method, path: &str, body: impl Into<Body>) -> Request<Body> {
    let peer = SocketAddr::new(peer.parse().unwrap(), 4711);
    Request::builder().method(method).uri(path).extension(ConnectInfo(peer)).body(body.into()).unwrap()
}

/// The status and body of the answer.
pub(crate) async fn answer(app: &Router, request: Request<Body>) -> (u16, String) {
    let response = app.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

pub(crate) async fn status(app: &Router, method: Method, path: &str) -> u16 {
    answer(app, request("192.0.2.1", method, path, Body::empty())).await.0
}

/// A server on a port of its own, for as long as the test's runtime runs.
pub(crate) async fn serve(app: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// Yields until nothing is held any more; the test's deadline is that it hangs otherwise.
pub(crate) async fn until_idle(admission: &HttpAdmission) {
    let idle = async {
        while admission.active() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), idle).await.expect("a lease is leaked");
}
