//! The API under `/api/v1`.

pub(super) mod audit;
mod body;
mod refused;
mod tokens;

use std::sync::Arc;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    routing::{delete, get},
};

use super::{Admin, shapes};

pub(super) use refused::Refused;

/// A policy's bound.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Every call, below `/api/v1`.
pub(super) fn routes() -> Router<Arc<Admin>> {
    Router::new()
        .route("/tokens", get(tokens::list).post(tokens::create))
        .route("/tokens/{name}", delete(tokens::revoke))
        .route("/audit", get(audit::list))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}
