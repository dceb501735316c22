//! Who changed what, and when.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use maud::html;

use super::{
    frame::{self, Place},
    visitor::Visitor,
};
use crate::{
    admin::{Admin, api::audit},
    cli::Utc,
    config::Ability,
};

/// What a page shows; the API and the CLI have the rest.
const ENTRIES_MAX: usize = 200;

pub(super) async fn page(State(admin): State<Arc<Admin>>, visitor: Visitor) -> Result<Response, Response> {
    visitor.needs(Ability::Read)?;
    let found = audit::newest(&admin, ENTRIES_MAX).await;
    let content = html! {
        div.head {
            h1 { "Audit" }
            p { "What was changed here, the newest first." }
        }
        @for trouble in &found.missing { p.note.warn { (trouble) } }
        section.card aria-label="Changes" {
            @if found.entries.is_empty() {
                div.empty {
                    strong { "Nothing was changed yet" }
                    p { "Saving a policy, making a token or stopping the guard leaves an entry here." }
                }
            } @else {
                table.stack {
                    thead { tr { th { "When" } th { "What" } th { "Of what" } th { "Details" } th { "Who" } } }
                    tbody {
                        @for entry in &found.entries {
                            tr {
                                td { (Utc(entry.at_ms)) }
                                td { strong { (words(&entry.action)) } }
                                td.full.break { (entry.subject) }
                                td.full.break.muted { (entry.details) }
                                td.full.break data-name="By" { (entry.actor) }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(frame::page(&visitor, Place::Audit, "Audit", None, &content))
}

/// `policy_changed` as people say it.
fn words(action: &str) -> String {
    let mut text = action.replace('_', " ");
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}
