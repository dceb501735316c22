//! Interleaved rounds: the systems take turns, so that whatever else the machine does meets all of them.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};

use super::Bench;
use crate::bench::{
    load::{self, Check, Http1, Order, Outcome, Plan, Resp, RpcTemplate, Script},
    process,
    servers::{self, Server, System},
};

/// How checks reach the guard store; Redis has but one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Http1,
    Http2,
}

/// One system's turn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Turn {
    pub(super) per_second: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// CPU seconds of the server per 100 000 checks, with what it did in the background until its next turn.
    pub(super) server_cpu: f64,
    /// The same of the load generator.
    pub(super) client_cpu: f64,
}

/// All turns of one system.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) system: System,
    pub(super) turns: Vec<Turn>,
}

/// What the systems do in their turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) check: Check,
    pub(super) transport: Transport,
    pub(super) connections: usize,
}

struct Contender {
    server: Server,
    driver: Driver,
    /// Answers of the last turn, and what the server's CPU clock showed before it.
    open: Option<(f64, f64)>,
    turns: Vec<Turn>,
}

enum Driver {
    Http1(Http1),
    Http2(RpcTemplate),
    Resp(Resp),
}

/// Enough to fill the tables quickly, whatever the scenario's own number.
const WARM_UP_CONNECTIONS: usize = 50;

/// Starts a server of each system, fills it, and lets them take turns.
pub(super) fn measure(bench: &Bench, work: Work, systems: &[System]) -> Result<Vec<Series>> {
    let start = |system: &System| Contender::start(bench, work, *system);
    let mut contenders = systems.iter().map(start).collect::<Result<Vec<_>>>()?;
    let order = Order::RandomFor(bench.settings.turn());
    let plan = Plan { connections: work.connections, keys: bench.settings.keys, order };
    for _ in 0..bench.settings.rounds {
        for contender in &mut contenders {
            let system = contender.server.system;
            contender.take_turn(plan).with_context(|| format!("measuring {system}"))?;
        }
    }
    contenders.into_iter().map(Contender::finish).collect()
}

impl Contender {
    fn start(bench: &Bench, work: Work, system: System) -> Result<Self> {
        let server = Server::start(system, &bench.tidegate, &bench.folder)?;
        let checks = || {
            let checks = RpcTemplate::new(work.check)?;
            if system == System::TidegateFair { checks.carrying_identities() } else { Ok(checks) }
        };
        let (mut warm_up, driver) = if system.is_tidegate() {
            let driver = match work.transport {
                Transport::Http1 => Driver::Http1(Http1::checks(checks()?, servers::SECRET)),
                Transport::Http2 => Driver::Http2(checks()?),
            };
            (Driver::Http1(Http1::checks(checks()?, servers::SECRET)), driver)
        } else {
            let script = Script::load(server.address, work.check)?;
            (Driver::Resp(Resp::new(script.clone())), Driver::Resp(Resp::new(script)))
        };
        let plan =
            Plan { connections: WARM_UP_CONNECTIONS, keys: bench.settings.keys, order: Order::EachOnce };
        warm_up.drive(server.address, plan).with_context(|| format!("filling {system}"))?;
        Ok(Self { server, driver, open: None, turns: Vec::new() })
    }

    fn take_turn(&mut self, plan: Plan) -> Result<()> {
        self.close_turn()?;
        let server_before = self.server.process.cpu_seconds()?;
        let client_before = process::own_cpu_seconds()?;
        let outcome = self.driver.drive(self.server.address, plan)?;
        let client_cpu = process::own_cpu_seconds()? - client_before;
        let answers = outcome.answers() as f64;
        self.open = Some((answers, server_before));
        let turn = Turn {
            per_second: outcome.answers_per_second(),
            p50_us: outcome.latency.quantile_us(0.5),
            p99_us: outcome.latency.quantile_us(0.99),
            server_cpu: 0.0,
            client_cpu: client_cpu / answers * 100_000.0,
        };
        println!(
            "{:<30} {:>9.0}/s  p50 {:>7.0} us",
            self.server.system.to_string(),
            turn.per_second,
            turn.p50_us
        );
        self.turns.push(turn);
        Ok(())
    }

    /// Charges the last turn with the server's CPU up to now.
    fn close_turn(&mut self) -> Result<()> {
        if let (Some((answers, before)), Some(turn)) = (self.open.take(), self.turns.last_mut()) {
            turn.server_cpu = (self.server.process.cpu_seconds()? - before) / answers * 100_000.0;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Series> {
        self.close_turn()?;
        Ok(Series { system: self.server.system, turns: self.turns })
    }
}

impl Driver {
    /// # Errors
    /// Also if a check was refused: the limits are out of reach.
    fn drive(&mut self, server: SocketAddr, plan: Plan) -> Result<Outcome> {
        let outcome = match self {
            Self::Http1(wire) => load::drive(wire, server, plan),
            Self::Http2(template) => load::drive_http2(template, servers::SECRET, server, plan),
            Self::Resp(wire) => load::drive(wire, server, plan),
        }?;
        if outcome.allowed != outcome.answers() {
            bail!("{} of {} checks were refused", outcome.answers() - outcome.allowed, outcome.answers());
        }
        Ok(outcome)
    }
}
