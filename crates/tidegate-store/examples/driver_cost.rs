//! What the driver costs an update, apart from its backend: callers that each update three rows in a loop,
//! over a backend that does nothing, and over the one in memory.
//!
//! `cargo run --release -p tidegate-store --example driver_cost [callers] [updates] [none|slow|memory]`; take the CPU time with
//! `perf stat` or `time`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints its measurement")]

use std::sync::Arc;

use tidegate_store::{
    Backend, BackendError, Change, Driver, DriverOptions, Key, LimitStoreExt, Loaded, MemoryBackend, Scope,
    Swept, clock::SystemClock,
};
use tokio::time::Instant;

/// Holds no row, and takes every change in so many ms.
struct Nothing(u64);

impl Backend for Nothing {
    type Batch = ();
    type Settled = std::future::Ready<Result<(), BackendError>>;

    fn shared(&self) -> bool {
        false
    }

    async fn load(&self, keys: &[Key]) -> Result<Loaded<()>, BackendError> {
        Ok(Loaded { now_ms: 1, rows: keys.iter().map(|_| None).collect(), rows_held: Some(0), batch: () })
    }

    async fn commit(&self, (): (), _: Vec<Change>) -> Result<Self::Settled, BackendError> {
        if self.0 > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(self.0)).await;
        }
        Ok(std::future::ready(Ok(())))
    }

    async fn keys_in(&self, _: Scope, _: usize) -> Result<Vec<Key>, BackendError> {
        Ok(Vec::new())
    }

    async fn sweep(&self, _: usize) -> Result<Swept, BackendError> {
        Ok(Swept { removed: 0, complete: true })
    }

    async fn count(&self) -> Result<u64, BackendError> {
        Ok(0)
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let number = |place| std::env::args().nth(place).map(|text| text.parse::<usize>().unwrap());
    let (callers, updates) = (number(1).unwrap_or(512), number(2).unwrap_or(2_000_000));
    match std::env::args().nth(3).as_deref() {
        None | Some("none") => measure("no backend", Nothing(0), callers, updates).await,
        Some("slow") => measure("1 ms a commit", Nothing(1), callers, updates).await,
        Some(_) => {
            measure("memory", MemoryBackend::new(Arc::new(SystemClock::new())), callers, updates).await;
        }
    }
}

async fn measure<B: Backend>(name: &'static str, backend: B, callers: usize, updates: usize) {
    let driver = Driver::start(backend, DriverOptions::new(name, 10_000_000));
    let began = Instant::now();
    let tasks: Vec<_> =
        (0..callers).map(|caller| tokio::spawn(call(driver.clone(), caller, updates / callers))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    let (took, stats) = (began.elapsed(), driver.stats());
    println!(
        "{name}: {callers} callers, {:.0} updates/s, {:.2} µs each, {:.1} a batch, {:.2} µs of it in the backend",
        stats.jobs as f64 / took.as_secs_f64(),
        took.as_secs_f64() * 1e6 / stats.jobs as f64,
        stats.jobs as f64 / stats.batches as f64,
        (stats.load_micros + stats.commit_micros) as f64 / stats.jobs as f64,
    );
}

async fn call<B: Backend>(driver: Driver<B>, caller: usize, updates: usize) {
    let mut random = caller as u64;
    for _ in 0..updates {
        let mut keys = Vec::with_capacity(3);
        for place in 0..3 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut bytes = [0; Key::BYTES];
            let number = (random >> 44) * 3 + place;
            bytes[8..16].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
            bytes[16..].copy_from_slice(&number.to_be_bytes());
            keys.push(Key::from_bytes(bytes));
        }
        let count = driver.update(keys, |view| {
            for index in 0..3 {
                let count = view.get(index).map_or(0, |entry| entry.value[0]);
                view.put(index, [count.wrapping_add(1); 20].as_slice(), view.now_ms() + 60_000);
            }
        });
        count.await.unwrap();
    }
}
