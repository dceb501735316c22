//! What became different between two policies, in words for the audit.

use std::collections::HashSet;

use tidegate_core::policy::{ListEntry, PolicyDocument};

/// A line for each field that differs.
pub(super) fn between(before: Option<&PolicyDocument>, after: &PolicyDocument) -> Vec<String> {
    let defaults = PolicyDocument::default();
    let before = before.unwrap_or(&defaults);
    let mut lines = Vec::new();
    let mut field = |name: &str, from: String, to: String| {
        if from != to {
            lines.push(format!("{name}: {from} -> {to}"));
        }
    };
    field("mode", before.mode.as_str().into(), after.mode.as_str().into());
    field("rps", text(&before.rps), text(&after.rps));
    field("burst", before.burst.to_string(), after.burst.to_string());
    field("ipv6_prefix", before.ipv6_prefix.to_string(), after.ipv6_prefix.to_string());
    field(
        "deny_missing_user_agent",
        before.deny_missing_user_agent.to_string(),
        after.deny_missing_user_agent.to_string(),
    );
    lines.extend(list("deny_cidrs", &networks(&before.deny_cidrs), &networks(&after.deny_cidrs)));
    lines.extend(list("allow_cidrs", &networks(&before.allow_cidrs), &networks(&after.allow_cidrs)));
    lines.extend(list("deny_user_agents", &before.deny_user_agents, &after.deny_user_agents));
    let routes = |document: &PolicyDocument| document.routes.iter().map(text).collect::<Vec<_>>();
    lines.extend(list("routes", &routes(before), &routes(after)));
    lines
}

/// How many entries came and went; which ones, where they are few.
fn list(name: &str, before: &[String], after: &[String]) -> Option<String> {
    const NAMED_MAX: usize = 3;
    let (old, new): (HashSet<_>, HashSet<_>) = (before.iter().collect(), after.iter().collect());
    let came: Vec<_> = after.iter().filter(|entry| !old.contains(entry)).collect();
    let went: Vec<_> = before.iter().filter(|entry| !new.contains(entry)).collect();
    if came.is_empty() && went.is_empty() {
        return None;
    }
    let few = came.len() + went.len() <= NAMED_MAX;
    let shown = |sign: char, entries: &[&String]| match (entries.len(), few) {
        (0, _) => String::new(),
        (_, true) => entries.iter().map(|entry| format!(" {sign}{entry}")).collect(),
        (count, false) => format!(" {sign}{count}"),
    };
    Some(format!("{name}:{}{}", shown('+', &came), shown('-', &went)))
}

fn networks(entries: &[ListEntry]) -> Vec<String> {
    entries.iter().map(|entry| text(entry).trim_matches('"').to_owned()).collect()
}

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
