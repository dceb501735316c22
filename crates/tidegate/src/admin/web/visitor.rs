//! Who looks at a page: a session's cookie, and for whatever changes something the session's token in the form.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Form,
    extract::{FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Redirect, Response},
};
use http::{HeaderMap, StatusCode, header, request::Parts};
use tidegate_guard::service::Peer;
use tokio::time::Instant;

use super::{events, frame};
use crate::{
    admin::{
        Admin,
        access::{Caller, Denied},
        sessions::Session,
    },
    config::Ability,
};

/// Somebody who is signed in.
#[derive(Clone)]
pub(super) struct Visitor {
    pub(super) session: Session,
    pub(super) caller: Caller,
    pub(super) address: String,
}

/// A form that a visitor sent from a page of ours.
pub(super) struct Posted {
    pub(super) visitor: Visitor,
    pub(super) fields: Fields,
}

/// The fields of a form.
#[derive(Debug, Default, Clone)]
pub(super) struct Fields(BTreeMap<String, String>);

/// The cookie's name.
pub(super) const COOKIE: &str = "tidegate_session";
/// The field with the session's token.
pub(super) const CSRF: &str = "csrf";

impl Visitor {
    /// Who did it, as the audit tells: the token's name, and from where.
    pub(super) fn signature(&self) -> String {
        format!("{} ({})", self.caller.name, self.address)
    }

    /// # Errors
    /// The page that says which ability is missing.
    #[expect(clippy::result_large_err, reason = "handlers answer with it, and the good case is as common")]
    pub(super) fn needs(&self, ability: Ability) -> Result<(), Response> {
        self.caller.needs(ability).map_err(|denied| {
            let Denied::Lacks(ability) = denied else { return Redirect::to("/sign-in").into_response() };
            let text = format!("This needs a token with the ability {}.", ability.name());
            frame::problem(Some(self), StatusCode::FORBIDDEN, "Not with this token", &text)
        })
    }

    fn of(admin: &Admin, parts: &Parts) -> Option<Self> {
        let session = session_of(admin, &parts.headers)?;
        // Asked each time, so that a revoked token is out at once.
        let caller = admin.access.token(&session.token)?;
        let address = match parts.extensions.get::<Peer>() {
            Some(Peer::Address(address)) => address.to_canonical().to_string(),
            _ => "here".to_owned(),
        };
        Some(Self { session, caller, address })
    }
}

/// The session that the request's cookie names.
pub(super) fn session_of(admin: &Admin, headers: &HeaderMap) -> Option<Session> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut ids = pairs.filter(|(name, _)| *name == COOKIE).map(|(_, id)| id);
    ids.find_map(|id| admin.sessions.find(id.as_bytes(), Instant::now()))
}

impl FromRequestParts<Arc<Admin>> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, admin: &Arc<Admin>) -> Result<Self, Response> {
        Self::of(admin, parts).ok_or_else(|| match parts.uri.path().starts_with("/events/") {
            true => events::over(),
            false => Redirect::to("/sign-in").into_response(),
        })
    }
}

impl FromRequest<Arc<Admin>> for Posted {
    type Rejection = Response;

    async fn from_request(request: Request, admin: &Arc<Admin>) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, admin).await?;
        let ours = is_from_here(&parts.headers);
        let fields = Fields::read(Request::from_parts(parts, body)).await?;
        if ours && visitor.session.csrf.ct_eq(fields.text(CSRF).as_bytes()) {
            return Ok(Self { visitor, fields });
        }
        let text = "The form came from another page, or this session has ended. Load the page again.";
        Err(frame::problem(Some(&visitor), StatusCode::FORBIDDEN, "Not done", text))
    }
}

/// Whether a browser says that one of our own pages sent the request. One that says nothing is no browser of
/// today, and has the token in its form to show.
pub(super) fn is_from_here(headers: &HeaderMap) -> bool {
    match headers.get("sec-fetch-site").map(|value| value.as_bytes()) {
        Some(site) => site == b"same-origin" || site == b"none",
        None => true,
    }
}

impl Fields {
    pub(super) async fn read(request: Request) -> Result<Self, Response> {
        let form = Form::<BTreeMap<String, String>>::from_request(request, &()).await;
        form.map(|Form(fields)| Self(fields)).map_err(IntoResponse::into_response)
    }

    /// A field's text; empty where it is not there.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).map(|text| text.trim()).unwrap_or_default()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}
