//! Why a call of the API was not answered: one table of statuses and bodies.

use axum::{
    Json,
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
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

/// What every path of the API begins with.
const API: &str = "/api/";

/// Gives every refusal under `/api/` the documented form: those too that the router and the readers of requests make
/// by themselves, in words of their own.
pub(in crate::admin) async fn as_documented(request: Request, next: Next) -> Response {
    let is_api = is_api(&request);
    let answer = next.run(request).await;
    if is_api { documented(answer) } else { answer }
}

/// Whether the request is for the API, known or not.
pub(in crate::admin) fn is_api<B>(request: &http::Request<B>) -> bool {
    request.uri().path().starts_with(API)
}

/// The answer, and where it is a refusal in another form than the documented one, that. Headers that belong to its
/// status stay.
pub(in crate::admin) fn documented(answer: Response) -> Response {
    let status = answer.status();
    if !(status.is_client_error() || status.is_server_error()) || is_json(answer.headers()) {
        return answer;
    }
    let (code, message) = match status {
        StatusCode::NOT_FOUND => ("not_found", "the API has no such path; /api/v1/openapi.json names all"),
        StatusCode::METHOD_NOT_ALLOWED => {
            ("method_not_allowed", "the header Allow names what this path takes")
        }
        StatusCode::REQUEST_TIMEOUT => ("request_timeout", "the request took too long"),
        StatusCode::PAYLOAD_TOO_LARGE => ("body_too_large", "a body has at most 64 KiB"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ("unsupported_media_type", "a body is application/json"),
        status if status.is_client_error() => ("bad_request", "the request can't be read"),
        _ => ("unavailable", "the request could not be answered"),
    };
    let mut documented = (status, Json(json!({"error": {"code": code, "message": message}}))).into_response();
    for name in [header::ALLOW, header::CONNECTION, header::RETRY_AFTER] {
        if let Some(value) = answer.headers().get(&name) {
            documented.headers_mut().insert(name, value.clone());
        }
    }
    documented
}

fn is_json(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}

/// Says how a caller shows who they are, which every 401 has to.
pub(in crate::admin) fn ask_for_bearer(answer: &mut Response) {
    answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
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
            ask_for_bearer(&mut answer);
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
