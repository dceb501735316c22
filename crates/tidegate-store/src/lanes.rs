//! One store, with a driver on each thread that serves requests.
//!
//! A caller's update is worked off on the caller's own thread: nobody is woken on another one, which would
//! cost more than the update. The drivers take turns at the backend; while the batches of one wait for the
//! disk, the others have their turns.

use std::{cell::Cell, fmt, sync::Arc, time::Duration};

use tokio::{
    runtime::Handle,
    sync::{Mutex, OwnedMutexGuard},
};

use crate::{
    Backend, BackendError, Change, Driver, DriverOptions, DriverStats, Entry, Job, Key, Keys, LimitStore,
    Loaded, Scope, StoreError, Swept, contract::BoxFuture,
};

/// A limit store over a backend of this process, with one driver a thread.
pub struct Lanes<B: Backend> {
    drivers: Arc<[Driver<Turns<B>>]>,
    backend: Arc<B>,
}

thread_local! {
    /// Which driver the callers of this thread use.
    static LANE: Cell<usize> = const { Cell::new(0) };
}

/// Says that the calling thread is the `lane`-th of those that [`Lanes::start`] was given. A thread that never
/// says so uses the first one's driver, at the cost of waking it.
pub fn enter(lane: usize) {
    LANE.set(lane);
}

impl<B: Backend> Lanes<B> {
    /// Starts a driver on each of `runtimes`, of which there must be one or more; each runs on a thread of its own.
    #[must_use]
    pub fn start(backend: B, options: &DriverOptions, runtimes: &[Handle]) -> Self {
        let backend = Arc::new(backend);
        let turn = Arc::new(Mutex::new(()));
        let drivers = runtimes.iter().enumerate().map(|(lane, runtime)| {
            let options = DriverOptions {
                max_calls: options.max_calls.div_ceil(runtimes.len()),
                queue_jobs_max: options.queue_jobs_max.div_ceil(runtimes.len()),
                // One of them sweeps for all.
                sweep_interval: if lane == 0 { options.sweep_interval } else { NEVER },
                ..options.clone()
            };
            let _entered = runtime.enter();
            Driver::start(Turns { backend: Arc::clone(&backend), turn: Arc::clone(&turn) }, options)
        });
        Self { drivers: drivers.collect(), backend }
    }

    /// What the drivers have done so far, together.
    #[must_use]
    pub fn stats(&self) -> DriverStats {
        self.drivers.iter().map(Driver::stats).reduce(DriverStats::and).unwrap_or_default()
    }

    /// The backend, to read its own numbers; its rows belong to the drivers.
    #[must_use]
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Shuts every driver down; see [`Driver::shutdown`].
    pub async fn shutdown(&self) {
        for driver in &*self.drivers {
            driver.shutdown().await;
        }
    }

    fn here(&self) -> &Driver<Turns<B>> {
        self.drivers.get(LANE.get()).unwrap_or(&self.drivers[0])
    }
}

impl<B: Backend> Clone for Lanes<B> {
    fn clone(&self) -> Self {
        Self { drivers: Arc::clone(&self.drivers), backend: Arc::clone(&self.backend) }
    }
}

impl<B: Backend> fmt::Debug for Lanes<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes").field("drivers", &self.drivers.len()).finish_non_exhaustive()
    }
}

impl<B: Backend> LimitStore for Lanes<B> {
    fn shared(&self) -> bool {
        self.here().shared()
    }

    fn run(&self, keys: Keys, job: Box<dyn Job>) -> BoxFuture<'_, Result<Box<dyn Job>, StoreError>> {
        self.here().run(keys, job)
    }

    fn read(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Vec<Option<Entry>>, StoreError>> {
        self.here().read(keys)
    }

    fn forget(&self, scope: Scope) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.here().forget(scope)
    }

    fn sweep(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.here().sweep()
    }
}

/// Longer than any process runs.
const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// A backend that several drivers use in turn: a batch holds the turn from its load to its commit, and settles
/// without it.
struct Turns<B> {
    backend: Arc<B>,
    turn: Arc<Mutex<()>>,
}

impl<B: Backend> Backend for Turns<B> {
    type Batch = (B::Batch, OwnedMutexGuard<()>);
    type Settled = B::Settled;

    fn shared(&self) -> bool {
        self.backend.shared()
    }

    async fn load(&self, keys: &[Key]) -> Result<Loaded<Self::Batch>, BackendError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let Loaded { now_ms, rows, rows_held, batch } = self.backend.load(keys).await?;
        Ok(Loaded { now_ms, rows, rows_held, batch: (batch, turn) })
    }

    async fn load_watching(
        &self,
        keys: &[Key],
        watched: &[bool],
    ) -> Result<Loaded<Self::Batch>, BackendError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let Loaded { now_ms, rows, rows_held, batch } = self.backend.load_watching(keys, watched).await?;
        Ok(Loaded { now_ms, rows, rows_held, batch: (batch, turn) })
    }

    async fn commit(
        &self,
        (batch, turn): Self::Batch,
        changes: Vec<Change>,
    ) -> Result<B::Settled, BackendError> {
        let committed = self.backend.commit(batch, changes).await;
        drop(turn);
        committed
    }

    async fn keys_in(&self, scope: Scope, keys_max: usize) -> Result<Vec<Key>, BackendError> {
        self.backend.keys_in(scope, keys_max).await
    }

    async fn sweep(&self, rows_max: usize) -> Result<Swept, BackendError> {
        let _turn = self.turn.lock().await;
        self.backend.sweep(rows_max).await
    }

    async fn count(&self) -> Result<u64, BackendError> {
        self.backend.count().await
    }
}

#[cfg(test)]
mod tests;
