//! The proxy's own answers: short, and the same for everybody.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

use super::body::Source;

/// An answer with a line of text.
pub(super) fn text(status: StatusCode, line: &'static str) -> Response<Source> {
    with(status, "text/plain; charset=utf-8", Bytes::from_static(line.as_bytes()))
}

/// The same, after which the connection is closed: what follows on it can't be trusted, or isn't worth reading.
pub(super) fn last(status: StatusCode, line: &'static str) -> Response<Source> {
    closing(text(status, line))
}

/// The answer, after which the connection is closed.
pub(super) fn closing(mut response: Response<Source>) -> Response<Source> {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// An answer that asks to come again after a second.
pub(super) fn again(status: StatusCode, line: &'static str) -> Response<Source> {
    let mut response = text(status, line);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// An answer of a content type that is known when it is written.
pub(super) fn with(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Source> {
    let mut response = Response::new(Source::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
