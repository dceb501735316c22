//! The engine as the backend of a limit store.

use std::sync::Arc;

use tidegate_store::{Backend, BackendError, Change, Key, Loaded, Scope};

use crate::{
    Durability, OpenError, Options, Stats, Upkeep, engine::Engine, error::disk_error, recovery::Checksums,
    writer::Writer,
};

/// A limit store in a directory: the live rows in memory, and a log of every change.
///
/// Dropping it ends its thread and lets another process have the directory.
#[derive(Debug)]
pub struct EmbeddedBackend {
    // Dropped first, since the thread holds the engine too.
    writer: Option<Writer>,
    engine: Arc<Engine>,
    writes_inline: bool,
    upkeep: Upkeep,
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
        let writer = match options.upkeep {
            Upkeep::Thread => {
                Some(Writer::start(Arc::clone(&engine)).map_err(disk_error("starting a thread"))?)
            }
            Upkeep::Caller => None,
        };
        let writes_inline = writer.is_none() || options.durability != Durability::Fsync;
        Ok(Self { writer, engine, writes_inline, upkeep: options.upkeep })
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

    /// What does the work, for tests that do a part of it.
    #[cfg(test)]
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }
}

impl Drop for EmbeddedBackend {
    fn drop(&mut self) {
        if self.writer.take().is_none() {
            self.engine.close();
        }
    }
}

impl Backend for EmbeddedBackend {
    type Batch = Batch;

    fn shared(&self) -> bool {
        false
    }

    async fn load(&self, keys: &[Key]) -> Result<Loaded<Batch>, BackendError> {
        let (now_ms, rows, rows_held) = self.engine.load(keys)?;
        Ok(Loaded { now_ms, rows, rows_held: Some(rows_held), batch: Batch { now_ms } })
    }

    async fn commit(&self, batch: Batch, changes: Vec<Change>) -> Result<(), BackendError> {
        if let Some(writer) = self.writer.as_ref().filter(|_| !self.writes_inline && !changes.is_empty()) {
            return writer.commit(batch.now_ms, changes).await;
        }
        let written_bytes = self.engine.commit(batch.now_ms, &changes)?;
        if self.upkeep == Upkeep::Caller {
            self.engine.step(written_bytes);
        }
        Ok(())
    }

    async fn keys_in(&self, scope: Scope, keys_max: usize) -> Result<Vec<Key>, BackendError> {
        self.engine.keys_in(scope, keys_max)
    }

    async fn sweep(&self, rows_max: usize) -> Result<usize, BackendError> {
        self.engine.sweep(rows_max)
    }

    async fn count(&self) -> Result<u64, BackendError> {
        self.engine.count()
    }
}
