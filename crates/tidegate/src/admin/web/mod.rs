//! The dashboard: pages rendered here, sent whole, with two assets and no request to anybody else.

mod assets;
mod audit;
mod chart;
mod draft;
mod events;
mod frame;
mod guard;
mod overview;
mod preview;
mod sign_in;
mod traffic;
mod visitor;
mod words;

use std::sync::Arc;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    response::Response,
    routing::{get, post},
};
use http::{HeaderName, HeaderValue, header};

use super::Admin;

/// A form with its lists: a policy has at most 64 KiB, and encoding it for a form may triple it.
const FORM_BYTES_MAX: usize = 256 * 1024;

/// Every page.
pub(super) fn routes() -> Router<Arc<Admin>> {
    Router::new()
        .route("/", get(overview::page))
        .route("/apps/{app}", get(traffic::page))
        .route("/apps/{app}/preview", post(traffic::preview))
        .route("/apps/{app}/policy", post(traffic::save))
        .route("/guard", get(guard::page))
        .route("/guard/stop", post(guard::stop))
        .route("/guard/resume", post(guard::resume))
        .route("/guard/fairness", post(guard::reset))
        .route("/audit", get(audit::page))
        .route("/events/overview", get(overview::events))
        .route("/events/apps/{app}", get(traffic::events))
        .route("/events/guard", get(guard::events))
        .route("/sign-in", get(sign_in::page).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .layer(middleware::map_response(not_kept))
        .route("/style.css", get(assets::style))
        .route("/script.js", get(assets::script))
        .layer(middleware::map_response(harden))
}

/// Pages show what is not for the next person at this browser.
async fn not_kept(mut answer: Response) -> Response {
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// What a browser may do with anything of the dashboard: load it from here, show it in no other page.
async fn harden(mut answer: Response) -> Response {
    const RULES: [(HeaderName, &str); 5] = [
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
             form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in RULES {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}
