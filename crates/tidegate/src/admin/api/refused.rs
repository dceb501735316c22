//! Why a call of the API was not answered: one table of statuses and bodies.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use crate::admin::{access::Denied, tokens::TokenError};

/// A refusal of the API. Nothing was changed.
#[derive(Debug)]
pub(in crate::admin) enum Refused {
    Denied(Denied),
    NoSuchApp,
    /// Something of the request can't be read.
    BadRequest(String),
    /// The policy, with everything that is wrong with it.
    InvalidPolicy(Value),
    /// Somebody else has changed it meanwhile.
    Stale {
        version: u64,
    },
    Token(TokenError),
    /// The store did not answer; whether it has taken the change is not known.
    Unavailable(String),
}

impl From<Denied> for Refused {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl From<TokenError> for Refused {
    fn from(error: TokenError) -> Self {
        Self::Token(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        use StatusCode as Status;

        let said = |code: &str, message: &str| json!({"code": code, "message": message});
        let (status, error) = match self {
            Self::Denied(Denied::NoToken) => (
                Status::UNAUTHORIZED,
                said("unauthenticated", "a token is required: Authorization: Bearer <token>"),
            ),
            Self::Denied(Denied::UnknownToken) => {
                (Status::UNAUTHORIZED, said("unauthenticated", "nobody has this token"))
            }
            Self::Denied(Denied::Lacks(ability)) => {
                let message = format!("the token lacks the ability {}", ability.name());
                let error =
                    json!({"code": "forbidden", "missing_ability": ability.name(), "message": message});
                (Status::FORBIDDEN, error)
            }
            Self::NoSuchApp => (Status::NOT_FOUND, said("no_such_app", "there is no app of this name")),
            Self::BadRequest(message) => (Status::BAD_REQUEST, said("bad_request", &message)),
            Self::InvalidPolicy(faults) => (
                Status::UNPROCESSABLE_ENTITY,
                json!({
                    "code": "invalid_policy",
                    "message": "the policy has faults, and the one in force stays",
                    "faults": faults,
                }),
            ),
            Self::Stale { version } => (
                Status::PRECONDITION_FAILED,
                json!({
                    "code": "stale_version",
                    "message": "the policy has been changed meanwhile; read it again",
                    "version": version,
                }),
            ),
            Self::Token(error) => token_error(&error),
            Self::Unavailable(message) => (Status::SERVICE_UNAVAILABLE, said("unavailable", &message)),
        };
        let mut answer = (status, Json(json!({"error": error}))).into_response();
        if status == Status::UNAUTHORIZED {
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}

fn token_error(error: &TokenError) -> (StatusCode, Value) {
    let (status, code) = match error {
        TokenError::Name => (StatusCode::BAD_REQUEST, "bad_request"),
        TokenError::Unknown => (StatusCode::NOT_FOUND, "no_such_token"),
        TokenError::Taken | TokenError::Full | TokenError::NoDirectory => {
            (StatusCode::CONFLICT, "token_refused")
        }
        TokenError::Secret(_) | TokenError::Write(_) => {
            tracing::error!(%error, cause = ?std::error::Error::source(error), "the tokens were not changed");
            (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
        }
    };
    (status, json!({"code": code, "message": error.to_string()}))
}
