//! Disk use while rows come and go.

use std::time::Duration;

use anyhow::Result;

use super::Bench;
use crate::{
    bench::{
        load::{self, Check, Http1, Order, Plan, RpcTemplate},
        report::{Table, grouped, mebibytes},
        servers::{self, Server, System},
    },
    clock,
};

/// Between two looks at the disk.
const SLICE: Duration = Duration::from_secs(2);

struct Look {
    disk: f64,
    live: Option<f64>,
    rows: Option<f64>,
}

pub(super) fn run(bench: &Bench) -> Result<String> {
    let total = Duration::from_secs(bench.settings.churn_seconds);
    let server = Server::start(System::TidegateProcess, &bench.tidegate, &bench.folder)?;
    let mut wire = Http1::checks(RpcTemplate::new(Check::OneWindow)?, servers::SECRET);
    let plan = Plan { connections: 50, keys: bench.settings.keys, order: Order::RandomFor(SLICE) };
    let started = clock::now();
    let (mut checks, mut looks) = (0, Vec::new());
    while started.elapsed() < total {
        checks += server.explain(load::drive(&mut wire, server.address, plan))?.answers();
        let disk = server.disk_bytes()? as f64;
        looks.push(Look { disk, live: server.metric(LIVE_BYTES), rows: server.metric(ROWS) });
    }
    Ok(describe(total, checks, &looks))
}

/// What the store publishes: the size of the live rows as the log holds them, and their number.
const LIVE_BYTES: &str = "tidegate_store_live_bytes";
const ROWS: &str = "tidegate_store_entries";

/// What the store may take up whatever is live: seven segments.
const CONSTANT_BYTES: f64 = 7.0 * 16_777_216.0;

/// Below this the two segments that every store has weigh more than the data.
const SMALL_BYTES: f64 = 67_108_864.0;

fn describe(total: Duration, checks: u64, looks: &[Look]) -> String {
    let most = |figure: fn(&Look) -> Option<f64>| looks.iter().filter_map(figure).reduce(f64::max);
    let unknown = || "unknown".to_owned();
    let mut table = Table::new(&["figure", "most"]);
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("disk", mebibytes(most(|look| Some(look.disk)).unwrap_or_default()));
    row("live data", most(|look| look.live).map_or_else(unknown, mebibytes));
    row("live rows", most(|look| look.rows).map_or_else(unknown, grouped));
    let ratio = most(|look| look.live.filter(|live| *live > SMALL_BYTES).map(|live| look.disk / live));
    row(
        "disk over live data, from 64 MiB of it on",
        ratio.map_or_else(unknown, |ratio| format!("{ratio:.2}")),
    );
    let beyond = most(|look| {
        look.live.filter(|live| *live > SMALL_BYTES).map(|live| (look.disk - CONSTANT_BYTES) / live)
    });
    row(
        "the same without seven segments, which are allowed beside three times the live data",
        beyond.map_or_else(unknown, |ratio| format!("{ratio:.2}")),
    );
    let last = looks.last().and_then(|look| look.live.map(|live| look.disk / live));
    row("disk over live data, at the end", last.map_or_else(unknown, |ratio| format!("{ratio:.2}")));
    format!(
        "### Disk use under load\n\n{} checks in {}, `process`. A check leaves a record of its operation for three \
         minutes, so a longer run sees rows expire as fast as they come.\n\n{}",
        grouped(checks as f64),
        clock::in_words(total),
        table.into_text()
    )
}
