//! The store that the configuration names.

use std::{sync::Arc, time::Duration};

use sha2::{Digest, Sha256};
use tidegate_store::{
    DriverOptions, DriverStats, Lanes, LimitStore, MemoryBackend,
    clock::{Clock, SystemClock},
};
use tidegate_store_embedded::{self as embedded, EmbeddedBackend, OpenError};

use tokio::runtime::Handle;

use crate::config::{Durability, Store, StoreKind};

/// An open store, and the clock it goes by.
#[derive(Clone)]
pub(super) struct OpenStore {
    kind: Kind,
    clock: Arc<dyn Clock>,
}

#[derive(Clone)]
enum Kind {
    Memory(Lanes<MemoryBackend>),
    Embedded(Lanes<EmbeddedBackend>),
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
        if store.kind == StoreKind::Memory {
            let backend = MemoryBackend::new(Arc::clone(&clock));
            return Ok(Self {
                kind: Kind::Memory(Lanes::start(backend, &options("memory"), runtimes)),
                clock,
            });
        }
        let backend = EmbeddedBackend::open(&embedded::Options {
            durability: match store.durability {
                Durability::Fsync => embedded::Durability::Fsync,
                Durability::Process => embedded::Durability::Process,
                Durability::None => embedded::Durability::None,
            },
            clock: Arc::clone(&clock),
            secret_id: store.secret.as_ref().map(|secret| secret_id(secret.expose())),
            ..embedded::Options::at(&store.path)
        })?;
        let options = DriverOptions { sweep_interval: EMBEDDED_SWEEP_INTERVAL, ..options("embedded") };
        Ok(Self { kind: Kind::Embedded(Lanes::start(backend, &options, runtimes)), clock })
    }

    pub(super) fn limit_store(&self) -> Arc<dyn LimitStore> {
        match &self.kind {
            Kind::Memory(driver) => Arc::new(driver.clone()),
            Kind::Embedded(driver) => Arc::new(driver.clone()),
        }
    }

    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    pub(super) fn stats(&self) -> DriverStats {
        match &self.kind {
            Kind::Memory(driver) => driver.stats(),
            Kind::Embedded(driver) => driver.stats(),
        }
    }

    /// The embedded engine, where the store is one.
    pub(super) fn embedded(&self) -> Option<&EmbeddedBackend> {
        match &self.kind {
            Kind::Memory(_) => None,
            Kind::Embedded(driver) => Some(driver.backend()),
        }
    }

    pub(super) async fn shutdown(&self) {
        match &self.kind {
            Kind::Memory(driver) => driver.shutdown().await,
            Kind::Embedded(driver) => driver.shutdown().await,
        }
    }
}

/// Tells the rows of one secret from those of another, without telling anything of the secret.
fn secret_id(secret: &str) -> u64 {
    let digest = Sha256::new().chain_update(b"tidegate store secret id\n").chain_update(secret).finalize();
    u64::from_le_bytes(digest.first_chunk().copied().unwrap_or_default())
}
