//! The driver: coalesces the updates of all callers into batches, keeps every deadline and bound, sweeps.
//!
//! Callers put their updates into a line. A worker takes all that wait, loads the rows that they need from
//! the backend, runs them in turn, commits what changed once, and answers them all when that has settled.
//! While the backend works, the next batch gathers: the slower the backend, the larger the batches, with no
//! delay of their own.

mod bound;
mod forget;
mod guarded;
mod log;
mod options;
mod overlay;
mod plan;
mod rhythm;
mod settling;
mod shared;
mod stats;
mod sweep;
mod watch;
mod worker;

use std::{fmt, sync::Arc};

use tokio::sync::watch::{Receiver, Sender, channel};
use tracing::warn;

pub use bound::Filling;
pub use options::DriverOptions;
pub use stats::{BATCH_SIZES, DriverStats};

use self::{shared::Shared, worker::Worker};
use crate::{
    Backend, Entry, Invalid, Job, KEYS_MAX, Key, Keys, LimitStore, LimitStoreExt, Scope, StoreError,
    Unavailable, contract::BoxFuture,
};

/// A limit store over a backend. Clones are handles on the same store; the last one that goes stops it.
pub struct Driver<B: Backend>(Arc<Handle<B>>);

struct Handle<B: Backend> {
    shared: Arc<Shared<B>>,
    /// Closed when both tasks have ended and let go of the backend.
    running: Receiver<()>,
}

impl<B: Backend> Driver<B> {
    /// Starts the driver's tasks on the current tokio runtime, which must have its timer enabled.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn start(backend: B, options: DriverOptions) -> Self {
        let shared = Arc::new(Shared::new(backend, options));
        let (alive, running) = channel(());
        tokio::spawn(keep_alive(alive.clone(), watch::watch(Arc::clone(&shared))));
        tokio::spawn(keep_alive(alive, Worker::new(Arc::clone(&shared)).run()));
        Self(Arc::new(Handle { shared, running }))
    }

    /// Takes no more calls (they are answered [`Unavailable::Busy`]), works off those it took, and stops. A
    /// backend that does not answer is waited for until every call has been answered, and as long again;
    /// then it is left to itself, and a warning says so.
    pub async fn shutdown(&self) {
        self.0.close();
        let mut running = self.0.running.clone();
        let stopped = tokio::time::timeout(self.0.shared.options.deadline * 2, async {
            while running.changed().await.is_ok() {}
        });
        if stopped.await.is_err() {
            let store = self.0.shared.options.name;
            warn!(kind = "limit-store-hanging", store, "the backend does not answer; stopped without it");
        }
    }

    /// What the driver has done so far.
    #[must_use]
    pub fn stats(&self) -> DriverStats {
        let shared = &self.0.shared;
        shared.counters.read(shared.options.filling.held())
    }

    /// The backend, to read its own numbers; its rows belong to the driver.
    #[must_use]
    pub fn backend(&self) -> &B {
        &self.0.shared.backend
    }

    /// Runs a job on keys that the store's secret has been applied to.
    async fn run_hashed(&self, keys: Keys, job: Box<dyn Job>) -> Result<Box<dyn Job>, StoreError> {
        let answered = self.0.shared.enter(keys, job)?;
        // The worker answers or drops every call; it drops them with its runtime.
        answered.await.unwrap_or(Err(Unavailable::Backend.into()))
    }
}

impl<B: Backend> LimitStore for Driver<B> {
    fn shared(&self) -> bool {
        self.0.shared.backend.shared()
    }

    fn run(&self, mut keys: Keys, job: Box<dyn Job>) -> BoxFuture<'_, Result<Box<dyn Job>, StoreError>> {
        Box::pin(async move {
            check_keys(&keys.all)?;
            if let Some(secret) = &self.0.shared.secret {
                secret.apply(&mut keys.all);
            }
            self.run_hashed(keys, job).await
        })
    }

    fn read(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Vec<Option<Entry>>, StoreError>> {
        let count = keys.len();
        let keys = Keys::default().watching(keys);
        Box::pin(
            self.update_watching(keys, move |view| {
                (0..count).map(|index| view.get(index).cloned()).collect()
            }),
        )
    }

    fn forget(&self, scope: Scope) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(forget::forget(self, scope))
    }

    /// [`Unavailable::Deadline`] says that the sweep takes longer; it goes on.
    fn sweep(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            let answered = self.0.shared.enter_sweep()?;
            answered.await.unwrap_or(Err(Unavailable::Backend.into()))
        })
    }
}

impl<B: Backend> Clone for Driver<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B: Backend> fmt::Debug for Driver<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("store", &self.0.shared.options.name).finish_non_exhaustive()
    }
}

impl<B: Backend> Handle<B> {
    fn close(&self) {
        let mut line = self.shared.line.lock();
        line.closed = true;
        line.asleep = false;
        drop(line);
        self.shared.work.notify_one();
    }
}

impl<B: Backend> Drop for Handle<B> {
    fn drop(&mut self) {
        self.close();
    }
}

/// Runs `task`, and lets go of `alive` after it has let go of everything.
async fn keep_alive(alive: Sender<()>, task: impl Future<Output = ()>) {
    task.await;
    drop(alive);
}

/// Refuses too many keys, and one that is named twice.
pub(crate) fn check_keys(keys: &[Key]) -> Result<(), Invalid> {
    if keys.len() > KEYS_MAX {
        return Err(Invalid::TooManyKeys { keys: keys.len() });
    }
    if keys.len() <= FEW_KEYS {
        let duplicate = (1..keys.len()).find(|&index| keys[..index].contains(&keys[index]));
        return duplicate.map_or(Ok(()), |index| Err(Invalid::DuplicateKey { index }));
    }
    let mut named: Vec<(&Key, usize)> = keys.iter().zip(0..).collect();
    named.sort_unstable();
    let seconds = named.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1);
    seconds.min().map_or(Ok(()), |index| Err(Invalid::DuplicateKey { index }))
}

/// Up to here comparing all pairs is faster than sorting.
const FEW_KEYS: usize = 16;
