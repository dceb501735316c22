//! How an app stands, and its traffic in numbers: the parts that stay up to date.

use maud::{Markup, html};

use super::{
    chart,
    overview::bars,
    words::{Plural, count, time},
};
use crate::admin::shapes::{Abuse, ByReason, Counters, Status, Traffic};

pub(super) fn status_part(abuse: &Abuse) -> Markup {
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

pub(super) fn traffic_part(abuse: &Abuse, traffic: &Traffic) -> Markup {
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
