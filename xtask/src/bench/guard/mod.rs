//! The guard store beside Redis: the same checks, on the same machine, in the same run.

mod churn;
mod footprint;
mod rounds;
mod scenarios;

use std::{path::PathBuf, time::Duration};

use anyhow::Result;

use super::{machine, report, servers};
use crate::{clock, shell, tools};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Settings {
    /// A short run, to see that everything works; its figures mean little and are not published.
    #[arg(long)]
    quick: bool,
    /// Rounds of each scenario; the systems take turns within each.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long a system's turn lasts.
    #[arg(long, default_value_t = 5, value_name = "SECONDS")]
    round_seconds: u64,
    /// Checks go to this many keys, at random.
    #[arg(long, default_value_t = 100_000)]
    keys: usize,
    /// Live windows for memory, disk and restart.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// How long disk use is watched under full load.
    #[arg(long, default_value_t = 60)]
    churn_seconds: u64,
    /// Only these parts; they alone are published then.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Only scenarios whose title has this in it; nothing is published then.
    #[arg(long)]
    scenario: Option<String>,
    /// Where the servers keep their data; a folder on the disk that is to be measured.
    #[arg(long)]
    folder: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Throughput, latency and CPU.
    Speed,
    /// Memory, disk and restart with many live rows.
    Footprint,
    /// Disk use under load.
    Churn,
}

/// What every part needs to know.
struct Bench {
    settings: Settings,
    tidegate: PathBuf,
    folder: PathBuf,
}

pub(crate) fn run(settings: &Settings) -> Result<()> {
    let started = clock::now();
    tools::ensure(&[tools::REDIS])?;
    let folder = super::folder(settings.folder.as_deref())?;
    let bench =
        Bench { settings: settings.clone().shortened(), tidegate: servers::tidegate_program(None)?, folder };
    let described = format!("Measured on {}.", machine::describe(&bench.folder));
    for part in [Part::Speed, Part::Footprint, Part::Churn] {
        if bench.settings.has(part) {
            let measured = shell::section(part.title(), || part.measure(&bench))?;
            println!("\n{measured}");
            let text = format!("{described}\n\n{measured}");
            report::publish(part.published_as(), &text, bench.settings.is_whole())?;
        }
    }
    println!("\nDone in {}.", clock::in_words(started.elapsed()));
    Ok(())
}

impl Part {
    const fn title(self) -> &'static str {
        match self {
            Self::Speed => "speed",
            Self::Footprint => "memory, disk and restart",
            Self::Churn => "disk use under load",
        }
    }

    const fn published_as(self) -> &'static str {
        match self {
            Self::Speed => "guard-speed",
            Self::Footprint => "guard-footprint",
            Self::Churn => "guard-churn",
        }
    }

    fn measure(self, bench: &Bench) -> Result<String> {
        match self {
            Self::Speed => scenarios::run(bench),
            Self::Footprint => footprint::run(bench),
            Self::Churn => churn::run(bench),
        }
    }
}

impl Settings {
    fn shortened(self) -> Self {
        if !self.quick {
            return self;
        }
        Self { rounds: 2, round_seconds: 1, keys: 10_000, rows: 100_000, churn_seconds: 4, ..self }
    }

    fn has(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    const fn turn(&self) -> Duration {
        Duration::from_secs(self.round_seconds)
    }

    fn is_whole(&self) -> bool {
        !self.quick && self.scenario.is_none()
    }
}
