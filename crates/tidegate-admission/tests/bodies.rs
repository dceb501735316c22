//! Bodies are capped, announced or not.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod support;

use axum::{
    Router,
    body::{Body, Bytes},
    routing::post,
};
use http::{Method, Request, header};
use support::{admission, answer, layer, request};
use tidegate_admission::HttpAdmission;

const CAP: usize = 16 * 1024;
const TOO_LARGE: &str = r#"{"error":{"code":"BodyTooLarge","body_bytes_max":16384}}"#;

async fn never() -> &'static str {
    panic!("the handler is called")
}

fn app(admission: &HttpAdmission) -> Router {
    Router::new()
        .route("/read", post(|body: Bytes| async move { body.len().to_string() }))
        .route(
            "/hide",
            post(|body: Result<Bytes, axum::extract::rejection::BytesRejection>| async move {
                body.map_or_else(|_| "hidden".to_owned(), |body| body.len().to_string())
            }),
        )
        .route("/ignore", post(|| async { "ignored" }))
        .route("/panic", post(never))
        .layer(layer(admission))
}

/// Without a length: a stream of pieces.
fn streamed(path: &str, bytes: usize) -> Request<Body> {
    let pieces = vec![0_u8; bytes]
        .chunks(1000)
        .map(|piece| Ok::<_, std::io::Error>(piece.to_vec()))
        .collect::<Vec<_>>();
    request("192.0.2.1", Method::POST, path, Body::from_stream(futures_util::stream::iter(pieces)))
}

fn announced(path: &str, bytes: usize) -> Request<Body> {
    request("192.0.2.1", Method::POST, path, vec![0_u8; bytes])
}

#[tokio::test]
async fn a_body_over_the_cap_is_413_however_it_comes() {
    let (admission, _clock) = admission(|_| ());
    let app = app(&admission);
    for (request, status, body) in [
        (announced("/read", CAP), 200, "16384"),
        (announced("/panic", CAP + 1), 413, TOO_LARGE),
        (announced("/read", 10 << 20), 413, TOO_LARGE),
        (streamed("/read", CAP), 200, "16384"),
        (streamed("/read", CAP + 1), 413, TOO_LARGE),
        (streamed("/read", 1 << 20), 413, TOO_LARGE),
        (streamed("/hide", 1 << 20), 413, TOO_LARGE),
        (streamed("/hide", CAP), 200, "16384"),
        (streamed("/ignore", 1 << 20), 200, "ignored"),
    ] {
        let name = format!("{request:?}");
        assert_eq!(answer(&app, request).await, (status, body.to_owned()), "{name}");
    }
    assert_eq!(admission.active(), 0);
}

#[tokio::test]
async fn a_length_that_lies_is_refused_before_the_handler() {
    let (admission, _clock) = admission(|_| ());
    let app = app(&admission);
    for (lines, status) in [
        (&["99999999999999"][..], 413),
        (&["99999999999999999999999999"], 413),
        (&["16385"], 413),
        (&["5", "16385"], 413),
        // Not numbers: the server in front of the layer refuses them, and the body is counted as it comes.
        (&["+5"], 200),
        (&["5, 6"], 200),
    ] {
        let mut request = announced("/ignore", 1);
        for line in lines {
            request.headers_mut().append(header::CONTENT_LENGTH, line.parse().unwrap());
        }
        assert_eq!(answer(&app, request).await.0, status, "{lines:?}");
    }
}
