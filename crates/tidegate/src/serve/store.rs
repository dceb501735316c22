//! The store that the configuration names.

use std::{sync::Arc, time::Duration};

use sha2::{Digest, Sha256};
use tidegate_store::{DriverOptions, DriverStats, Lanes, LimitStore, MemoryBackend, clock::SystemClock};
use tidegate_store_embedded::{self as embedded, EmbeddedBackend, OpenError};

use tokio::runtime::Handle;

use crate::config::{Durability, Store, StoreKind};

/// An open store.
#[derive(Clone)]
pub(super) enum OpenStore {
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
        if store.kind == StoreKind::Memory {
            let backend = MemoryBackend::new(Arc::new(SystemClock::new()));
            return Ok(Self::Memory(Lanes::start(backend, &options("memory"), runtimes)));
        }
        let backend = EmbeddedBackend::open(&embedded::Options {
            durability: match store.durability {
                Durability::Fsync => embedded::Durability::Fsync,
                Durability::Process => embedded::Durability::Process,
                Durability::None => embedded::Durability::None,
            },
            secret_id: store.secret.as_ref().map(|secret| secret_id(secret.expose())),
            ..embedded::Options::at(&store.path)
        })?;
        let options = DriverOptions { sweep_interval: EMBEDDED_SWEEP_INTERVAL, ..options("embedded") };
        Ok(Self::Embedded(Lanes::start(backend, &options, runtimes)))
    }

    pub(super) fn limit_store(&self) -> Arc<dyn LimitStore> {
        match self {
            Self::Memory(driver) => Arc::new(driver.clone()),
            Self::Embedded(driver) => Arc::new(driver.clone()),
        }
    }

    pub(super) fn stats(&self) -> DriverStats {
        match self {
            Self::Memory(driver) => driver.stats(),
            Self::Embedded(driver) => driver.stats(),
        }
    }

    /// The embedded engine, where the store is one.
    pub(super) fn embedded(&self) -> Option<&EmbeddedBackend> {
        match self {
            Self::Memory(_) => None,
            Self::Embedded(driver) => Some(driver.backend()),
        }
    }

    pub(super) async fn shutdown(&self) {
        match self {
            Self::Memory(driver) => driver.shutdown().await,
            Self::Embedded(driver) => driver.shutdown().await,
        }
    }
}

/// Tells the rows of one secret from those of another, without telling anything of the secret.
fn secret_id(secret: &str) -> u64 {
    let digest = Sha256::new().chain_update(b"tidegate store secret id\n").chain_update(secret).finalize();
    u64::from_le_bytes(digest.first_chunk().copied().unwrap_or_default())
}
