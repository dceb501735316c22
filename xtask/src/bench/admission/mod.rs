//! What admission costs, beside another limiter for the same keys; and that a flood of datagrams leaves HTTP
//! alone.

mod costs;
mod flood;

use std::time::Duration;

use anyhow::Result;
use tidegate_admission::{Profile, profile::Bounds};

use super::{
    machine,
    report::{self, Table, grouped, median},
};
use crate::shell;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Settings {
    /// A short run, to see that everything works; its figures mean little and are not published.
    #[arg(long)]
    quick: bool,
    /// Rounds; within each, all cases take their turns.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Keys that are tracked.
    #[arg(long, default_value_t = 1_000_000)]
    keys: usize,
    /// Decisions of one turn.
    #[arg(long, default_value_t = 2_000_000)]
    decisions: usize,
    /// How long a turn of HTTP with or without a flood lasts.
    #[arg(long, default_value_t = 8, value_name = "SECONDS")]
    turn_seconds: u64,
    /// Requests a second while the flood is on and while it is not.
    #[arg(long, default_value_t = 1000)]
    requests_per_second: u32,
}

pub(crate) fn run(settings: &Settings) -> Result<()> {
    let settings = settings.clone().shortened();
    let costs = costs::measure(&settings)?;
    let floods = flood::measure(&settings)?;
    let text = format!(
        "Measured on {}.\n\n### Costs\n\n{}\n\n### A flood of datagrams\n\n{}",
        machine::describe(&shell::root()),
        costs_text(&settings, &costs),
        floods_text(&settings, &floods)
    );
    println!("\n{text}");
    report::publish("admission", &text, !settings.quick)
}

fn costs_text(settings: &Settings, costs: &[costs::Case]) -> String {
    let mut table = Table::new(&["case", "ns", "ns of `governor`", "over `governor`", "bytes a tracked key"]);
    for case in costs {
        let (ours, theirs) = (median(case.ours_ns.iter().copied()), median(case.governor_ns.iter().copied()));
        table.row([
            case.name.clone(),
            grouped(ours),
            grouped(theirs),
            format!("{:.2}", ours / theirs),
            format!("{:.1}", case.bytes_a_key),
        ]);
    }
    format!(
        "Keys chosen at random; one thread; ns of CPU. A request is admitted by both stages, in six dimensions, \
         and its leases end; a datagram, whose capability was read before, is admitted by both, in six. Neither \
         allocates, which tests assert. Beside it, six checks of one keyed limiter of the `governor` crate with \
         as many keys, in turn. {} rounds of {} decisions; medians.\n\n{}",
        settings.rounds,
        grouped(settings.decisions as f64),
        table.into_text()
    )
}

fn floods_text(settings: &Settings, floods: &[flood::Case]) -> String {
    let mut table = Table::new(&[
        "flood",
        "p50 µs",
        "p99 µs",
        "requests/s",
        "datagrams sent/s",
        "datagrams read/s",
        "HTTP keys",
    ]);
    for case in floods {
        let middle = |figure: fn(&flood::Turn) -> f64| median(case.turns.iter().map(figure));
        table.row([
            case.flood.name().to_owned(),
            grouped(middle(|turn| turn.latency.quantile_us(0.5))),
            grouped(middle(|turn| turn.latency.quantile_us(0.99))),
            grouped(middle(|turn| turn.latency.count() as f64 / turn.seconds)),
            grouped(middle(|turn| turn.sent as f64 / turn.seconds)),
            grouped(middle(|turn| turn.read as f64 / turn.seconds)),
            grouped(middle(|turn| turn.http_keys as f64)),
        ]);
    }
    let p99 = |case: &flood::Case| median(case.turns.iter().map(|turn| turn.latency.quantile_us(0.99)));
    format!(
        "An axum server and a UDP gate in one process, each on a thread. One thread sends datagrams as fast as the \
         loopback takes them, to the gate or to a socket that nobody reads, and gives way to the service (nice \
         19), as it would on a machine of its own. Another sends {} requests a second on {} connections, timed \
         from when each was due. {} rounds of {} s; medians. The p99 with the flood is {:.2} times that \
         without.\n\n{}",
        grouped(f64::from(settings.requests_per_second)),
        flood::CONNECTIONS,
        settings.rounds,
        settings.turn_seconds,
        floods.last().map_or(0.0, p99) / floods.first().map_or(1.0, p99),
        table.into_text()
    )
}

/// Budgets that nothing here exhausts, and room for all keys.
fn ample(keys: usize) -> Result<Profile> {
    use tidegate_core::tracker::Limit;
    let mut profile = Profile::default();
    let bounds = Bounds {
        window_seconds: 3600,
        max_tracked_keys: u32::try_from(keys.max(100_000) * 4)?,
        critical_tracked_key_reserve: 0,
    };
    let limit = Limit::even(1_000_000_000, 10_000);
    let (http, udp) = (&mut profile.http, &mut profile.udp);
    (http.bounds, udp.bounds) = (bounds, bounds);
    for budget in [
        &mut http.global,
        &mut http.source_prefix,
        &mut http.optional_operation,
        &mut http.tenant,
        &mut http.principal,
        &mut http.resource,
        &mut udp.global,
        &mut udp.source_prefix,
        &mut udp.wire_operation,
        &mut udp.capability,
        &mut udp.role,
        &mut udp.mediation_handle,
    ] {
        *budget = limit;
    }
    Ok(profile)
}

impl Settings {
    fn shortened(self) -> Self {
        if self.quick {
            Self { rounds: 1, keys: 100_000, decisions: 200_000, turn_seconds: 2, ..self }
        } else {
            self
        }
    }

    const fn turn(&self) -> Duration {
        Duration::from_secs(self.turn_seconds)
    }
}
