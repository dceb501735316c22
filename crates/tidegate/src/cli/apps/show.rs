//! Apps and policies as people read them.

use std::fmt::Write;

use crate::{
    admin::shapes::{Abuse, App, Apps, ByReason, Network, Replay},
    cli::words::{Column, Utc, printable, table},
};

pub(super) fn apps(apps: &Apps) -> String {
    if apps.apps.is_empty() {
        return "No app yet: name one under [apps.<name>] of the configuration.\n".to_owned();
    }
    let row = |app: &App| {
        let counters = &app.counters;
        [
            app.app.clone(),
            app.status.condition.clone(),
            counters.allowed.to_string(),
            counters.would_block_total().to_string(),
            counters.blocked_total().to_string(),
            counters.fail_open.to_string(),
        ]
    };
    let columns = [
        Column::Left("app"),
        Column::Left("status"),
        Column::Right("allowed"),
        Column::Right("would block"),
        Column::Right("blocked"),
        Column::Right("fail open"),
    ];
    printable(&table(columns, &apps.apps.iter().map(row).collect::<Vec<_>>()))
}

pub(super) fn abuse(abuse: &Abuse) -> String {
    let Abuse { app, version, policy, status, counters, suggested_rps } = abuse;
    let policy = policy.clone().unwrap_or_default();
    let mut text = format!("{app}: {}, version {version}\n", status.condition);
    if !status.message.is_empty() {
        let _ = writeln!(text, "  {}", status.message);
    }
    let limit = if policy.rps > 0.0 {
        format!("{} requests a second for each client, bursts of {}", policy.rps, policy.burst)
    } else {
        "no limit".to_owned()
    };
    let suggested = suggested_rps.map(|rps| format!(" (suggested: {rps})")).unwrap_or_default();
    let _ = writeln!(text, "\n  mode      {}\n  limit     {limit}{suggested}", policy.mode);
    let networks = |list: &[Network]| list.iter().map(network).collect::<Vec<_>>().join(", ");
    for (name, list) in [
        ("denied", networks(&policy.deny_cidrs)),
        ("agents", policy.deny_user_agents.join(", ")),
        ("allowed", networks(&policy.allow_cidrs)),
    ] {
        if !list.is_empty() {
            let _ = writeln!(text, "  {name:<8}  {list}");
        }
    }
    if policy.deny_missing_user_agent {
        text.push_str("  agents    none at all is denied\n");
    }
    for route in &policy.routes {
        let methods = route.methods.as_ref().map_or_else(|| "every method".to_owned(), |all| all.join(","));
        let _ = writeln!(
            text,
            "  route     {methods} {} {} bursts {}",
            route.path_prefix, route.rps, route.burst
        );
    }
    let _ = writeln!(
        text,
        "\n  last {}: {} allowed, {} would be blocked{}, {} blocked{}, {} failed open",
        counters.window,
        counters.allowed,
        counters.would_block_total(),
        reasons(&counters.would_block),
        counters.blocked_total(),
        reasons(&counters.blocked),
        counters.fail_open,
    );
    printable(&text)
}

pub(super) fn replay(replay: &Replay) -> String {
    if replay.requests == 0 {
        return "Nothing to replay: the access log holds no request of this app.\n".to_owned();
    }
    let total = &replay.would_block;
    let mut text = format!(
        "Replayed {} requests, {} to {}:\n  {} would have been blocked{}\n",
        replay.requests,
        Utc(replay.from_ms),
        Utc(replay.to_ms),
        total.total,
        reasons(&total.by_reason),
    );
    if let Some(warning) = &replay.warning {
        let _ = writeln!(text, "  {warning}");
    }
    if !replay.top_clients.is_empty() {
        let rows = replay.top_clients.iter().take(CLIENTS_MAX);
        let rows = rows.map(|client| {
            [client.client.clone(), client.requests.to_string(), client.would_block.to_string()]
        });
        let columns = [Column::Left("client"), Column::Right("requests"), Column::Right("would block")];
        let _ = write!(text, "\n{}", table(columns, &rows.collect::<Vec<_>>()));
    }
    printable(&text)
}

const CLIENTS_MAX: usize = 10;

fn reasons(by_reason: &ByReason) -> String {
    let some: Vec<_> = by_reason.iter().filter(|(_, number)| **number > 0).collect();
    if some.is_empty() {
        return String::new();
    }
    let each: Vec<_> = some.iter().map(|(reason, number)| format!("{reason} {number}")).collect();
    format!(" ({})", each.join(", "))
}

fn network(network: &Network) -> String {
    match network {
        Network::Plain(cidr) => cidr.clone(),
        Network::Noted { cidr, note, expires_at_ms } => {
            let until = expires_at_ms.map(|at| format!(" until {}", Utc(at))).unwrap_or_default();
            let note = note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
            format!("{cidr}{until}{note}")
        }
    }
}
