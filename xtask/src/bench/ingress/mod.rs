//! The whole path of a request, address walk, firewall, defense, counters and access log, beside nginx with
//! `limit_req`: the same upstream, one core for the proxy, the other for upstream and load generator.

mod proxies;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};

use super::{
    load::{self, Gets, Order, Plan},
    machine,
    report::{self, Table, grouped, median},
    servers,
};
use crate::tools;
use proxies::{Mode, Proxy, System};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Settings {
    /// A short run, to see that everything works; its figures mean little and are not published.
    #[arg(long)]
    quick: bool,
    /// Rounds; the proxies take turns within each.
    #[arg(long, default_value_t = 6)]
    rounds: usize,
    /// How long a proxy's turn lasts.
    #[arg(long, default_value_t = 5, value_name = "SECONDS")]
    round_seconds: u64,
    /// Clients of the memory's measure.
    #[arg(long, default_value_t = 1_000_000)]
    clients: usize,
    /// A server that is built already.
    #[arg(long)]
    tidegate: Option<PathBuf>,
}

/// What one turn showed.
#[derive(Debug, Clone, Copy)]
struct Turn {
    per_second: f64,
    p50_us: f64,
    p99_us: f64,
    /// CPU seconds of the proxy per 100 000 requests.
    cpu: f64,
}

const CONNECTIONS: usize = 50;
/// Clients of a turn: many enough to be told apart, few enough that nearly all of their requests can be refused.
const CLIENTS: usize = 200;
const SYSTEMS: [System; 2] = [System::Nginx, System::Tidegate];

pub(crate) fn run(settings: &Settings) -> Result<()> {
    tools::ensure(&[tools::NGINX])?;
    let mut settings = settings.clone();
    if settings.quick {
        settings = Settings { rounds: 2, round_seconds: 1, clients: 100_000, ..settings };
    }
    let tidegate = servers::tidegate_program(settings.tidegate.as_deref())?;
    let folder = super::folder(None)?;
    proxies::pin_self()?;
    let upstream = proxies::upstream(&folder)?;
    let mut text = format!(
        "Measured on {}. One core for the proxy, the other for upstream and load generator; {CONNECTIONS} connections \
         that are kept open; {CLIENTS} client addresses by `X-Forwarded-For` from a trusted peer; medians of {} \
         interleaved rounds of {} s. Both keep no log on disk; Tidegate keeps its access log in memory.\n",
        machine::describe(&folder),
        settings.rounds,
        settings.round_seconds
    );
    for (mode, title) in [(Mode::Allow, "All requests pass"), (Mode::Reject, "Nearly all are refused")] {
        let start = |system| {
            Proxy::start(system, mode, upstream.address, CLIENTS, &folder, &tidegate)
                .with_context(|| format!("starting {system}"))
        };
        let proxies = SYSTEMS.into_iter().map(start).collect::<Result<Vec<_>>>()?;
        let table = turns(&settings, &proxies)?;
        println!("\n{title}\n\n{table}");
        text.push_str(&format!("\n### {title}\n\n{table}"));
    }
    let memory = SYSTEMS.into_iter().map(|system| {
        let proxy = Proxy::start(
            system,
            Mode::Allow,
            upstream.address,
            settings.clients * 5 / 4,
            &folder,
            &tidegate,
        )?;
        bytes_a_client(&proxy, settings.clients).with_context(|| format!("filling {system}"))
    });
    let mut table = Table::new(&["proxy", "resident memory, bytes a client"]);
    for (system, bytes) in SYSTEMS.into_iter().zip(memory) {
        table.row([system.to_string(), format!("{:.0}", bytes?)]);
    }
    let table = table.into_text();
    println!("\n{table}");
    text.push_str(&format!(
        "\n### Memory\n\nWhat {} client addresses add, each seen once; Tidegate's access log, which is bounded by \
         itself, was full before.\n\n{table}",
        grouped(settings.clients as f64)
    ));
    report::publish("ingress", &text, !settings.quick)
}

fn turns(settings: &Settings, proxies: &[Proxy]) -> Result<String> {
    let plan = |seconds| Plan {
        connections: CONNECTIONS,
        keys: CLIENTS,
        order: Order::RandomFor(Duration::from_secs(seconds)),
    };
    let mut taken: Vec<Vec<Turn>> = proxies.iter().map(|_| Vec::new()).collect();
    for proxy in proxies {
        load::drive(&mut Gets, proxy.address, plan(1)).context("warming up")?;
    }
    for _ in 0..settings.rounds {
        for (proxy, turns) in proxies.iter().zip(&mut taken) {
            let before = proxy.process.cpu_seconds()?;
            let outcome = load::drive(&mut Gets, proxy.address, plan(settings.round_seconds))
                .with_context(|| format!("measuring {}: {}", proxy.system, proxy.process.log_tail()))?;
            let cpu = proxy.process.cpu_seconds()? - before;
            let turn = Turn {
                per_second: outcome.answers_per_second(),
                p50_us: outcome.latency.quantile_us(0.5),
                p99_us: outcome.latency.quantile_us(0.99),
                cpu: cpu / outcome.answers() as f64 * 100_000.0,
            };
            println!(
                "{:<22} {:>8.0}/s  p50 {:>6.0} us  p99 {:>6.0} us  cpu {:.2} s/100k  refused {:.1} %",
                proxy.system.to_string(),
                turn.per_second,
                turn.p50_us,
                turn.p99_us,
                turn.cpu,
                100.0 - outcome.allowed as f64 / outcome.answers() as f64 * 100.0
            );
            turns.push(turn);
        }
    }
    Ok(table(proxies, &taken))
}

fn table(proxies: &[Proxy], taken: &[Vec<Turn>]) -> String {
    let mut table = Table::new(&[
        "proxy",
        "requests a second",
        "beside nginx",
        "p50, us",
        "p99, us",
        "CPU s per 100 000",
    ]);
    for (proxy, turns) in proxies.iter().zip(taken) {
        let of = |value: fn(&Turn) -> f64| median(turns.iter().map(value));
        // Each turn beside nginx's of the same round: what else the machine does meets both.
        let beside =
            median(turns.iter().zip(&taken[0]).map(|(turn, nginx)| turn.per_second / nginx.per_second));
        table.row([
            proxy.system.to_string(),
            grouped(of(|turn| turn.per_second)),
            format!("{beside:.2}"),
            grouped(of(|turn| turn.p50_us)),
            grouped(of(|turn| turn.p99_us)),
            format!("{:.2}", of(|turn| turn.cpu)),
        ]);
    }
    table.into_text()
}

/// What each of so many clients adds to the proxy's memory.
fn bytes_a_client(proxy: &Proxy, clients: usize) -> Result<f64> {
    let once = |keys| Plan { connections: CONNECTIONS, keys, order: Order::EachOnce };
    // Few clients first, until the access log in memory is full.
    let few = Plan { keys: 100, order: Order::RandomFor(Duration::from_secs(20)), ..once(100) };
    load::drive(&mut Gets, proxy.address, few)?;
    let before = proxy.process.resident_bytes()?;
    load::drive(&mut Gets, proxy.address, once(clients))?;
    let after = proxy.process.resident_bytes()?;
    println!("{}: from {before} to {after} bytes", proxy.system);
    Ok((after.saturating_sub(before)) as f64 / clients as f64)
}
