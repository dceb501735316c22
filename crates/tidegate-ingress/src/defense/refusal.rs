//! What a refused request is answered.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use tidegate_core::defense::{Reason, Wait};

use crate::text::{Text, push_number};

/// The answer to a request that is not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    cause: Cause,
}

/// Why it is not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Firewall,
    Policy(Reason, Option<Wait>),
}

impl Refusal {
    pub(super) const fn new(cause: Cause) -> Self {
        Self { cause }
    }

    /// 429 for an empty bucket, 403 for everything else.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self.cause {
            Cause::Policy(Reason::RateLimit, _) => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::FORBIDDEN,
        }
    }

    /// What refused it: a reason of the policy, or `firewall`.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self.cause {
            Cause::Firewall => "firewall",
            Cause::Policy(reason, _) => reason.as_str(),
        }
    }

    /// Seconds until it is worth to try again: 1 or more, for an empty bucket.
    #[must_use]
    pub fn retry_after_s(&self) -> Option<u64> {
        self.wait().map(|wait| wait.retry_after_ms.div_ceil(1000).max(1))
    }

    /// Sets the headers of the answer: `Retry-After`, `RateLimit` and `RateLimit-Policy` where it is a limit.
    pub fn set_headers(&self, headers: &mut HeaderMap) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let (Some(wait), Some(retry_after_s)) = (self.wait(), self.retry_after_s()) else { return };
        let name = wait.limit.as_str();
        headers.insert(RETRY_AFTER, HeaderValue::from(retry_after_s));
        set(headers, &RATE_LIMIT_POLICY, name, [(";q=", wait.burst), (";w=", wait.window_s)]);
        set(headers, &RATE_LIMIT, name, [(";r=", 0), (";t=", retry_after_s)]);
    }

    /// The body and its type, by what the caller accepts: JSON if it names that before any text.
    #[must_use]
    pub fn body(&self, accept: Option<&HeaderValue>) -> (HeaderValue, Bytes) {
        let json = accept.and_then(|accept| accept.to_str().ok()).is_some_and(prefers_json);
        match (json, self.retry_after_s()) {
            (true, Some(seconds)) => {
                let body =
                    format!(r#"{{"error":{{"code":"rate_limited","retry_after_seconds":{seconds}}}}}"#);
                (JSON, body.into())
            }
            (true, None) => (JSON, Bytes::from_static(br#"{"error":{"code":"denied"}}"#)),
            (false, Some(1)) => (TEXT, Bytes::from_static(b"Too many requests. Try again in a second.\n")),
            (false, Some(seconds)) => {
                (TEXT, format!("Too many requests. Try again in {seconds} seconds.\n").into())
            }
            (false, None) => (TEXT, Bytes::from_static(b"Forbidden.\n")),
        }
    }

    /// The whole answer to a request with these headers.
    #[must_use]
    pub fn response(&self, request: &HeaderMap) -> http::Response<Bytes> {
        let (content_type, body) = self.body(request.get(ACCEPT));
        let mut response = http::Response::new(body);
        *response.status_mut() = self.status();
        self.set_headers(response.headers_mut());
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
    }

    const fn wait(&self) -> Option<Wait> {
        match self.cause {
            Cause::Policy(Reason::RateLimit, wait) => wait,
            _ => None,
        }
    }
}

/// Sets a header of structured fields: a name with numbers.
fn set(headers: &mut HeaderMap, header: &'static HeaderName, name: &str, numbers: [(&str, u64); 2]) {
    let mut text = Text::new();
    text.push(b'"');
    text.extend_from_slice(name.as_bytes());
    text.push(b'"');
    for (key, number) in numbers {
        text.extend_from_slice(key.as_bytes());
        push_number(&mut text, number);
    }
    if let Ok(value) = HeaderValue::from_bytes(&text) {
        headers.insert(header, value);
    }
}

fn prefers_json(accept: &str) -> bool {
    let mut types = accept.split(',').map(|part| part.split(';').next().unwrap_or_default().trim());
    let first = types.find_map(|kind| {
        let json = kind.ends_with("/json") || kind.ends_with("+json");
        (json || kind.starts_with("text/")).then_some(json)
    });
    first.unwrap_or(false)
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
static RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
