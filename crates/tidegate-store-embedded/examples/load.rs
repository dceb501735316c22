//! Measures the engine behind the driver: updates a second, CPU, memory, disk and the time to open again.
//!
//! `cargo run --release -p tidegate-store-embedded --example load -- DIRECTORY [fsync|process|none] [CALLERS] [KEYS] [SECONDS]`
//!
//! An update reads three rows, writes two of 100 bytes and inserts one, all with an expiry.

#![expect(clippy::disallowed_methods, reason = "a measurement reads clocks")]
#![expect(clippy::print_stdout, reason = "and prints what it measured")]

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tidegate_store::{Driver, DriverOptions, Key, LimitStoreExt};
use tidegate_store_embedded::{Durability, EmbeddedBackend, Options, testing::Random};

/// What is told about a process in /proc, in clock ticks and pages of the usual size.
const TICK_US: u64 = 10_000;
const PAGE_BYTES: u64 = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| {
        arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let durability = match arguments.get(1).map(String::as_str) {
        Some("process") => Durability::Process,
        Some("none") => Durability::None,
        _ => Durability::Fsync,
    };
    let options = Options { durability, ..Options::at(arguments.first().ok_or("which directory?")?) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(measure(options, number(2, 512), number(3, 1_000_000), number(4, 10)))
}

async fn measure(options: Options, callers: u64, keys: u64, seconds: u64) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let backend = EmbeddedBackend::open(&options)?;
    println!("opened in {:?}, {} us CPU: {:?}", begun.elapsed(), cpu_us(), backend.stats());
    let store = Driver::start(backend, options_of_driver());
    let bytes_before = resident_bytes();
    fill(&store, keys).await?;
    let stats = store.backend().stats();
    println!("{} rows; RSS grew by {} bytes; {stats:?}", stats.rows, resident_bytes() - bytes_before);

    let done = Arc::new(AtomicU64::new(0));
    let (begun, cpu_us) = (Instant::now(), cpu_us());
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            tokio::spawn(update(store.clone(), keys, caller, Arc::clone(&done), Duration::from_secs(seconds)))
        })
        .collect();
    let mut waits_us = Vec::new();
    for task in tasks {
        waits_us.extend(task.await??);
    }
    let (updates, elapsed) = (done.load(Ordering::Relaxed), begun.elapsed());
    waits_us.sort_unstable();
    let at = |part: usize| waits_us.get(waits_us.len() * part / 1000).copied().unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    let per_update = |value: u64| value as f64 / updates.max(1) as f64;
    println!(
        "{} updates/s, {:.2} us CPU an update, p50 {} us, p99 {} us, p99.9 {} us",
        updates * 1000 / u64::try_from(elapsed.as_millis())?.max(1),
        per_update(self::cpu_us() - cpu_us),
        at(500),
        at(990),
        at(999)
    );
    println!("{:?}\n{:?}", store.backend().stats(), store.stats());
    store.shutdown().await;
    drop(store);
    let (begun, cpu_us) = (Instant::now(), self::cpu_us());
    let backend = EmbeddedBackend::open(&options)?;
    let cpu_us = self::cpu_us() - cpu_us;
    println!("opened again in {:?}, {cpu_us} us CPU: {:?}", begun.elapsed(), backend.stats());
    Ok(())
}

/// Swept as often as the engine's cheap sweeping allows.
fn options_of_driver() -> DriverOptions {
    DriverOptions { sweep_interval: Duration::from_secs(1), ..DriverOptions::new("embedded", 50_000_000) }
}

async fn fill(store: &Driver<EmbeddedBackend>, keys: u64) -> Result<(), Box<dyn Error>> {
    let mut tasks = tokio::task::JoinSet::new();
    for start in (0..keys).step_by(100) {
        let names: Vec<_> = (start..keys.min(start + 100)).map(row).collect();
        let store = store.clone();
        tasks.spawn(async move {
            let write = |view: &mut tidegate_store::View<'_>| {
                let expires_at_ms = view.now_ms() + 600_000;
                (0..100).for_each(|index| view.put(index, [7; 12].as_slice(), expires_at_ms));
            };
            store.update(names, write).await
        });
        if tasks.len() > 100 {
            tasks.join_next().await.ok_or("there are some")???;
        }
    }
    while let Some(filled) = tasks.join_next().await {
        filled??;
    }
    Ok(())
}

async fn update(
    store: Driver<EmbeddedBackend>,
    keys: u64,
    caller: u64,
    done: Arc<AtomicU64>,
    time: Duration,
) -> Result<Vec<u32>, tidegate_store::StoreError> {
    let mut random = Random::new(caller);
    let (begun, mut waits_us) = (Instant::now(), Vec::new());
    while begun.elapsed() < time {
        let asked = Instant::now();
        let operation = Key::from_bytes(std::array::from_fn(|_| random.number().to_le_bytes()[0]));
        let names = vec![row(random.below(keys / 2)), row(keys / 2 + random.below(keys / 2)), operation];
        let write = |view: &mut tidegate_store::View<'_>| {
            let expires_at_ms = view.now_ms() + 600_000;
            let seen = view.get(0).map_or(0, |entry| entry.value[0]);
            view.put(0, [seen.wrapping_add(1); 100].as_slice(), expires_at_ms);
            view.put(1, [seen; 100].as_slice(), expires_at_ms);
            view.put(2, [1; 16].as_slice(), view.now_ms() + 5000);
        };
        store.update(names, write).await?;
        done.fetch_add(1, Ordering::Relaxed);
        waits_us.push(u32::try_from(asked.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    Ok(waits_us)
}

fn row(index: u64) -> Key {
    Key::of(&[b"load", &index.to_le_bytes()])
}

/// The CPU time of this process, user and system.
fn cpu_us() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    (ticks(11) + ticks(12)) * TICK_US
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * PAGE_BYTES
}
