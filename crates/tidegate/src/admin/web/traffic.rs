//! An app's page: its traffic, and the card of its abuse defense.

use std::sync::Arc;

use axum::{
    extract::{Path, Query, State},
    response::{Html, IntoResponse, Redirect, Response},
};
use http::{HeaderMap, StatusCode};
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    chart,
    draft::Draft,
    events,
    frame::{self, Place},
    overview::{bars, path_part},
    preview::{self, Preview},
    visitor::{Posted, Visitor},
    words::{Plural, count, time},
};
use crate::{
    admin::{
        Admin, access,
        apps::{PolicyRefused, Window, read},
        shapes::{Abuse, ByReason, Counters, PolicyFault, Status, Traffic},
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

/// What the card says about what was just done.
enum Said {
    Good(String),
    Bad(String),
}

struct Card {
    draft: Draft,
    preview: Preview,
    said: Option<Said>,
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
        (defense_card(visitor, abuse, card))
    };
    frame::page(visitor, Place::Overview, app, Some(&events), &content)
}

fn status_part(abuse: &Abuse) -> Markup {
    html! { (badge(&abuse.status)) " " span.muted.small { (abuse.status.message) } }
}

pub(super) fn badge(status: &Status) -> Markup {
    let (class, word) = match status.condition.as_str() {
        "Enforcing" => ("good", "Enforcing"),
        "LogOnly" => ("", "Log only"),
        "Off" => ("off", "Off"),
        "NoRoutes" => ("off", "No routes"),
        "ClientIPHidden" => ("warn", "Client IP hidden"),
        "InvalidPolicy" => ("bad", "Invalid policy"),
        "Pending" => ("warn", "Pending"),
        other => ("", other),
    };
    html! { span class={ "badge " (class) } data-condition=(status.condition) { (word) } }
}

pub(super) fn reason_name(reason: &str) -> &str {
    match reason {
        "rate_limit" => "Over the rate",
        "deny_cidr" => "Denied network",
        "deny_user_agent" => "Denied User-Agent",
        "missing_user_agent" => "No User-Agent",
        other => other,
    }
}

fn traffic_part(abuse: &Abuse, traffic: &Traffic) -> Markup {
    let counters = &traffic.counters;
    html! {
        div.tiles {
            (tile("allowed", "Allowed", counters.allowed))
            (tile("would", "Would block", counters.would_block_total()))
            (tile("blocked", "Blocked", counters.blocked_total()))
            (tile("plain", "Failed open", counters.fail_open))
        }
        @if traffic.firewall > 0 {
            p.muted.small { (Plural(traffic.firewall, "request")) " more did not get past this instance's firewall." }
        }
        @if counters.fail_open > 0 {
            p.note.warn { "Some requests were served because they could not be judged. The log says why." }
        }
        div.card {
            (history(abuse, traffic))
            (reasons(counters))
        }
    }
}

fn tile(class: &str, name: &str, number: u64) -> Markup {
    html! { div.tile { strong data-count=(class) { (count(number)) } span class=(class) { (name) } } }
}

fn history(abuse: &Abuse, traffic: &Traffic) -> Markup {
    let drawn = bars(&traffic.series);
    let peak = chart::peak(&drawn);
    if peak == 0 {
        return html! {
            div.empty {
                strong { "No traffic in this window" }
                p { "Requests to this app show here within seconds." }
                @if abuse.status.condition == "NoRoutes" { p { "The app has no route yet: give it a domain, or start it." } }
            }
        };
    }
    let text = format!("Requests over time, at most {} in one bar", count(peak));
    html! {
        div {
            div.axis { span { (Plural(peak, "request")) " " (step_words(traffic.step_ms)) } }
            (chart::bars(&drawn, "chart", &text))
            div.axis {
                span { (drawn.first().map(|bar| time(bar.at_ms)).unwrap_or_default()) }
                span { "now, UTC" }
            }
        }
    }
}

fn step_words(step_ms: u64) -> &'static str {
    match step_ms {
        1000 => "in a second",
        60_000 => "in a minute",
        900_000 => "in 15 minutes",
        _ => "in a bar",
    }
}

fn reasons(counters: &Counters) -> Markup {
    let mut names: Vec<&String> = counters.would_block.keys().chain(counters.blocked.keys()).collect();
    names.sort();
    names.dedup();
    let number = |list: &ByReason, name: &str| list.get(name).copied().unwrap_or(0);
    let rows: Vec<_> = names
        .into_iter()
        .map(|name| (name, number(&counters.would_block, name), number(&counters.blocked, name)))
        .filter(|(_, would_block, blocked)| would_block + blocked > 0)
        .collect();
    html! {
        @if !rows.is_empty() {
            table {
                thead { tr { th { "Reason" } th.number { "Would block" } th.number { "Blocked" } } }
                tbody {
                    @for (name, would_block, blocked) in rows {
                        tr {
                            td { (reason_name(name)) }
                            td.number { (count(would_block)) }
                            td.number { (count(blocked)) }
                        }
                    }
                }
            }
        }
    }
}

