//! What admission says no with.

use http::{HeaderValue, Response, StatusCode, header};
use thiserror::Error;
pub use tidegate_core::tracker::Cause;

/// What a budget or a ceiling is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dimension {
    /// The whole service.
    Global,
    /// A network of callers: IPv4 /24 or IPv6 /56.
    SourcePrefix,
    /// The same, for health probes.
    HealthSourcePrefix,
    /// One operation of the HTTP API.
    Operation,
    /// A tenant.
    Tenant,
    /// Somebody who has signed in.
    Principal,
    /// A secret that allows something, known by its fingerprint.
    Capability,
    /// What is worked on.
    Resource,
    /// The operation byte of a datagram.
    WireOperation,
    /// A role in the exchange.
    Role,
    /// The exchange that a datagram belongs to.
    MediationHandle,
}

/// Why something wasn't admitted. Nothing was charged for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The budget or ceiling that is in the way; the first, if several are.
    pub dimension: Dimension,
    /// What about it.
    pub cause: Cause,
    /// Seconds after which it may be otherwise: from one to the window's length.
    pub retry_after_seconds: u32,
}

/// 429: too much is asked for. What is in the way is for the operator's metrics, not for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("too much is asked for at the moment")]
pub struct RateLimited {
    /// Seconds after which to ask again: from one to the window's length.
    pub retry_after_seconds: u32,
}

/// 413: the request's body is larger than this service reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the request's body is over {body_bytes_max} bytes")]
pub struct BodyTooLarge {
    /// The largest body that is read, in bytes.
    pub body_bytes_max: u64,
}

impl Dimension {
    /// All of them, in order.
    pub const ALL: [Self; 11] = [
        Self::Global,
        Self::SourcePrefix,
        Self::HealthSourcePrefix,
        Self::Operation,
        Self::Tenant,
        Self::Principal,
        Self::Capability,
        Self::Resource,
        Self::WireOperation,
        Self::Role,
        Self::MediationHandle,
    ];

    /// Its name in profiles and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::SourcePrefix => "source_prefix",
            Self::HealthSourcePrefix => "health_source_prefix",
            Self::Operation => "operation",
            Self::Tenant => "tenant",
            Self::Principal => "principal",
            Self::Capability => "capability",
            Self::Resource => "resource",
            Self::WireOperation => "wire_operation",
            Self::Role => "role",
            Self::MediationHandle => "mediation_handle",
        }
    }
}

impl Refusal {
    pub(crate) fn new(dimension: Dimension, cause: Cause, wait_ms: u64) -> Self {
        let seconds = u32::try_from(wait_ms.div_ceil(1000)).unwrap_or(u32::MAX);
        Self { dimension, cause, retry_after_seconds: seconds.max(1) }
    }
}

impl From<Refusal> for RateLimited {
    fn from(refusal: Refusal) -> Self {
        Self { retry_after_seconds: refusal.retry_after_seconds }
    }
}

impl RateLimited {
    /// The answer: `{"error":{"code":"RateLimited","retry_after_seconds":n}}`, and `Retry-After`.
    #[must_use]
    pub fn response<B: From<String>>(self) -> Response<B> {
        let seconds = self.retry_after_seconds;
        let body = format!(r#"{{"error":{{"code":"RateLimited","retry_after_seconds":{seconds}}}}}"#);
        let mut response = json(StatusCode::TOO_MANY_REQUESTS, body);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        response
    }
}

impl BodyTooLarge {
    /// The answer: `{"error":{"code":"BodyTooLarge","body_bytes_max":n}}`.
    #[must_use]
    pub fn response<B: From<String>>(self) -> Response<B> {
        let max = self.body_bytes_max;
        json(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(r#"{{"error":{{"code":"BodyTooLarge","body_bytes_max":{max}}}}}"#),
        )
    }
}

fn json<B: From<String>>(status: StatusCode, body: String) -> Response<B> {
    let mut response = Response::new(B::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(feature = "axum")]
mod responses {
    use axum::response::{IntoResponse, Response};

    use super::{BodyTooLarge, RateLimited};

    impl IntoResponse for RateLimited {
        fn into_response(self) -> Response {
            self.response()
        }
    }

    impl IntoResponse for BodyTooLarge {
        fn into_response(self) -> Response {
            self.response()
        }
    }
}
