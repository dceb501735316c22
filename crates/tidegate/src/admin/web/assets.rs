//! The style and the script of the dashboard: two files in the binary.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::secrets;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

pub(super) async fn style(headers: HeaderMap) -> Response {
    asset(&headers, "text/css; charset=utf-8", STYLE)
}

pub(super) async fn script(headers: HeaderMap) -> Response {
    asset(&headers, "text/javascript; charset=utf-8", SCRIPT)
}

/// Asked for again with every page, and sent again only if it has changed.
fn asset(headers: &HeaderMap, kind: &'static str, text: &'static str) -> Response {
    let tag = format!("\"{}\"", secrets::hex(&Sha256::digest(text)[..8]));
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == tag.as_bytes());
    let mut answer = if known { StatusCode::NOT_MODIFIED.into_response() } else { text.into_response() };
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    answer
}
