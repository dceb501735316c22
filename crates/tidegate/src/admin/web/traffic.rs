//! An app's page: its traffic, and the card of its abuse defense.

use std::sync::Arc;

use axum::{
    extract::{Path, Query, State},
    response::{Html, IntoResponse, Redirect, Response},
};
use http::{HeaderMap, StatusCode};
use maud::html;
use serde::Deserialize;

use super::{
    card::{self, Card, Said},
    draft::Draft,
    events,
    frame::{self, Place},
    numbers::{status_part, traffic_part},
    preview::{self, Preview},
    visitor::{Posted, Visitor},
};
use crate::{
    admin::{
        Admin, access,
        apps::{PolicyRefused, Window, read},
        path_part,
        shapes::{Abuse, PolicyFault},
    },
    config::Ability,
};

#[derive(Debug, Default, Deserialize)]
pub(super) struct Look {
    #[serde(default)]
    window: Window,
    saved: Option<String>,
}

pub(super) async fn page(
    State(admin): State<Arc<Admin>>,
    Path(app): Path<String>,
    Query(look): Query<Look>,
    visitor: Visitor,
) -> Result<Response, Response> {
    visitor.needs(Ability::Read)?;
    let abuse = admin.apps.abuse(&app, look.window).ok_or_else(|| no_such_app(&visitor))?;
    let saved =
        look.saved.is_some().then(|| Said::Good("Saved. It holds for every request from now on.".into()));
    let card = Card { draft: Draft::prefilled(&abuse), preview: Preview::None, said: saved };
    Ok(whole(&admin, &visitor, &abuse, look.window, &card))
}

pub(super) async fn events(
    State(admin): State<Arc<Admin>>,
    Path(app): Path<String>,
    Query(look): Query<Look>,
    visitor: Visitor,
) -> Result<Response, Response> {
    visitor.needs(Ability::Read)?;
    Ok(events::stream(admin, visitor, move |admin, _| {
        let app = app.clone();
        async move {
            let abuse = admin.apps.abuse(&app, look.window)?;
            let traffic = admin.apps.traffic(&app, look.window)?;
            Some(vec![("status", status_part(&abuse)), ("traffic", traffic_part(&abuse, &traffic))])
        }
    }))
}

/// The preview of the draft in the form: by itself for the script, in the whole page for others.
pub(super) async fn preview(
    State(admin): State<Arc<Admin>>,
    Path(app): Path<String>,
    headers: HeaderMap,
    Posted { visitor, fields }: Posted,
) -> Result<Response, Response> {
    visitor.needs(Ability::Read)?;
    let draft = Draft::read(&fields);
    let preview = replay(&admin, &visitor, &app, &draft).await;
    if headers.contains_key("x-part") {
        return Ok(Html(preview::part(&preview, &app, &visitor).into_string()).into_response());
    }
    let abuse = admin.apps.abuse(&app, Window::Hour).ok_or_else(|| no_such_app(&visitor))?;
    Ok(whole(&admin, &visitor, &abuse, Window::Hour, &Card { draft, preview, said: None }))
}

/// Puts the form's settings in force. Enforcing needs that this session has seen their replay.
pub(super) async fn save(
    State(admin): State<Arc<Admin>>,
    Path(app): Path<String>,
    Posted { visitor, fields }: Posted,
) -> Result<Response, Response> {
    visitor.needs(Ability::Write)?;
    let draft = Draft::read(&fields);
    let mode = fields.text("mode");
    let saved = match draft.policy(mode) {
        Err(faults) => Err(Failed::Faults(faults)),
        Ok(_)
            if mode == "enforce"
                && !admin.sessions.has_replayed(&visitor.session.key, &mark(&app, &draft)) =>
        {
            Err(Failed::NotReplayed)
        }
        Ok(policy) => {
            let version = fields.text("version").parse().ok();
            let put = admin.apps.put(&app, version, &policy.to_json(), &visitor.signature()).await;
            put.map_err(Failed::Refused)
        }
    };
    let failed = match saved {
        Ok(_) => {
            return Ok(Redirect::to(&format!("/apps/{}?saved=1", path_part(&app))).into_response());
        }
        Err(failed) => failed,
    };
    let abuse = admin.apps.abuse(&app, Window::Hour).ok_or_else(|| no_such_app(&visitor))?;
    let (status, said, faults) = failed.told();
    let preview = if faults.is_empty() { Preview::None } else { Preview::Faults(faults) };
    let mut answer =
        whole(&admin, &visitor, &abuse, Window::Hour, &Card { draft, preview, said: Some(said) });
    *answer.status_mut() = status;
    Ok(answer)
}

