//! What a client is answered. Nothing tells it whether an account exists.

use axum::{
    Json,
    http::{HeaderName, StatusCode, header::RETRY_AFTER},
    response::{AppendHeaders, IntoResponse, Response},
};
use serde_json::json;
use tidegate_rate_limit::{Decision, LimitError};
use tracing::error;

/// When a store that did not answer is worth another try.
const STORE_RETRY_SECONDS: &str = "5";

pub(crate) fn welcome() -> Response {
    Json(json!({ "signed_in": true })).into_response()
}

pub(crate) fn wrong(decision: &Decision) -> Response {
    answer(StatusCode::UNAUTHORIZED, "the account or the password is wrong", Some(decision))
}

pub(crate) fn sent(decision: &Decision) -> Response {
    answer(StatusCode::ACCEPTED, "if there is such an account, a mail is on its way", Some(decision))
}

pub(crate) fn too_many(decision: &Decision) -> Response {
    answer(StatusCode::TOO_MANY_REQUESTS, "too many attempts; try again later", Some(decision))
}

/// The store gave no answer, and this application stays closed: who can keep the store from answering could
/// otherwise guess passwords, or have mails sent, without any limit. A catalogue would rather go on uncounted.
pub(crate) fn unavailable(cause: &LimitError) -> Response {
    error!(error = cause as &dyn std::error::Error, "a limit could not be counted; refused");
    let answer = answer(StatusCode::SERVICE_UNAVAILABLE, "try again in a moment", None);
    ([(RETRY_AFTER, STORE_RETRY_SECONDS)], answer).into_response()
}

fn answer(status: StatusCode, message: &str, decision: Option<&Decision>) -> Response {
    let headers = decision.map(Decision::headers).unwrap_or_default();
    let headers = headers.into_iter().map(|(name, value)| (HeaderName::from_static(name), value));
    (status, AppendHeaders(headers), Json(json!({ "message": message }))).into_response()
}
