//! How long a replay of a million recorded requests takes, by how many clients they are of.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use http::{HeaderMap, HeaderValue, header::USER_AGENT};
use tidegate_ingress::defense::{AppSetup, Defense, DefenseOptions};
use tidegate_store::{
    Driver, DriverOptions, MemoryBackend,
    clock::{Clock, SystemClock},
};

use super::{
    machine,
    random::Random,
    report::{self, Bound, Table, median},
};
use crate::{clock, shell};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Settings {
    /// A short run, to see that everything works; its figures mean little and are not published.
    #[arg(long)]
    quick: bool,
    /// Replays of each log.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Requests that a log holds.
    #[arg(long, default_value_t = 1_000_000)]
    requests: usize,
}

/// Seconds in which a million requests are to be replayed.
const SECONDS_AIM: f64 = 1.0;
/// User-Agents that the requests have.
const AGENTS: usize = 50;
const APP: &str = "shop";
const DRAFT: &[u8] = br#"{"rps": 2, "burst": 10, "deny_user_agents": ["evilbot", "re:\\bnutch\\b"],
    "deny_cidrs": ["203.0.113.0/24"], "routes": [{"path_prefix": "/login", "rps": 0.1, "burst": 3}]}"#;

/// Seconds of each replay of a log.
struct Case {
    clients: usize,
    seconds: Vec<f64>,
}

pub(crate) fn run(settings: &Settings) -> Result<()> {
    let mut settings = settings.clone();
    if settings.quick {
        settings = Settings { rounds: 2, requests: 100_000, ..settings };
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("starting a runtime")?;
    let clients = [100, 10_000, settings.requests];
    let cases = clients.map(|clients| runtime.block_on(measure(&settings, clients)));
    let cases: Vec<Case> = cases.into_iter().collect::<Result<_>>()?;
    let text = text(&settings, &cases);
    println!("\n{text}");
    report::publish("replay", &text, !settings.quick)
}

async fn measure(settings: &Settings, clients: usize) -> Result<Case> {
    let defense = recorded(settings, clients).await?;
    let mut seconds = Vec::with_capacity(settings.rounds);
    for _ in 0..settings.rounds {
        let start = clock::now();
        let replay = defense.replay(APP, DRAFT)?;
        seconds.push(start.elapsed().as_secs_f64());
        ensure!(replay.requests == settings.requests as u64, "{} requests were replayed", replay.requests);
    }
    println!("{clients} clients: {:.3} s", median(seconds.iter().copied()));
    Ok(Case { clients, seconds })
}

/// A defense whose log holds so many requests, through the same door as live ones.
async fn recorded(settings: &Settings, clients: usize) -> Result<Defense> {
    let system: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let backend = MemoryBackend::new(Arc::clone(&system));
    let store = Arc::new(Driver::start(backend, DriverOptions::new("memory", 1000)));
    let options = DefenseOptions {
        apps: vec![AppSetup { name: APP.to_owned(), routed: true }],
        tracked_clients_max: 100_000,
        // The oldest segment goes as a whole, so there is room for one more.
        access_log_entries: settings.requests.div_ceil(10) * 12,
        access_log_ms: 3_600_000,
        ..DefenseOptions::default()
    };
    let defense = Defense::open(store, system, options).await;
    let app = defense.app(APP).context("the app is there")?;
    let agents: Vec<HeaderMap> = (0..AGENTS).map(agent).collect::<Result<_>>()?;
    let mut random = Random::seeded(1);
    for number in 0..settings.requests {
        // As many as the requests are, each comes once.
        let client = if clients == settings.requests { number } else { random.below(clients) };
        let peer = IpAddr::from(Ipv4Addr::from_bits(u32::try_from(client)?.wrapping_mul(0x9e37_79b1)));
        let (headers, path) = (&agents[random.below(AGENTS)], ["/", "/products/7", "/login"][number % 3]);
        let judged = defense.judge(&app, &defense.caller(peer, headers), "GET", path);
        ensure!(judged.refusal.is_none(), "the default policy refuses nothing");
    }
    Ok(defense)
}

fn agent(number: usize) -> Result<HeaderMap> {
    let text = format!("Mozilla/5.0 (X11; Linux x86_64; rv:{number}.0) Gecko/20100101 Firefox/{number}.0");
    Ok(HeaderMap::from_iter([(USER_AGENT, HeaderValue::try_from(text)?)]))
}

fn text(settings: &Settings, cases: &[Case]) -> String {
    let mut table = Table::new(&["requests of", "wanted, s", "reached, s", "rounds, s", ""]);
    for case in cases {
        let clients = format!("{} clients", report::grouped(case.clients as f64));
        table.row(Bound::AtMost(SECONDS_AIM).judge(clients, &case.seconds));
    }
    format!(
        "Measured on {}.\n\nA draft with a limit, a route, two patterns and a network, over {} requests that the access log \
         holds; on one thread; the median of {} replays.\n\n{}",
        machine::describe(&shell::root()),
        report::grouped(settings.requests as f64),
        settings.rounds,
        table.into_text()
    )
}