/// Replays the draft and notes that this session has seen it.
async fn replay(admin: &Arc<Admin>, visitor: &Visitor, app: &str, draft: &Draft) -> Preview {
    if !visitor.caller.may(Ability::ReadSensitive) {
        return Preview::NotAllowed;
    }
    let policy = match draft.policy("log_only") {
        Ok(policy) => policy,
        Err(faults) => return Preview::Faults(faults),
    };
    match admin.apps.replay(app, policy.to_json()).await {
        Ok(replay) => {
            admin.sessions.note_replayed(&visitor.session.key, mark(app, draft));
            let replay = Box::new(read(&replay));
            if is_enforced(admin, app, draft) { Preview::InForce(replay) } else { Preview::Replayed(replay) }
        }
        Err(PolicyRefused::Invalid(faults)) => Preview::Faults(faults),
        Err(refused) => Preview::Unavailable(refused.to_string()),
    }
}

/// Whether these very settings are being enforced already.
fn is_enforced(admin: &Admin, app: &str, draft: &Draft) -> bool {
    let policy = admin.apps.abuse(app, Window::Minute).and_then(|abuse| abuse.policy);
    policy.is_some_and(|policy| policy.mode == "enforce" && Draft::of(&policy) == *draft)
}

/// What a replay was of: the app and all settings.
fn mark(app: &str, draft: &Draft) -> access::TokenHash {
    access::hash(format!("{app}\n{draft:?}").as_bytes())
}

/// Why a policy was not saved.
enum Failed {
    Faults(Vec<PolicyFault>),
    NotReplayed,
    Refused(PolicyRefused),
}

impl Failed {
    fn told(self) -> (StatusCode, Said, Vec<PolicyFault>) {
        match self {
            Self::Faults(faults) | Self::Refused(PolicyRefused::Invalid(faults)) => {
                let said =
                    Said::Bad("Not saved: the settings have faults. The policy in force stays.".into());
                (StatusCode::UNPROCESSABLE_ENTITY, said, faults)
            }
            Self::NotReplayed => {
                let said =
                    Said::Bad("Not enforced: look at the preview of exactly these settings first.".into());
                (StatusCode::CONFLICT, said, Vec::new())
            }
            Self::Refused(PolicyRefused::Stale { version }) => {
                let said = Said::Bad(format!(
                    "Not saved: somebody has saved version {version} meanwhile. Your draft is still here; saving again puts it over theirs."
                ));
                (StatusCode::PRECONDITION_FAILED, said, Vec::new())
            }
            Self::Refused(refused) => {
                (StatusCode::SERVICE_UNAVAILABLE, Said::Bad(format!("Not saved: {refused}.")), Vec::new())
            }
        }
    }
}

fn no_such_app(visitor: &Visitor) -> Response {
    frame::problem(Some(visitor), StatusCode::NOT_FOUND, "No such app", "There is no app of this name here.")
}

fn whole(admin: &Admin, visitor: &Visitor, abuse: &Abuse, window: Window, card: &Card) -> Response {
    let app = &abuse.app;
    let traffic = admin.apps.traffic(app, window).unwrap_or_default();
    let events = format!("/events/apps/{}?window={}", path_part(app), window.name());
    let content = html! {
        div.head {
            h1 { (app) }
            span #status { (status_part(abuse)) }
            p { a href="/" { "Overview" } " / Traffic" }
        }
        section.gap aria-label="Traffic" {
            div.row {
                h2 { "Traffic" }
                div.tabs role="navigation" aria-label="Window" {
                    @for other in Window::ALL {
                        a href={ "/apps/" (path_part(app)) "?window=" (other.name()) }
                            aria-current=[(other == window).then_some("true")] { (other.title()) }
                    }
                }
            }
            div #traffic .gap { (traffic_part(abuse, &traffic)) }
        }
        (card::render(visitor, abuse, card))
    };
    frame::page(visitor, Place::Overview, app, Some(&events), &content)
}
