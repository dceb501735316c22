//! From outcomes to HTTP answers: the whole table on one screen.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use tidegate_protocol::response::{ErrorBody, ErrorCode, retry_after_seconds};

use crate::{Refusal, metrics::Ending};

/// What goes back to the client.
#[derive(Debug)]
pub struct Answer {
    /// The response.
    pub response: Response<Full<Bytes>>,
    /// The request's body was not read to its end, so the connection can't be used again.
    pub left_unread: bool,
}

/// Why a request got no further than the service.
#[derive(Debug)]
pub(super) enum Refused {
    ByGuard(Refusal),
    /// One generic message, whatever was wrong.
    Unauthenticated,
    /// The HMAC is right, so the caller may be told that its clock is not.
    ClockOff(String),
    /// A wrong operator's token, or none.
    NoOperator,
    TooLarge,
    Incomplete,
    NotFound,
    MethodNotAllowed {
        allow: &'static str,
    },
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self::ByGuard(refusal)
    }
}

impl Refused {
    pub(super) fn ending(&self) -> Option<Ending> {
        Some(match self {
            Self::ByGuard(Refusal::BadRequest(_)) => Ending::BadRequest,
            Self::ByGuard(Refusal::Conflict { .. }) => Ending::Conflict,
            Self::ByGuard(Refusal::Limited { .. }) => Ending::Limited,
            Self::ByGuard(Refusal::Stopped { .. }) => Ending::Stopped,
            Self::ByGuard(Refusal::Unavailable) => Ending::Unavailable,
            Self::Unauthenticated | Self::ClockOff(_) | Self::NoOperator => Ending::Unauthenticated,
            Self::TooLarge => Ending::TooLarge,
            Self::Incomplete => Ending::BadRequest,
            Self::NotFound | Self::MethodNotAllowed { .. } => return None,
        })
    }

    pub(super) fn into_answer(self) -> Answer {
        let left_unread = matches!(self, Self::TooLarge | Self::Incomplete);
        let wants_token = matches!(self, Self::NoOperator);
        let mut answer = match self {
            Self::NotFound => {
                Answer::text(StatusCode::NOT_FOUND, "there is nothing here; the RPC is POST /v1/rpc\n")
            }
            Self::MethodNotAllowed { allow } => {
                let mut answer =
                    Answer::text(StatusCode::METHOD_NOT_ALLOWED, "this method is not allowed here\n");
                answer.response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
                answer
            }
            Self::Incomplete => error(StatusCode::REQUEST_TIMEOUT, &self.body()),
            _ => {
                let body = self.body();
                let status = StatusCode::from_u16(body.error.code.status());
                error(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &body)
            }
        };
        if wants_token {
            let bearer = HeaderValue::from_static("Bearer");
            answer.response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        }
        if left_unread {
            answer.response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Answer { left_unread, ..answer }
    }

    fn body(&self) -> ErrorBody {
        match self {
            Self::ByGuard(refusal) => refusal.to_body(),
            Self::NoOperator => ErrorBody::new(
                ErrorCode::Unauthenticated,
                "the operator's token is required: Authorization: Bearer <token>",
            ),
            Self::Unauthenticated => ErrorBody::new(
                ErrorCode::Unauthenticated,
                "a valid Tidegate-Signature header is required, exactly once",
            ),
            Self::ClockOff(message) => ErrorBody::new(ErrorCode::Unauthenticated, message.as_str()),
            Self::TooLarge => ErrorBody::new(ErrorCode::BodyTooLarge, "the body is larger than 16 KiB"),
            Self::Incomplete | Self::NotFound | Self::MethodNotAllowed { .. } => {
                ErrorBody::new(ErrorCode::BadRequest, "the body did not arrive whole and in time")
            }
        }
    }
}

pub(super) fn ok(body: Vec<u8>) -> Answer {
    Answer { response: json(StatusCode::OK, body), left_unread: false }
}

fn error(status: StatusCode, body: &ErrorBody) -> Answer {
    let mut response = json(status, body.to_json());
    if let Some(wait_ms) = body.error.retry_after_ms {
        let seconds = HeaderValue::from(retry_after_seconds(wait_ms));
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    Answer { response, left_unread: false }
}

impl Answer {
    /// An answer in plain text.
    #[must_use]
    pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Self {
        let mut response = Response::new(Full::new(body.into()));
        *response.status_mut() = status;
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, plain);
        Self { response, left_unread: false }
    }
}

fn json(status: StatusCode, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
