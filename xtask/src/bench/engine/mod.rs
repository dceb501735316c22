//! The embedded engine alone, through the driver: what an update costs, and how close its flushes come to
//! what the disk can do.

mod bare;
mod callers;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use tidegate_store::{Driver, DriverOptions};
use tidegate_store_embedded::{Durability, EmbeddedBackend, Options};

use self::{
    bare::BareFile,
    callers::{Caller, Turn},
};
use super::{
    choice::{Choice, Choices},
    machine, process,
    report::{self, Table, grouped, median},
};
use crate::clock;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Settings {
    /// A short run, to see that everything works; its figures mean little and are not published.
    #[arg(long)]
    quick: bool,
    /// Rounds; within each, all cases take their turns.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long a turn lasts.
    #[arg(long, default_value_t = 3, value_name = "SECONDS")]
    turn_seconds: u64,
    /// Rows that updates choose from.
    #[arg(long, default_value_t = 1_000_000)]
    keys: usize,
    /// Where the store lies; a folder on the disk that is to be measured.
    #[arg(long)]
    folder: Option<PathBuf>,
}

/// One way to use the engine.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Case {
    durability: Durability,
    choice: Choice,
    callers: usize,
}

/// What one turn of a case came to.
#[derive(Debug, Clone, Copy)]
struct Figures {
    updates_per_second: f64,
    cpu_us: f64,
    batches_per_second: f64,
    updates_per_batch: f64,
    /// Where the case flushes.
    flushes: Option<Flushes>,
}

/// What the disk was asked to do.
#[derive(Debug, Clone, Copy)]
struct Flushes {
    per_second: f64,
    bytes_each: f64,
    /// Flushes a second over those of bare writes of as many bytes, right after it.
    beside_bare: f64,
    /// Batches a second over bare writes of as many bytes as a batch has.
    batches_beside_bare: f64,
}

/// Above what a run inserts.
const ENTRIES_MAX: u64 = 50_000_000;

pub(crate) fn run(settings: &Settings) -> Result<()> {
    let settings = settings.clone().shortened();
    let folder = super::folder(settings.folder.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let measured = runtime.context("starting a runtime")?.block_on(measure(&settings, &folder))?;
    let text = format!(
        "Measured on {}.\n\n{} rows of 100 bytes. An update reads three rows, writes two of them and inserts the \
         third, a record that lives three minutes. CPU is of the whole process, callers and all. A flush makes \
         durable what was written since the last one began, which may be several batches. Bare writes are \
         positioned writes to a preallocated file, each with fdatasync, in turn with the engine: of as many \
         bytes as a mean batch, and of as many as a mean flush. {} rounds of {} s; medians.\n\n{}",
        machine::describe(&folder),
        grouped(settings.keys as f64),
        settings.rounds,
        settings.turn_seconds,
        table(&measured)
    );
    println!("\n{text}");
    report::publish("engine", &text, !settings.quick)
}

async fn measure(settings: &Settings, folder: &std::path::Path) -> Result<Vec<(Case, Vec<Figures>)>> {
    let choices = Arc::new(Choices::prepare(settings.keys)?);
    let bench = Bench { settings, choices, bare: BareFile::prepare(folder)? };
    let mut measured = Vec::new();
    for durability in [Durability::Process, Durability::Fsync] {
        let place =
            tempfile::Builder::new().prefix("engine-").tempdir_in(folder).context("making a folder")?;
        let backend = EmbeddedBackend::open(&Options { durability, ..Options::at(place.path()) });
        let options = DriverOptions {
            sweep_interval: Duration::from_secs(1),
            ..DriverOptions::new("benchmark", ENTRIES_MAX)
        };
        let store = Driver::start(backend.context("opening a store")?, options);
        callers::fill(&store, &bench.choices).await?;
        measured.extend(bench.rounds(&store, durability).await?);
        store.shutdown().await;
    }
    Ok(measured)
}

struct Bench<'a> {
    settings: &'a Settings,
    choices: Arc<Choices>,
    bare: BareFile,
}

