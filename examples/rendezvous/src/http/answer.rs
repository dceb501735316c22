//! What went wrong, as it is answered: `{"error": {"code", "message"}}`.

use axum::{
    Json,
    extract::rejection::JsonRejection,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use tidegate_admission::{NoAdmission, RateLimited};

use crate::{
    registry::{MetadataFault, Refused},
    service::NotStarted,
};

/// Why a request is not done.
#[derive(Debug)]
pub(super) enum Failure {
    /// No credential, or one that nobody has.
    Unauthenticated,
    /// It is not there, or another's: the same answer.
    NotFound,
    /// The path is there, the method is not.
    Method,
    /// The body is too long for the cap.
    BodyTooLarge,
    /// The body is not what is expected.
    Malformed(&'static str),
    /// What is wrong with the game.
    Metadata(MetadataFault),
    /// No room for now.
    Full,
    /// Too much is asked for at the moment.
    Limited(RateLimited),
    /// The system gives no random bytes, or there is no admission.
    Unavailable,
}

#[derive(Serialize)]
struct Body {
    error: Error,
}

#[derive(Serialize)]
struct Error {
    code: &'static str,
    message: String,
}

impl Failure {
    fn parts(&self) -> (StatusCode, &'static str, String) {
        let text = |text: &str| text.to_owned();
        match self {
            Self::Unauthenticated => {
                (StatusCode::UNAUTHORIZED, "Unauthenticated", text("a known bearer token is required"))
            }
            Self::NotFound => {
                (StatusCode::NOT_FOUND, "NotFound", text("there is no such thing, or it is not yours"))
            }
            Self::Method => (StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", text("no such method here")),
            Self::BodyTooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "BodyTooLarge", text("the body is over the cap"))
            }
            Self::Malformed(what) => (StatusCode::BAD_REQUEST, "Malformed", text(what)),
            Self::Metadata(fault) => (StatusCode::BAD_REQUEST, "Malformed", fault.to_string()),
            Self::Full => {
                (StatusCode::CONFLICT, "Full", text("there is no room; try again when something has ended"))
            }
            Self::Limited(limited) => (StatusCode::TOO_MANY_REQUESTS, "RateLimited", limited.to_string()),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "Unavailable", text("not at the moment")),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        if let Self::Limited(limited) = self {
            return limited.into_response();
        }
        let (status, code, message) = self.parts();
        let mut response = (status, Json(Body { error: Error { code, message } })).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let scheme = header::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::NotFound => Self::NotFound,
            Refused::Full => Self::Full,
        }
    }
}

impl From<NotStarted> for Failure {
    fn from(not_started: NotStarted) -> Self {
        match not_started {
            NotStarted::Listing(refused) => refused.into(),
            NotStarted::Busy => Self::Full,
        }
    }
}

impl From<MetadataFault> for Failure {
    fn from(fault: MetadataFault) -> Self {
        Self::Metadata(fault)
    }
}

impl From<getrandom::Error> for Failure {
    fn from(_: getrandom::Error) -> Self {
        Self::Unavailable
    }
}

impl From<RateLimited> for Failure {
    fn from(limited: RateLimited) -> Self {
        Self::Limited(limited)
    }
}

impl From<NoAdmission> for Failure {
    fn from(_: NoAdmission) -> Self {
        Self::Unavailable
    }
}

impl From<JsonRejection> for Failure {
    /// The text of a rejection may repeat what was sent; this does not.
    fn from(rejection: JsonRejection) -> Self {
        match rejection {
            JsonRejection::MissingJsonContentType(_) => {
                Self::Malformed("the content type must be application/json")
            }
            JsonRejection::JsonDataError(_) => {
                Self::Malformed("expected {\"name\": text, \"metadata\": {text: text}} and nothing else")
            }
            other if other.status() == StatusCode::PAYLOAD_TOO_LARGE => Self::BodyTooLarge,
            _ => Self::Malformed("the body is not JSON"),
        }
    }
}
