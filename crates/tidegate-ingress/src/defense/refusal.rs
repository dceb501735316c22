//! What a refused request is answered.

use std::cell::RefCell;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use tidegate_core::defense::{LimitName, Reason, Wait};

use super::Caller;
use crate::text::{Text, push_number};

/// The answer to a request that is not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    cause: Cause,
}

/// What stands in the answer to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalBody {
    content_type: HeaderValue,
    text: Bytes,
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
    fn set_headers(&self, headers: &mut HeaderMap) {
        let (Some(wait), Some(retry_after_s)) = (self.wait(), self.retry_after_s()) else {
            // No cache stores a 429, as its standard says; what some do with a 403 is for us to say.
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            return;
        };
        let said = Said::of(wait, retry_after_s);
        headers.insert(RETRY_AFTER, said.retry_after);
        headers.insert(&RATE_LIMIT_POLICY, said.policy);
        headers.insert(&RATE_LIMIT, said.limit);
    }

    /// The body and its type, by what the caller accepts: JSON if it names that before any text.
    #[must_use]
    pub fn body(&self, accept: Option<&HeaderValue>) -> RefusalBody {
        // What programs send that have no wish.
        let accept = accept.filter(|accept| *accept != "*/*");
        let json = accept.and_then(|accept| accept.to_str().ok()).is_some_and(prefers_json);
        let text = match (json, self.retry_after_s()) {
            (true, Some(seconds)) => {
                format!(r#"{{"error":{{"code":"rate_limited","retry_after_seconds":{seconds}}}}}"#).into()
            }
            (true, None) => Bytes::from_static(br#"{"error":{"code":"denied"}}"#),
            (false, Some(1)) => Bytes::from_static(b"Too many requests. Try again in a second.\n"),
            (false, Some(seconds)) => format!("Too many requests. Try again in {seconds} seconds.\n").into(),
            (false, None) => Bytes::from_static(b"Forbidden.\n"),
        };
        RefusalBody { content_type: if json { JSON } else { TEXT }, text }
    }

    /// The whole answer to a caller.
    #[must_use]
    pub fn response(&self, caller: &Caller<'_>) -> http::Response<Bytes> {
        self.response_in(HeaderMap::new(), self.body(caller.accept()))
    }

    /// The same with this body. Its headers go to `place`, such as the map of the request's, so that no other one has to be made.
    #[must_use]
    pub fn response_in(&self, mut place: HeaderMap, body: RefusalBody) -> http::Response<Bytes> {
        place.clear();
        self.set_headers(&mut place);
        place.insert(CONTENT_TYPE, body.content_type);
        let mut response = http::Response::new(body.text);
        *response.status_mut() = self.status();
        *response.headers_mut() = place;
        response
    }

    const fn wait(&self) -> Option<Wait> {
        match self.cause {
            Cause::Policy(Reason::RateLimit, wait) => wait,
            _ => None,
        }
    }
}

/// What the headers of a limit say.
#[derive(Clone)]
struct Said {
    retry_after: HeaderValue,
    policy: HeaderValue,
    limit: HeaderValue,
}

/// The limit, its burst and window, and the seconds until it is worth to try again.
type Key = (LimitName, u64, u64, u64);

thread_local! {
    /// What was said last. One that asks too often is refused by the same limit again and again, for as many seconds: three
    /// texts need not be written anew each time.
    static LAST: RefCell<Option<(Key, Said)>> = const { RefCell::new(None) };
}

impl Said {
    fn of(wait: Wait, retry_after_s: u64) -> Self {
        let key = (wait.limit, wait.burst, wait.window_s, retry_after_s);
        LAST.with_borrow_mut(|last| match last {
            Some((of, said)) if *of == key => said.clone(),
            _ => last.insert((key, Self::written(wait, retry_after_s))).1.clone(),
        })
    }

    fn written(wait: Wait, retry_after_s: u64) -> Self {
        let name = wait.limit.as_str();
        Self {
            retry_after: HeaderValue::from(retry_after_s),
            policy: field(name, [(";q=", wait.burst), (";w=", wait.window_s)]),
            limit: field(name, [(";r=", 0), (";t=", retry_after_s)]),
        }
    }
}

/// A structured field: a name with numbers.
fn field(name: &'static str, numbers: [(&str, u64); 2]) -> HeaderValue {
    let mut text = Text::new();
    text.push(b'"');
    text.extend_from_slice(name.as_bytes());
    text.push(b'"');
    for (key, number) in numbers {
        text.extend_from_slice(key.as_bytes());
        push_number(&mut text, number);
    }
    // Names of limits are letters: the text is always a header's value.
    HeaderValue::from_bytes(&text).unwrap_or_else(|_| HeaderValue::from_static(name))
}

fn prefers_json(accept: &str) -> bool {
    let wanted = |part: &&str| !part.split(';').skip(1).any(|parameter| is_weight_0(parameter.trim()));
    let types = accept.split(',').filter(wanted);
    let mut types = types.map(|part| part.split(';').next().unwrap_or_default().trim());
    let first = types.find_map(|kind| {
        let json = kind.ends_with("/json") || kind.ends_with("+json");
        (json || kind.starts_with("text/")).then_some(json)
    });
    first.unwrap_or(false)
}

/// `q=0`, in any of the ways to write it: what the client says it won't take.
fn is_weight_0(parameter: &str) -> bool {
    let weight = parameter.strip_prefix("q=").or(parameter.strip_prefix("Q="));
    weight.is_some_and(|weight| {
        weight.starts_with('0') && weight.bytes().all(|byte| matches!(byte, b'0' | b'.'))
    })
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
static RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