impl Draft {
    /// The policy in force; where that has no limit yet, with the one that the traffic suggests.
    fn prefilled(abuse: &Abuse) -> Self {
        let policy = abuse.policy.clone().unwrap_or_default();
        let mut draft = Self::of(&policy);
        if let (true, Some(suggested)) = (policy.rps <= 0.0, abuse.suggested_rps) {
            draft.rps = suggested.to_string();
            draft.burst = suggested.saturating_mul(2).max(1).to_string();
        }
        draft
    }
}

fn defense_card(visitor: &Visitor, abuse: &Abuse, card: &Card) -> Markup {
    let Card { draft, preview, said } = card;
    let mode = abuse.policy.as_ref().map_or("", |policy| policy.mode.as_str());
    let app = path_part(&abuse.app);
    let may = visitor.caller.may(Ability::Write);
    html! {
        section.card aria-labelledby="defense" {
            div.head {
                h2 #defense { "Abuse defense" }
                span.muted.small { "Mode: " (mode_name(mode)) ", version " (abuse.version) }
            }
            @match said {
                Some(Said::Good(text)) => p.note.good role="status" { (text) },
                Some(Said::Bad(text)) => p.note.bad role="alert" { (text) },
                None => {},
            }
            form #policy .split method="post" action={ "/apps/" (app) "/policy" } data-preview={ "/apps/" (app) "/preview" } {
                (frame::csrf(visitor))
                input type="hidden" name="version" value=(abuse.version);
                fieldset disabled[!may && !visitor.caller.may(Ability::ReadSensitive)] {
                    (limit_fields(abuse, draft))
                    (list_fields(draft))
                    div.row {
                        button name="mode" value="log_only" disabled[!may] {
                            @if mode == "enforce" { "Go back to log only" } @else { "Save, log only" }
                        }
                        @if mode != "off" {
                            button.danger name="mode" value="off" disabled[!may] { "Turn off" }
                        }
                    }
                    p.hint {
                        @if may { "Log only counts what would be blocked and blocks nothing." }
                        @else { "Changing a policy needs a token with the ability write." }
                    }
                }
                div.gap {
                    h3 { "Preview" }
                    div #preview .preview aria-live="polite" aria-busy=[waits(preview).then_some("true")] { (preview::part(preview, &abuse.app, visitor)) }
                }
            }
        }
    }
}

fn mode_name(mode: &str) -> &str {
    match mode {
        "off" => "off",
        "log_only" => "log only",
        "enforce" => "enforce",
        _ => "none that can be used",
    }
}

fn waits(preview: &Preview) -> bool {
    matches!(preview, Preview::None)
}

fn limit_fields(abuse: &Abuse, draft: &Draft) -> Markup {
    html! {
        div.fields {
            div.field {
                label for="rps" { "Requests a second" }
                input #rps type="number" name="rps" min="0" max="1000000" step="any" inputmode="decimal" value=(draft.rps) aria-describedby="rps-hint";
            }
            div.field {
                label for="burst" { "Burst" }
                input #burst type="number" name="burst" min="0" step="1" inputmode="numeric" value=(draft.burst);
            }
            div.field {
                label for="ipv6_prefix" { "One IPv6 client is a /" }
                input #ipv6_prefix type="number" name="ipv6_prefix" min="0" max="128" step="1" inputmode="numeric" value=(draft.ipv6_prefix);
            }
        }
        p #rps-hint .hint {
            "For each client address; 0 turns the limit off and leaves the lists."
            @if let Some(suggested) = abuse.suggested_rps {
                @if draft.rps == suggested.to_string() && !is_limited(abuse) {
                    " Not in force yet: filled in from the busiest clients of late."
                } @else {
                    " The busiest clients of late suggest " strong { (suggested) } "."
                }
            }
        }
    }
}

fn is_limited(abuse: &Abuse) -> bool {
    abuse.policy.as_ref().is_some_and(|policy| policy.rps > 0.0)
}

fn list_fields(draft: &Draft) -> Markup {
    let list = |id: &str, title: &str, hint: &str, placeholder: &str, text: &str| {
        html! {
            div.field {
                label for=(id) { (title) }
                textarea id=(id) name=(id) rows="3" spellcheck="false" autocapitalize="off" placeholder=(placeholder) aria-describedby={ (id) "-hint" } { (text) }
                p.hint id={ (id) "-hint" } { (hint) }
            }
        }
    };
    html! {
        (list("deny_cidrs", "Refused networks", "One a line; until= and # a note if need be.", "203.0.113.0/24 until=2026-12-31 # scraping", &draft.deny_cidrs))
        (list("deny_user_agents", "Refused User-Agents", "One a line: a part of the name, or re: and a pattern.", "BadBot", &draft.deny_user_agents))
        label.check {
            input type="checkbox" name="deny_missing_user_agent" value="on" checked[draft.deny_missing_user_agent];
            span { "Refuse requests without a User-Agent" }
        }
        details open[!draft.allow_cidrs.is_empty() || !draft.routes.is_empty()] {
            summary { "Exceptions and stricter paths" }
            div.gap {
                (list("allow_cidrs", "Never refused networks", "One a line; looked at first.", "192.0.2.10 # office", &draft.allow_cidrs))
                (list("routes", "Stricter paths", "One a line: methods if need be, path, requests a second, burst.", "POST /login 0.5 5", &draft.routes))
            }
        }
    }
}
