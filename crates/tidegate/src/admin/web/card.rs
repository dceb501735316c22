//! The card of an app's abuse defense: the limit, the lists, and beside them the preview of the draft.

use maud::{Markup, html};

use super::{
    draft::Draft,
    frame,
    preview::{self, Preview},
    visitor::Visitor,
};
use crate::{
    admin::{path_part, shapes::Abuse},
    config::Ability,
};

/// What the card says about what was just done.
pub(super) enum Said {
    Good(String),
    Bad(String),
}

pub(super) struct Card {
    pub(super) draft: Draft,
    pub(super) preview: Preview,
    pub(super) said: Option<Said>,
}

impl Draft {
    /// The policy in force; where that has no limit yet, with the one that the traffic suggests.
    pub(super) fn prefilled(abuse: &Abuse) -> Self {
        let policy = abuse.policy.clone().unwrap_or_default();
        let mut draft = Self::of(&policy);
        if let (true, Some(suggested)) = (policy.rps <= 0.0, abuse.suggested_rps) {
            draft.rps = suggested.to_string();
            draft.burst = suggested.saturating_mul(2).max(1).to_string();
        }
        draft
    }
}

pub(super) fn render(visitor: &Visitor, abuse: &Abuse, card: &Card) -> Markup {
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
