//! `tidegate canary`: how fast a running guard store answers, and what an RPC costs it.

mod meter;

use std::io::Write;

use clap::Args;
use serde::Serialize;
use thiserror::Error;
use tidegate_client::{GuardClient, GuardUnavailable, TIMEOUT_MAX, operation_id};
use tidegate_protocol::{
    identity::Purpose,
    name::Family,
    request::{Command, Fairness, Request, Window},
};
use tokio::{task::JoinSet, time::Instant};

use self::meter::{Meter, Reading};
use super::{
    call::{ClientError, SendError, client_at, guard_url},
    words::{Column, table},
};
use crate::{
    config::{Hidden, Loaded},
    process::{EXIT_DENIED, EXIT_GOOD},
};

/// What `tidegate canary` takes.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct CanaryArgs {
    /// RPCs to send, half of them over one connection and half over eight
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(100..=100_000))]
    pub rpcs: u64,
    /// The family whose budget of today pays: two commands an RPC
    #[arg(long, default_value = "proxy")]
    pub family: Family,
    /// The guard store [default: client.url, or guard.listen of the configuration]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Print the figures as JSON
    #[arg(long)]
    pub json: bool,
}

/// Why there are no figures.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CanaryError {
    /// The configuration does not say where the guard store is, or is faulty there.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Nothing to sign with.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The guard store does not take RPCs.
    #[error(transparent)]
    Unavailable(#[from] GuardUnavailable),
    /// A connection's task panicked.
    #[error("a connection has ended early")]
    Ended,
    /// The output is gone.
    #[error("writing the figures")]
    Output(#[from] std::io::Error),
}

/// Connections of each round.
const ROUNDS: [u64; 2] = [1, 8];
/// What is written is gone a minute later.
const LIFE_MS: u64 = 60_000;

/// Measures, and answers the exit code: 0, or 1 if RPCs were refused or got no answer.
///
/// # Errors
/// The guard store can't be reached or takes no RPC of this family.
pub async fn canary(arguments: CanaryArgs, loaded: &Loaded, out: &mut dyn Write) -> Result<u8, CanaryError> {
    let CanaryArgs { rpcs, family, url, json } = arguments;
    let url = url.map_or_else(|| guard_url(loaded), |url| Ok(Hidden::new(&url)))?;
    let connect = || Ok::<_, CanaryError>(client_at(&url, loaded)?.with_timeout(TIMEOUT_MAX));
    // Tells at once what is wrong with the way, the secret or the family.
    let caller = Caller::new(&connect()?, family)?;
    caller.client.run(&caller.request(0)?).await?;

    let meter = Meter::of(&url, loaded);
    let mut rounds = Vec::new();
    for (connections, rpcs) in ROUNDS.into_iter().zip([rpcs.div_ceil(2), rpcs / 2]) {
        let clients = (0..connections).map(|_| connect()).collect::<Result<Vec<_>, _>>()?;
        let before = meter.read().await;
        let measured = round(clients, family, rpcs).await?;
        rounds.push(Round::of(connections, &measured, before.to(meter.read().await)));
    }
    let figures = Figures { family: family.as_str().to_owned(), rounds, note: meter.note().await };
    if json {
        let json = serde_json::to_string(&figures).map_err(std::io::Error::other)?;
        writeln!(out, "{json}")?;
    } else {
        out.write_all(figures.for_people().as_bytes())?;
    }
    let failed = figures.rounds.iter().any(|round| round.failed > 0);
    Ok(if failed { EXIT_DENIED } else { EXIT_GOOD })
}

/// What a round's connections saw.
#[derive(Debug, Clone, Default)]
struct Measured {
    /// From the first RPC's start to the last one's end, in µs.
    elapsed_micros: u64,
    /// Of each RPC that was answered, in µs.
    micros: Vec<u64>,
    /// RPCs that were refused or got no answer.
    failed: u64,
}

/// Sends `rpcs` RPCs, each client one after the other, all clients at once.
async fn round(clients: Vec<GuardClient>, family: Family, rpcs: u64) -> Result<Measured, CanaryError> {
    let count = clients.len() as u64;
    let began = Instant::now();
    let mut running = JoinSet::new();
    for (place, client) in (0..).zip(clients) {
        let caller = Caller::new(&client, family)?;
        let mine = rpcs / count + u64::from(place < rpcs % count);
        running.spawn(async move { caller.measure(mine).await });
    }
    let mut measured = Measured::default();
    while let Some(ended) = running.join_next().await {
        let mine = ended.map_err(|_| CanaryError::Ended)??;
        measured.micros.extend(mine.micros);
        measured.failed += mine.failed;
    }
    measured.elapsed_micros = micros_since(began);
    measured.micros.sort_unstable();
    Ok(measured)
}

/// Sends RPCs of identities that nobody else has.
struct Caller {
    client: GuardClient,
    family: Family,
    run: String,
}

impl Caller {
    fn new(client: &GuardClient, family: Family) -> Result<Self, GuardUnavailable> {
        Ok(Self { client: client.clone(), family, run: operation_id()?.as_str().to_owned() })
    }

    async fn measure(&self, rpcs: u64) -> Result<Measured, CanaryError> {
        let mut measured = Measured::default();
        for number in 1..=rpcs {
            let request = self.request(number)?;
            let began = Instant::now();
            match self.client.run(&request).await {
                Ok(_) => measured.micros.push(micros_since(began)),
                Err(_) => measured.failed += 1,
            }
        }
        Ok(measured)
    }

    /// A window and a record of somebody new.
    fn request(&self, number: u64) -> Result<Request, GuardUnavailable> {
        let digest = |purpose| self.client.digest(purpose, &format!("canary {} {number}", self.run));
        let fairness =
            Fairness::default().source(digest(Purpose::Source)).principal(digest(Purpose::Principal));
        let key = digest(Purpose::Key);
        let commands =
            [Command::hit([Window::sliding(key, 10, LIFE_MS)]), Command::set(key, "canary", LIFE_MS)];
        let request = Request::new(operation_id()?, self.family).fairness(fairness);
        Ok(request.step(digest(Purpose::Partition), commands))
    }
}

fn micros_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}

