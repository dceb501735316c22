//! The store that the configuration names.

use std::{sync::Arc, time::Duration};

use sha2::{Digest, Sha256};
use tidegate_store::{
    Backend, BoxFuture, DriverOptions, DriverStats, Lanes, LimitStore, MemoryBackend,
    clock::{Clock, SystemClock},
};
use tidegate_store_embedded::{self as embedded, EmbeddedBackend, OpenError};

use tokio::runtime::Handle;

use crate::config::{Durability, Store, StoreKind};

/// An open store, whichever it is, and the clock it goes by.
#[derive(Clone)]
pub(super) struct OpenStore {
    running: Arc<dyn Running>,
    clock: Arc<dyn Clock>,
    /// The same, where it is the embedded one.
    embedded: Option<Lanes<EmbeddedBackend>>,
}

/// What all stores have in common.
trait Running: Send + Sync {
    fn limit_store(&self) -> Arc<dyn LimitStore>;
    fn stats(&self) -> DriverStats;
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}

impl<B: Backend> Running for Lanes<B> {
    fn limit_store(&self) -> Arc<dyn LimitStore> {
        Arc::new(self.clone())
    }

    fn stats(&self) -> DriverStats {
        Self::stats(self)
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::shutdown(self))
    }
}

/// The embedded engine frees expired rows at the cost of those rows alone, so it is asked often.
const EMBEDDED_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

impl OpenStore {
    /// Opens it, with a driver on each of `runtimes`.
    pub(super) fn open(store: &Store, runtimes: &[Handle]) -> Result<Self, OpenError> {
        let options = |name| DriverOptions {
            deadline: Duration::from_millis(store.deadline_ms),
            max_calls: usize::try_from(store.max_calls).unwrap_or(usize::MAX),
            secret: store.secret.clone(),
            ..DriverOptions::new(name, store.max_entries)
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        match store.kind {
            StoreKind::Memory => {
                let backend = MemoryBackend::new(Arc::clone(&clock));
                let running = Arc::new(Lanes::start(backend, &options("memory"), runtimes));
                Ok(Self { running, clock, embedded: None })
            }
            StoreKind::Embedded => {
                let backend = open_embedded(store, &clock)?;
                let options =
                    DriverOptions { sweep_interval: EMBEDDED_SWEEP_INTERVAL, ..options("embedded") };
                let lanes = Lanes::start(backend, &options, runtimes);
                Ok(Self { running: Arc::new(lanes.clone()), clock, embedded: Some(lanes) })
            }
        }
    }

    pub(super) fn limit_store(&self) -> Arc<dyn LimitStore> {
        self.running.limit_store()
    }

    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    pub(super) fn stats(&self) -> DriverStats {
        self.running.stats()
    }

    /// The embedded engine, where the store is one.
    pub(super) fn embedded(&self) -> Option<&EmbeddedBackend> {
        self.embedded.as_ref().map(Lanes::backend)
    }

    pub(super) async fn shutdown(&self) {
        self.running.shutdown().await;
    }
}

fn open_embedded(store: &Store, clock: &Arc<dyn Clock>) -> Result<EmbeddedBackend, OpenError> {
    EmbeddedBackend::open(&embedded::Options {
        durability: match store.durability {
            Durability::Fsync => embedded::Durability::Fsync,
            Durability::Process => embedded::Durability::Process,
            Durability::None => embedded::Durability::None,
        },
        clock: Arc::clone(clock),
        secret_id: store.secret.as_ref().map(|secret| secret_id(secret.expose())),
        ..embedded::Options::at(&store.path)
    })
}

/// Tells the rows of one secret from those of another, without telling anything of the secret.
fn secret_id(secret: &str) -> u64 {
    let digest = Sha256::new().chain_update(b"tidegate store secret id\n").chain_update(secret).finalize();
    u64::from_le_bytes(digest.first_chunk().copied().unwrap_or_default())
}
