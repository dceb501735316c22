//! Signing in with a token, or once with the link of the first start; and out.

use std::sync::Arc;

use axum::{
    extract::{Query, Request, State},
    response::{IntoResponse, Redirect, Response},
};
use http::{HeaderValue, StatusCode, header};
use maud::{Markup, html};
use serde::Deserialize;
use tokio::time::Instant;

use super::{
    frame,
    visitor::{COOKIE, Fields, Posted, is_from_here},
};
use crate::admin::{Admin, access, sessions::SESSION_LIFE};

#[derive(Deserialize)]
pub(super) struct Link {
    code: Option<String>,
}

pub(super) async fn page(Query(link): Query<Link>) -> Response {
    frame::bare(StatusCode::OK, "Sign in", &form(link.code.as_deref(), None))
}

/// A code is only taken by the form's button, so that whatever looks at links in advance does not use it up.
pub(super) async fn sign_in(State(admin): State<Arc<Admin>>, request: Request) -> Response {
    if !is_from_here(request.headers()) {
        let text = "The form came from another site.";
        return frame::problem(None, StatusCode::FORBIDDEN, "Not signed in", text);
    }
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(answer) => return answer,
    };
    let now = Instant::now();
    let token = match (fields.text("code"), fields.text("token")) {
        ("", token) => Some(access::hash(token.as_bytes())).filter(|hash| admin.access.token(hash).is_some()),
        (code, _) => admin.sessions.take_code(code.as_bytes(), now),
    };
    let Some(token) = token else {
        let why = if fields.has("code") {
            "This link has been used, or is too old. Sign in with a token."
        } else {
            "Nobody has this token."
        };
        return frame::bare(StatusCode::UNAUTHORIZED, "Sign in", &form(None, Some(why)));
    };
    match admin.sessions.begin(token, now) {
        Ok(id) => with_cookie(Redirect::to("/"), &admin, id.expose(), SESSION_LIFE.as_secs()),
        Err(error) => {
            tracing::error!(%error, "no session was begun");
            frame::problem(None, StatusCode::INTERNAL_SERVER_ERROR, "Not signed in", "Try again.")
        }
    }
}

pub(super) async fn sign_out(State(admin): State<Arc<Admin>>, posted: Posted) -> Response {
    admin.sessions.end(&posted.visitor.session.key);
    with_cookie(Redirect::to("/sign-in"), &admin, "", 0)
}

fn with_cookie(answer: impl IntoResponse, admin: &Admin, id: &str, age_s: u64) -> Response {
    let secure = if admin.is_tls { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={id}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age_s}{secure}");
    let mut answer = answer.into_response();
    if let Ok(mut cookie) = HeaderValue::from_str(&cookie) {
        cookie.set_sensitive(true);
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    answer
}

fn form(code: Option<&str>, fault: Option<&str>) -> Markup {
    html! {
        form.card.narrow method="post" action="/sign-in" {
            h1 { "Sign in" }
            @if let Some(fault) = fault { p.note.bad role="alert" { (fault) } }
            @if let Some(code) = code {
                input type="hidden" name="code" value=(code);
                p.muted { "This link signs you in to this Tidegate once, with every ability." }
                button.primary autofocus { "Sign in" }
            } @else {
                div.field {
                    label for="token" { "Token" }
                    input #token type="password" name="token" required autofocus autocomplete="off"
                        aria-describedby="token-hint";
                    p #token-hint .hint {
                        "The " code { "admin_token" } " in " code { "tidegate-data/secrets.toml" }
                        ", or one made by " code { "tidegate token create" } "."
                    }
                }
                button.primary { "Sign in" }
            }
        }
    }
}
