//! The Rust client beside the bare HTTP exchange: what it costs to hash, sign, write and read a call; and what
//! a denial costs that is remembered.

mod calls;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};

use self::calls::{Call, Caller};
use super::{
    machine, process,
    report::{self, Table, median},
    servers::{self, Server, System},
};
use crate::clock;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Settings {
    /// A short run, to see that everything works; its figures mean little and are not published.
    #[arg(long)]
    quick: bool,
    /// Rounds; within each, all kinds of calls take their turns.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long a turn lasts.
    #[arg(long, default_value_t = 3, value_name = "SECONDS")]
    turn_seconds: u64,
    /// Calls under way at once.
    #[arg(long, default_value_t = 16)]
    callers: usize,
    /// The server's program; built for the purpose if it is not named.
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

/// CPU of this process for one call, in µs, in each round.
type Measured = Vec<(Call, Vec<f64>)>;

/// What a call through the client may cost beyond the exchange itself.
const OVERHEAD_US_AIM: f64 = 15.0;
/// What a remembered denial may cost.
const DENIAL_US_AIM: f64 = 1.0;

pub(crate) fn run(settings: &Settings) -> Result<()> {
    let settings = settings.clone().shortened();
    let program = servers::tidegate_program(settings.server.as_deref())?;
    let folder = super::folder(None)?;
    let server = Server::start(System::TidegateProcess, &program, &folder)?;
    // One thread, so that nothing is counted but the calls.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let measured = runtime.context("starting a runtime")?.block_on(measure(&settings, &server));
    let measured = server.explain(measured)?;
    let text = format!(
        "Measured on {}.\n\nCPU of the client's process, on one thread with {} calls under way; {} rounds of {} s \
         each, the kinds in turns; medians, and medians of the differences within a round. Every call charges \
         one sliding window. The bare exchange sends the same bytes with the same signature again and again, \
         over the same HTTP library, and reads the whole answer.\n\n{}",
        machine::describe(&folder),
        settings.callers,
        settings.rounds,
        settings.turn_seconds,
        table(&measured)
    );
    println!("\n{text}");
    report::publish("client", &text, !settings.quick)
}

async fn measure(settings: &Settings, server: &Server) -> Result<Measured> {
    let caller = Caller::of(server.address).await?;
    let mut measured: Measured = Call::ALL.map(|call| (call, Vec::new())).into();
    for _ in 0..settings.rounds {
        for (call, costs) in &mut measured {
            let until = clock::now() + Duration::from_secs(settings.turn_seconds);
            let before = process::own_cpu_seconds()?;
            let calls = caller.call_until(*call, settings.callers, until).await?;
            let cost = (process::own_cpu_seconds()? - before) / calls as f64 * 1e6;
            println!("{:<60} {calls:>9} calls  {cost:>6.2} us of CPU", call.name());
            costs.push(cost);
        }
    }
    Ok(measured)
}

fn table(measured: &Measured) -> String {
    let mut table = Table::new(&["call", "CPU µs", "over the bare exchange", "wanted", ""]);
    let bare = measured.iter().find(|(call, _)| *call == Call::Bare).map(|(_, costs)| costs.clone());
    let bare = bare.unwrap_or_default();
    for (call, costs) in measured {
        let cost = median(costs.iter().copied());
        let over = median(costs.iter().zip(&bare).map(|(cost, bare)| cost - bare));
        let (over_text, wanted, is_reached) = match call {
            Call::Bare => (String::new(), String::new(), None),
            Call::RememberedDenial => {
                (String::new(), format!("< {DENIAL_US_AIM:.0} in all"), Some(cost < DENIAL_US_AIM))
            }
            _ => (format!("{over:.2}"), format!("< {OVERHEAD_US_AIM:.0}"), Some(over < OVERHEAD_US_AIM)),
        };
        let word = is_reached.map_or("", |reached| if reached { "reached" } else { "**falls short**" });
        table.row([call.name().to_owned(), format!("{cost:.2}"), over_text, wanted, word.to_owned()]);
    }
    table.into_text()
}

impl Settings {
    fn shortened(self) -> Self {
        if self.quick { Self { rounds: 2, turn_seconds: 1, ..self } } else { self }
    }
}
