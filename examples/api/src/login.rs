//! The login: an attempt is reserved before the password is looked at, and given back if it was right.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    body::Body,
    extract::{ConnectInfo, Json, State},
    http::{Response, StatusCode},
};
use serde::Deserialize;
use tidegate_client::{Caller, Verdict};

use crate::App;

/// What a client sends.
#[derive(Deserialize)]
pub(crate) struct Credentials {
    user: String,
    password: String,
}

/// `POST /login`.
pub(crate) async fn login(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Json(Credentials { user, password }): Json<Credentials>,
) -> Response<Body> {
    // Folded as the accounts fold it, so that each spelling of a name has the same budget.
    let user = user.trim().to_lowercase();
    let attempt = match app.attempts.begin(Caller::from(peer.ip()), &user).await {
        Verdict::Allowed(attempt) => attempt,
        // 429: tried too often. 503: the guard store is away, and nobody guesses meanwhile.
        Verdict::Refused(refusal) => return refusal.to_response(),
    };
    if !app.accounts.are_right(&user, password).await {
        attempt.failed();
        return answer(StatusCode::UNAUTHORIZED, "{\"error\":\"wrong name or password\"}");
    }
    // Whether it could be given back is not the user's affair: the password was right.
    let _ = attempt.succeeded().await;
    answer(StatusCode::OK, "{\"welcome\":true}")
}

fn answer(status: StatusCode, body: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response
}
