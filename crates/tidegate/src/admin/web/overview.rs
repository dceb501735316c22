//! Every app at a glance.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use maud::{Markup, html};

use super::{
    chart::{self, Bar},
    events,
    frame::{self, Place},
    traffic::badge,
    visitor::Visitor,
    words::{Plural, count},
};
use crate::{
    admin::{
        Admin,
        shapes::{App, Point},
    },
    config::Ability,
};

pub(super) async fn page(State(admin): State<Arc<Admin>>, visitor: Visitor) -> Result<Response, Response> {
    visitor.needs(Ability::Read)?;
    let content = html! {
        div.head {
            h1 { "Overview" }
            p { "Every app behind this Tidegate, and what its abuse defense does." }
        }
        section.card aria-label="Apps" {
            div #apps { (apps_part(&admin)) }
        }
    };
    Ok(frame::page(&visitor, Place::Overview, "Overview", Some("/events/overview"), &content))
}

pub(super) async fn events(State(admin): State<Arc<Admin>>, visitor: Visitor) -> Result<Response, Response> {
    visitor.needs(Ability::Read)?;
    Ok(events::stream(admin, visitor, |admin, _| async move { Some(vec![("apps", apps_part(&admin))]) }))
}

fn apps_part(admin: &Admin) -> Markup {
    let apps = admin.apps.overview();
    html! {
        @if apps.is_empty() {
            div.empty {
                strong { "No app yet" }
                p { "Name one in tidegate.toml and reload with SIGHUP:" }
                p.code { "[apps.shop]" br; "domains = [\"shop.example\"]" br; "upstreams = [\"http://127.0.0.1:3000\"]" }
            }
        } @else {
            table.stack {
                thead { tr {
                    th { "App" } th { "Status" } th { "Last hour" }
                    th.number { "Allowed" } th.number { "Would block" } th.number { "Blocked" }
                } }
                tbody { @for app in &apps { (app_row(app)) } }
            }
        }
    }
}

fn app_row(app: &App) -> Markup {
    let counters = &app.counters;
    let drawn: Vec<Bar> =
        app.sparkline.iter().map(|requests| Bar { allowed: *requests, ..Bar::default() }).collect();
    let text = format!("{} in the last hour", Plural(app.sparkline.iter().sum(), "request"));
    html! {
        tr {
            td.break { a href={ "/apps/" (path_part(&app.app)) } { (app.app) } }
            td { (badge(&app.status)) }
            td.full { (chart::sparkline(&drawn, &text)) }
            td.number data-name="Allowed" { (count(counters.allowed)) }
            td.number data-name="Would block" { (count(counters.would_block_total())) }
            td.number data-name="Blocked" { (count(counters.blocked_total())) }
        }
    }
}

/// A name as a part of a path.
pub(super) fn path_part(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    name.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

pub(super) fn bars(series: &[Point]) -> Vec<Bar> {
    let bar = |point: &Point| Bar {
        at_ms: point.at_ms,
        allowed: point.allowed,
        would_block: point.would_block,
        blocked: point.blocked,
    };
    series.iter().map(bar).collect()
}
