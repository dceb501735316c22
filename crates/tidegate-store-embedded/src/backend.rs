//! The engine as the backend of a limit store.

use std::sync::Arc;

use tidegate_store::{Backend, BackendError, Change, Key, Loaded, Scope, Swept};

use crate::{
    OpenError, Options, Settled, Stats, Upkeep, engine::Engine, error::disk_error, recovery::Checksums,
    threads::Threads,
};

/// A limit store in a directory: the live rows in memory, and a log of every change.
///
/// Dropping it ends its threads and lets another process have the directory.
#[derive(Debug)]
pub struct EmbeddedBackend {
    // Dropped first, since the threads hold the engine too.
    threads: Option<Threads>,
    engine: Arc<Engine>,
}

/// Nothing: a batch holds no resources.
#[derive(Debug)]
pub struct Batch {
    now_ms: u64,
}

impl EmbeddedBackend {
    /// Opens the store, or makes a new one. Reads the whole log.
    ///
    /// # Errors
    /// See [`OpenError`]; nothing has changed then.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        Self::open_with(options, Checksums::default())
    }

    /// [`EmbeddedBackend::open`], for showing that the tests would notice a checksum that is not checked.
    pub(crate) fn open_with(options: &Options, checksums: Checksums) -> Result<Self, OpenError> {
        let engine = Arc::new(Engine::open(options, checksums)?);
        let threads = match options.upkeep {
            Upkeep::Thread => {
                Some(Threads::start(Arc::clone(&engine)).map_err(disk_error("starting a thread"))?)
            }
            Upkeep::Caller => None,
        };
        Ok(Self { threads, engine })
    }

    /// Numbers for metrics. Costs about a microsecond.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// Does a step of the upkeep; answers whether there is more to do at once. Only needed with
    /// [`Upkeep::Caller`].
    pub fn tick(&self) -> bool {
        self.engine.idle()
    }

    /// Flushes what was written, so that it settles. Only needed with [`Upkeep::Caller`].
    pub fn flush(&self) {
        self.engine.flush();
    }

    /// What does the work, for tests that do a part of it.
    #[cfg(test)]
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }
}

impl Drop for EmbeddedBackend {
    fn drop(&mut self) {
        drop(self.threads.take());
        self.engine.close();
    }
}

impl Backend for EmbeddedBackend {
    type Batch = Batch;
    type Settled = Settled;

    fn shared(&self) -> bool {
        false
    }

    async fn load(&self, keys: &[Key]) -> Result<Loaded<Batch>, BackendError> {
        let (now_ms, rows, rows_held) = self.engine.load(keys)?;
        Ok(Loaded { now_ms, rows, rows_held: Some(rows_held), batch: Batch { now_ms } })
    }

    async fn commit(&self, batch: Batch, changes: Vec<Change>) -> Result<Settled, BackendError> {
        let (written_bytes, settled) = self.engine.commit(batch.now_ms, &changes)?;
        if self.threads.is_none() {
            self.engine.step(written_bytes);
        }
        Ok(settled)
    }

    async fn keys_in(&self, scope: Scope, keys_max: usize) -> Result<Vec<Key>, BackendError> {
        self.engine.keys_in(scope, keys_max)
    }

    async fn sweep(&self, rows_max: usize) -> Result<Swept, BackendError> {
        self.engine.sweep(rows_max)
    }

    async fn count(&self) -> Result<u64, BackendError> {
        self.engine.count()
    }
}
