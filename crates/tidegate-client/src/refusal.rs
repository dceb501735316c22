//! Verdicts, and refusals with what they say over HTTP.

use std::fmt::Write;

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use tidegate_core::duration::Written;
use tidegate_protocol::response::retry_after_seconds;

/// What a ready-made limit says about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Verdict<T = ()> {
    /// Go on.
    Allowed(T),
    /// Answer with this, and do nothing else.
    Refused(Refusal),
}

/// Why a request is refused, and how long to wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub code: RefusalCode,
    /// How long to wait, where waiting helps.
    pub retry_after_ms: Option<u64>,
    /// The windows that were asked, if they are told.
    pub windows: Vec<WindowState>,
}

/// Why a request is refused, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalCode {
    /// A window has no room.
    RateLimited,
    /// A budget of attempts has no room.
    AttemptsSpent,
    /// Only a verified session may do this.
    Unauthenticated,
    /// Only with a clearance, which a solved challenge gives.
    ChallengeRequired,
    /// The token was used before, and not just now.
    TokenReplayed,
    /// The token has ended.
    TokenExpired,
    /// The guard store can't be asked, and this must not go on without it.
    Unavailable,
}

/// How a window stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowState {
    /// Its period.
    pub period_ms: u64,
    /// Its limit.
    pub limit: u64,
    /// What is left of it.
    pub remaining: u64,
    /// From now to its end.
    pub reset_ms: u64,
}

/// How long to wait for a store that is away.
pub const UNAVAILABLE_RETRY_MS: u64 = 30_000;

impl<T> Verdict<T> {
    /// Whether the request may go on.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }

    /// For the `?` of a handler.
    ///
    /// # Errors
    /// The refusal.
    pub fn into_result(self) -> Result<T, Refusal> {
        match self {
            Self::Allowed(value) => Ok(value),
            Self::Refused(refusal) => Err(refusal),
        }
    }
}

impl RefusalCode {
    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        self.row().1
    }

    /// In a sentence, for whoever sent the request.
    #[must_use]
    pub const fn message(self) -> &'static str {
        self.row().2
    }

    const fn row(self) -> (&'static str, StatusCode, &'static str) {
        match self {
            Self::RateLimited => ("rate_limited", StatusCode::TOO_MANY_REQUESTS, "too many requests"),
            Self::AttemptsSpent => ("attempts_spent", StatusCode::TOO_MANY_REQUESTS, "too many attempts"),
            Self::Unauthenticated => {
                ("unauthenticated", StatusCode::UNAUTHORIZED, "a verified session is required")
            }
            Self::ChallengeRequired => {
                ("challenge_required", StatusCode::FORBIDDEN, "a challenge must be solved first")
            }
            Self::TokenReplayed => ("token_replayed", StatusCode::UNAUTHORIZED, "the token has been used"),
            Self::TokenExpired => ("token_expired", StatusCode::UNAUTHORIZED, "the token has expired"),
            Self::Unavailable => ("unavailable", StatusCode::SERVICE_UNAVAILABLE, "temporarily unavailable"),
        }
    }
}

impl Refusal {
    /// One that waiting does not help, or not by itself.
    #[must_use]
    pub const fn new(code: RefusalCode) -> Self {
        Self { code, retry_after_ms: None, windows: Vec::new() }
    }

    /// One that is over after a while.
    #[must_use]
    pub const fn after(code: RefusalCode, retry_after_ms: u64) -> Self {
        Self { code, retry_after_ms: Some(retry_after_ms), windows: Vec::new() }
    }

    /// For want of a guard store.
    #[must_use]
    pub const fn unavailable() -> Self {
        Self::after(RefusalCode::Unavailable, UNAVAILABLE_RETRY_MS)
    }

    /// `Retry-After`, `RateLimit-Policy` and `RateLimit`, as far as there is something to say.
    #[must_use]
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut insert = |name: HeaderName, text: String| {
            // Digits, letters and punctuation only.
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(name, value);
            }
        };
        if let Some(wait_ms) = self.retry_after_ms {
            insert(header::RETRY_AFTER, retry_after_seconds(wait_ms).to_string());
        }
        if !self.windows.is_empty() {
            insert(RATE_LIMIT_POLICY, self.list(|window| (("q", window.limit), ("w", window.period_ms))));
            insert(RATE_LIMIT, self.list(|window| (("r", window.remaining), ("t", self.reset_ms(window)))));
        }
        headers
    }

    /// The body: JSON.
    #[must_use]
    pub fn body(&self) -> String {
        let (code, message) = (self.code.as_str(), self.code.message());
        let wait = self.retry_after_ms.map(|wait_ms| format!(r#","retry_after_ms":{wait_ms}"#));
        format!(r#"{{"error":{{"code":"{code}","message":"{message}"{}}}}}"#, wait.unwrap_or_default())
    }

    /// The whole answer, for any framework whose body is made of a text.
    #[must_use]
    pub fn to_response<B: From<String>>(&self) -> Response<B> {
        let mut response = Response::new(B::from(self.body()));
        *response.status_mut() = self.code.status();
        *response.headers_mut() = self.headers();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    /// How long until this window gives room: where nothing is left, as long as the caller must wait.
    fn reset_ms(&self, window: &WindowState) -> u64 {
        match self.retry_after_ms {
            Some(wait_ms) if window.remaining == 0 => wait_ms,
            _ => window.reset_ms,
        }
    }

    /// One item for each window, of a count and of a time in ms, which is told in seconds.
    fn list(&self, parameters: impl Fn(&WindowState) -> ((&str, u64), (&str, u64))) -> String {
        let mut text = String::new();
        for window in &self.windows {
            let ((count, number), (time, time_ms)) = parameters(window);
            let separator = if text.is_empty() { "" } else { ", " };
            let (name, seconds) = (Written(window.period_ms), time_ms.div_ceil(1000));
            // Writing to a String does not fail.
            let _ = write!(text, r#"{separator}"{name}";{count}={number};{time}={seconds}"#);
        }
        text
    }
}

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
