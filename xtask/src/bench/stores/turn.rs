//! Many callers, each with one update in flight.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use tokio::task::JoinSet;

use super::counter::Counter;
use crate::{
    bench::{
        choice::{Choice, Choices},
        histogram::Histogram,
        process,
    },
    clock,
};

/// What one turn came to. CPU is in µs an update.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Turn {
    pub(super) per_second: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) client_cpu: f64,
    pub(super) server_cpu: f64,
}

impl Turn {
    pub(super) fn cpu(&self) -> f64 {
        self.client_cpu + self.server_cpu
    }
}

/// All callers' updates.
pub(super) struct Load {
    pub(super) latency: Histogram,
    pub(super) elapsed: Duration,
}

/// Lets `callers` update rows by `choice` for `duration`, and looks at what that costs.
pub(super) async fn take(
    counter: &Counter,
    server: Option<u32>,
    choices: &Arc<Choices>,
    (choice, callers): (Choice, usize),
    duration: Duration,
) -> Result<Turn> {
    let of_server = || server.map_or(Ok(0.0), process::family_cpu_seconds);
    let (client_before, server_before) = (process::own_cpu_seconds()?, of_server()?);
    let Load { latency, elapsed } = load(counter, choices, choice, callers, duration).await?;
    let updates = latency.count() as f64;
    Ok(Turn {
        per_second: updates / elapsed.as_secs_f64(),
        p50_us: latency.quantile_us(0.5),
        p99_us: latency.quantile_us(0.99),
        client_cpu: (process::own_cpu_seconds()? - client_before) / updates * 1e6,
        server_cpu: (of_server()? - server_before) / updates * 1e6,
    })
}

/// Lets `callers` update rows by `choice` for `duration`.
pub(super) async fn load(
    counter: &Counter,
    choices: &Arc<Choices>,
    choice: Choice,
    callers: usize,
    duration: Duration,
) -> Result<Load> {
    let started = clock::now();
    let until = started + duration;
    let mut running = JoinSet::new();
    for number in 0..callers {
        running.spawn(caller(counter.clone(), Arc::clone(choices), choice, number, until));
    }
    let mut latency = Histogram::new();
    while let Some(done) = running.join_next().await {
        latency.merge(&done.context("a caller's task")??);
    }
    Ok(Load { latency, elapsed: started.elapsed() })
}

async fn caller(
    counter: Counter,
    choices: Arc<Choices>,
    choice: Choice,
    number: usize,
    until: Instant,
) -> Result<Histogram> {
    let mut latency = Histogram::new();
    // Far from one another in the order, so that no two callers follow each other.
    let mut place = number.wrapping_mul(0x9E37_79B9);
    let mut before = clock::now();
    while before < until {
        counter.count(choices.key(choice, place)).await?;
        place = place.wrapping_add(1);
        let after = clock::now();
        latency.record(after - before);
        before = after;
    }
    Ok(latency)
}