#[derive(Debug, Clone, Serialize)]
struct Figures {
    family: String,
    rounds: Vec<Round>,
    /// Why there are no figures of the store.
    note: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Round {
    connections: u64,
    answered: u64,
    failed: u64,
    rpcs_per_second: u64,
    p50_micros: u64,
    p95_micros: u64,
    p99_micros: u64,
    row_writes_per_rpc: Option<f64>,
    flushes_per_rpc: Option<f64>,
    written_bytes_per_rpc: Option<f64>,
}

impl Round {
    fn of(connections: u64, measured: &Measured, store: Reading) -> Self {
        let answered = measured.micros.len() as u64;
        let per_rpc = |count: Option<u64>| {
            #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
            count.filter(|_| answered > 0).map(|count| count as f64 / answered as f64)
        };
        Self {
            connections,
            answered,
            failed: measured.failed,
            rpcs_per_second: answered * 1_000_000 / measured.elapsed_micros.max(1),
            p50_micros: percentile(&measured.micros, 50),
            p95_micros: percentile(&measured.micros, 95),
            p99_micros: percentile(&measured.micros, 99),
            row_writes_per_rpc: per_rpc(store.row_writes),
            flushes_per_rpc: per_rpc(store.flushes),
            written_bytes_per_rpc: per_rpc(store.written_bytes),
        }
    }
}

/// The smallest value that at least `per_cent` of them don't exceed; 0 of none.
fn percentile(sorted: &[u64], per_cent: usize) -> u64 {
    let rank = (sorted.len() * per_cent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

impl Figures {
    fn for_people(&self) -> String {
        let ms = |micros: u64| format!("{}.{:02} ms", micros / 1000, micros % 1000 / 10);
        let ratio = |ratio: Option<f64>, digits: usize| {
            ratio.map_or_else(|| "?".to_owned(), |ratio| format!("{ratio:.digits$}"))
        };
        let row = |round: &Round| {
            [
                round.connections.to_string(),
                round.answered.to_string(),
                round.failed.to_string(),
                round.rpcs_per_second.to_string(),
                ms(round.p50_micros),
                ms(round.p95_micros),
                ms(round.p99_micros),
                ratio(round.row_writes_per_rpc, 2),
                ratio(round.flushes_per_rpc, 2),
                ratio(round.written_bytes_per_rpc, 0),
            ]
        };
        let columns = [
            "connections",
            "answered",
            "failed",
            "RPCs/s",
            "p50",
            "p95",
            "p99",
            "row writes/RPC",
            "flushes/RPC",
            "bytes/RPC",
        ]
        .map(Column::Right);
        let rows: Vec<_> = self.rounds.iter().map(row).collect();
        let note = self.note.as_ref().map(|note| format!("\nnote: {note}\n")).unwrap_or_default();
        format!(
            "RPCs of two commands (win.hit, kv.set), each of a new identity, on the family {}\n\n{}{note}",
            self.family,
            table(columns, &rows)
        )
    }
}

const EXAMPLES: &str = "\
Examples:
  tidegate canary                                   # 1000 RPCs
  tidegate canary --rpcs 20000 --json

It spends two commands an RPC of the family's budget of today, and writes rows that are gone a minute later. Row writes
and flushes are read from /metrics of admin.listen before and after, so that what others did meanwhile is in them.
Exit codes: 0 done, 1 some RPCs were refused or got no answer, 2 nothing was measured.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let hundred: Vec<u64> = (1..=100).collect();
        let table: [(&[u64], usize, u64); 6] = [
            (&[], 50, 0),
            (&[7], 99, 7),
            (&[1, 2], 50, 1),
            (&hundred, 50, 50),
            (&hundred, 95, 95),
            (&hundred, 99, 99),
        ];
        for (sorted, per_cent, expected) in table {
            assert_eq!(percentile(sorted, per_cent), expected, "{per_cent} of {sorted:?}");
        }
    }

    #[test]
    fn figures_are_a_table() {
        let measured = Measured { elapsed_micros: 1_000_000, micros: vec![1000, 1500, 20_000], failed: 1 };
        let store = Reading { row_writes: None, flushes: Some(6), written_bytes: Some(600) };
        let rounds = vec![Round::of(8, &measured, store)];
        let text = Figures { family: "proxy".into(), rounds, note: Some("so".into()) }.for_people();
        let line = text.lines().nth(3).expect("a row");
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!(
            cells,
            ["8", "3", "1", "3", "1.50 ms", "20.00 ms", "20.00 ms", "?", "2.00", "200"],
            "{text}"
        );
        assert!(text.ends_with("\nnote: so\n"), "{text}");
    }
}
