//! What a draft would have done to the traffic that has just been, and the button that goes with it.

use maud::{Markup, html};

use super::{
    chart::{self, Bar},
    overview::path_part,
    traffic::reason_name,
    visitor::Visitor,
    words::{Plural, count, percent, time},
};
use crate::{
    admin::shapes::{PolicyFault, Replay, ReplayStep},
    config::Ability,
};

/// Clients that are shown.
const CLIENTS_MAX: usize = 8;

/// What the preview shows.
pub(super) enum Preview {
    /// Not asked for yet: the script asks, or the button does.
    None,
    /// This token may not see it.
    NotAllowed,
    Faults(Vec<PolicyFault>),
    Unavailable(String),
    Replayed(Box<Replay>),
    /// The same, of the settings that are being enforced.
    InForce(Box<Replay>),
}

pub(super) fn part(preview: &Preview, app: &str, visitor: &Visitor) -> Markup {
    match preview {
        Preview::None => html! {
            p.muted { "See what these settings would have blocked of the traffic that has just been." }
            (ask(app))
        },
        Preview::NotAllowed => html! {
            p.muted { "The preview shows client addresses: it needs a token with the ability read:sensitive. Enforcing comes after the preview." }
        },
        Preview::Faults(faults) => html! {
            div.note.bad role="alert" {
                strong { "These settings can't be used." }
                ul { @for fault in faults { li { strong { (fault.field) } " " (fault.message) } } }
            }
        },
        Preview::Unavailable(why) => html! { p.note.bad { (why) } (ask(app)) },
        Preview::Replayed(replay) => html! { (replayed(replay)) (enforce(replay, app, visitor)) },
        Preview::InForce(replay) => html! {
            (replayed(replay))
            p.hint { "These settings are in force. Change one to see what another would block." }
        },
    }
}

/// For browsers without a script.
fn ask(app: &str) -> Markup {
    html! { div { button formaction={ "/apps/" (path_part(app)) "/preview" } { "Preview" } } }
}

fn replayed(replay: &Replay) -> Markup {
    let total = replay.would_block.total;
    let bar = |step: &ReplayStep| Bar {
        at_ms: step.at_ms,
        allowed: step.allowed,
        would_block: step.would_block,
        ..Bar::default()
    };
    let drawn: Vec<Bar> = replay.series.iter().map(bar).collect();
    let text = format!("{} of {} requests would have been blocked", count(total), count(replay.requests));
    html! {
        @if replay.requests == 0 {
            p { strong { "No recorded traffic." } }
            p.muted.small { "The preview replays the last minutes of requests. Send some to this app, then look again." }
        } @else {
            div {
                p.big #would-block data-total=(total) { (percent(total, replay.requests)) }
                p {
                    (count(total)) " of " (Plural(replay.requests, "request")) " would have been blocked"
                }
                p.muted.small { "Replayed from " (time(replay.from_ms)) " to " (time(replay.to_ms)) " UTC" }
            }
            (chart::bars(&drawn, "chart low", &text))
            @if let Some(warning) = &replay.warning { p.note.warn.small { (warning) } }
            @if total > 0 {
                ul.row.small {
                    @for (reason, number) in replay.would_block.by_reason.iter().filter(|(_, number)| **number > 0) {
                        li { (reason_name(reason)) ": " (count(*number)) }
                    }
                }
            }
            @if !replay.top_clients.is_empty() { (clients(replay)) }
        }
    }
}

fn clients(replay: &Replay) -> Markup {
    html! {
        table {
            thead { tr { th { "Client" } th.number { "Requests" } th.number { "Would block" } } }
            tbody {
                @for client in replay.top_clients.iter().take(CLIENTS_MAX) {
                    tr {
                        td.code.break { (client.client) }
                        td.number { (count(client.requests)) }
                        td.number { (count(client.would_block)) }
                    }
                }
            }
        }
    }
}

fn enforce(replay: &Replay, app: &str, visitor: &Visitor) -> Markup {
    let may = visitor.caller.may(Ability::Write);
    html! {
        div.gap {
            div {
                button.primary #enforce formaction={ "/apps/" (path_part(app)) "/policy" } name="mode" value="enforce" disabled[!may] {
                    "Enforce these settings"
                }
            }
            p.hint {
                @if !may { "Changing a policy needs a token with the ability write." }
                @else if replay.requests == 0 { "Nothing was replayed, so nobody knows yet what this would block." }
                @else if replay.would_block.total == 0 { "None of these requests would have been refused." }
                @else { "Requests like those above will get 429 or 403 from then on." }
            }
        }
    }
}
