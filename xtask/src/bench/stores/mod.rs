//! Every store through its driver, beside one plain transaction a call on the same server.

mod contender;
mod counter;
mod hot;
mod plain;
mod servers;
mod speed;
mod turn;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};

use super::{machine, report};
use crate::{clock, shell, tools};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Settings {
    /// A short run, to see that everything works; its figures mean little and are not published.
    #[arg(long)]
    quick: bool,
    /// Rounds of each scenario; the systems take turns within each.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How long a system's turn lasts.
    #[arg(long, default_value_t = 1.5, value_name = "SECONDS")]
    seconds: f64,
    /// Rows that updates choose from.
    #[arg(long, default_value_t = 1_000_000)]
    keys: usize,
    /// How long two instances update one hot key: 20, or 60 with `--only hot`.
    #[arg(long, value_name = "SECONDS")]
    hot_seconds: Option<u64>,
    /// Only this part; it alone is published then.
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Only systems whose name has this in it; nothing is published then.
    #[arg(long)]
    system: Option<String>,
    /// Only scenarios whose title has this in it; nothing is published then.
    #[arg(long)]
    scenario: Option<String>,
    /// Where the embedded stores and SQLite keep their data; a folder on the disk that is to be measured.
    #[arg(long)]
    folder: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Throughput, latency and CPU.
    Speed,
    /// One key under many callers of two instances: that no update is lost.
    Hot,
}

/// Above what a run makes, so that nothing is refused.
const ENTRIES_MAX: u64 = 50_000_000;
/// Longer than any stall of a disk, so that a slow turn is slow and not wrong.
const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) fn run(settings: &Settings) -> Result<()> {
    let started = clock::now();
    tools::ensure(&[tools::POSTGRES, tools::MARIADB, tools::REDIS])?;
    let settings = settings.clone().shortened();
    let folder = super::folder(settings.folder.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("a runtime")?;
    let described = format!("Measured on {}.\n\n", machine::describe(&folder));
    if settings.only != Some(Part::Hot) {
        let text = shell::section("speed", || runtime.block_on(speed::run(&settings, &folder)))?;
        settings.publish("stores", &format!("{described}{text}"))?;
    }
    if settings.only != Some(Part::Speed) {
        let text = shell::section("one hot key", || runtime.block_on(hot::run(&settings)))?;
        settings.publish("stores-hot", &format!("{described}{text}"))?;
    }
    println!("\nDone in {}.", clock::in_words(started.elapsed()));
    Ok(())
}

impl Settings {
    fn shortened(self) -> Self {
        if !self.quick {
            return self;
        }
        Self { rounds: 1, seconds: 0.3, keys: 20_000, hot_seconds: self.hot_seconds.or(Some(2)), ..self }
    }

    fn turn(&self) -> Duration {
        Duration::from_secs_f64(self.seconds.clamp(0.01, 600.0))
    }

    fn hot(&self) -> Duration {
        let usual = if self.only == Some(Part::Hot) { 60 } else { 20 };
        Duration::from_secs(self.hot_seconds.unwrap_or(usual))
    }

    fn has(&self, system: &str) -> bool {
        self.system.as_ref().is_none_or(|part| system.contains(part.as_str()))
    }

    /// Only whole tables go into the documentation.
    fn publish(&self, section: &str, text: &str) -> Result<()> {
        println!("\n{text}");
        let is_whole = !self.quick && self.system.is_none() && self.scenario.is_none();
        report::publish(section, text, is_whole)
    }
}
