//! The API under `/api/v1`.

mod apps;
pub(super) mod audit;
mod body;
mod openapi;
mod refused;
mod tokens;

use std::sync::Arc;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    routing::{delete, get, post},
};

use super::{Admin, shapes};

pub(super) use refused::{Refused, as_documented, ask_for_bearer, documented, is_api};

/// A policy's bound.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Every call, below `/api/v1`.
pub(super) fn routes() -> Router<Arc<Admin>> {
    Router::new()
        .route("/openapi.json", get(openapi::document))
        .route("/apps", get(apps::list))
        .route("/apps/{app}/abuse", get(apps::abuse).put(apps::put))
        .route("/apps/{app}/abuse/replay", post(apps::replay))
        .route("/apps/{app}/traffic", get(apps::traffic))
        .route("/apps/{app}/access-log", get(apps::access_log))
        .route("/tokens", get(tokens::list).post(tokens::create))
        .route("/tokens/{name}", delete(tokens::revoke))
        .route("/audit", get(audit::list))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}