impl Bench<'_> {
    async fn rounds(
        &self,
        store: &Driver<EmbeddedBackend>,
        durability: Durability,
    ) -> Result<Vec<(Case, Vec<Figures>)>> {
        let both = [Choice::Uniform, Choice::Zipf].into_iter();
        let cases = both.flat_map(|choice| [64, 512].map(|callers| Case { durability, choice, callers }));
        let mut measured: Vec<(Case, Vec<Figures>)> = cases.map(|case| (case, Vec::new())).collect();
        for _ in 0..self.settings.rounds {
            for (case, figures) in &mut measured {
                figures.push(self.turn(store, *case).await?);
            }
        }
        Ok(measured)
    }

    async fn turn(&self, store: &Driver<EmbeddedBackend>, case: Case) -> Result<Figures> {
        let (driver_before, engine_before) = (store.stats(), store.backend().stats());
        let cpu_before = process::own_cpu_seconds()?;
        let turn = self.load(store, case).await?;
        let cpu = process::own_cpu_seconds()? - cpu_before;
        let (driver, engine) = (store.stats(), store.backend().stats());
        let seconds = turn.elapsed.as_secs_f64();
        let updates = turn.updates as f64;
        let batches = (driver.batches - driver_before.batches) as f64;
        let mut flushes = None;
        if case.durability == Durability::Fsync {
            let count = (engine.flushes - engine_before.flushes) as f64;
            let bytes = (engine.written_bytes - engine_before.written_bytes) as f64;
            let (per_second, bytes_each) = (count / seconds, bytes / count);
            let bare = |bytes| self.bare.writes_per_second(bytes, self.turn_length() / 2);
            flushes = Some(Flushes {
                per_second,
                bytes_each,
                beside_bare: per_second / bare(bytes_each)?,
                batches_beside_bare: batches / seconds / bare(bytes / batches)?,
            });
        }
        let figures = Figures {
            updates_per_second: updates / seconds,
            cpu_us: cpu / updates * 1e6,
            batches_per_second: batches / seconds,
            updates_per_batch: updates / batches,
            flushes,
        };
        println!("{}", figures.line(case));
        Ok(figures)
    }

    async fn load(&self, store: &Driver<EmbeddedBackend>, case: Case) -> Result<Turn> {
        let until = clock::now() + self.turn_length();
        let started = clock::now();
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..case.callers {
            let caller = Caller::new(store.clone(), Arc::clone(&self.choices), case.choice, number)?;
            tasks.spawn(caller.update_until(until));
        }
        let mut updates = 0;
        while let Some(done) = tasks.join_next().await {
            updates += done.context("a caller's task")??;
        }
        Ok(Turn { updates, elapsed: started.elapsed() })
    }

    const fn turn_length(&self) -> Duration {
        Duration::from_secs(self.settings.turn_seconds)
    }
}

impl Settings {
    fn shortened(self) -> Self {
        if self.quick { Self { rounds: 1, turn_seconds: 1, keys: 100_000, ..self } } else { self }
    }
}

impl Case {
    fn name(self) -> String {
        let durability = if self.durability == Durability::Fsync { "fsync" } else { "process" };
        format!("`{durability}`, {}, {} callers", self.choice, self.callers)
    }
}

impl Figures {
    fn line(&self, case: Case) -> String {
        let flushes = self.flushes.map(|flushes| {
            let Flushes { per_second, bytes_each, beside_bare, batches_beside_bare } = flushes;
            format!(
                "  {per_second:>6.0} flushes/s of {bytes_each:>6.0} bytes, {beside_bare:.2} of bare writes; batches \
                 {batches_beside_bare:.2}"
            )
        });
        format!(
            "{:<30} {:>9.0} updates/s  {:>5.2} us of CPU  {:>4.0} a batch{}",
            case.name(),
            self.updates_per_second,
            self.cpu_us,
            self.updates_per_batch,
            flushes.unwrap_or_default()
        )
    }
}

fn table(measured: &[(Case, Vec<Figures>)]) -> String {
    let mut table = Table::new(&[
        "case",
        "updates/s",
        "CPU µs an update",
        "batches/s",
        "updates a batch",
        "flushes/s",
        "bytes a flush",
        "batches/s over bare writes",
        "flushes/s over bare writes",
    ]);
    for (case, turns) in measured {
        let middle = |figure: fn(&Figures) -> f64| median(turns.iter().map(figure));
        let of_flushes = |figure: fn(&Flushes) -> f64| {
            let flushes: Vec<f64> =
                turns.iter().filter_map(|turn| turn.flushes.as_ref().map(figure)).collect();
            (!flushes.is_empty()).then(|| median(flushes))
        };
        let whole = |figure| of_flushes(figure).map(grouped).unwrap_or_default();
        let ratio = |figure| of_flushes(figure).map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        table.row([
            case.name(),
            grouped(middle(|figures| figures.updates_per_second)),
            format!("{:.2}", middle(|figures| figures.cpu_us)),
            grouped(middle(|figures| figures.batches_per_second)),
            format!("{:.0}", middle(|figures| figures.updates_per_batch)),
            whole(|flushes| flushes.per_second),
            whole(|flushes| flushes.bytes_each),
            ratio(|flushes| flushes.batches_beside_bare),
            ratio(|flushes| flushes.beside_bare),
        ]);
    }
    table.into_text()
}
