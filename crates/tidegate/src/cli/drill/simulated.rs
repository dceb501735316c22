//! A guard in this process, on a clock that the drill moves.

use std::{collections::BTreeMap, sync::Arc};

use prometheus_client::registry::Registry;
use tempfile::TempDir;
use tidegate_client::{GuardClient, TIMEOUT_MAX, control::ControlClient};
use tidegate_core::admission::{DAY_MS, FamilyRules};
use tidegate_guard::{Guard, GuardOptions, Metrics};
use tidegate_protocol::name::Family;
use tidegate_store::{
    Driver, DriverOptions, LimitStore, MemoryBackend,
    clock::{Clock, ManualClock},
};
use tidegate_store_embedded::{EmbeddedBackend, Options};

use super::{DrillError, target::Target};
use crate::{config::Secret, secrets};

/// A guard in this process.
#[derive(Debug, Clone)]
pub(super) struct Simulated {
    client: GuardClient,
    control: ControlClient,
    clock: Arc<ManualClock>,
    families: BTreeMap<Family, FamilyRules>,
    pepper: Secret,
    /// Where its rows are kept, if not in memory.
    disk: Option<Disk>,
}

#[derive(Debug, Clone)]
struct Disk {
    folder: Arc<TempDir>,
    store: Driver<EmbeddedBackend>,
}

/// A midnight, so that a simulated day is a whole one: that of 2026-01-01 UTC.
const START_MS: u64 = 20_454 * DAY_MS;

/// Far more than the rows of any drill.
const ROWS_MAX: u64 = 16_000_000;

impl Simulated {
    /// A guard whose rows are in memory. Must be called within a tokio runtime.
    pub(super) fn in_memory(families: BTreeMap<Family, FamilyRules>) -> Result<Self, DrillError> {
        let (clock, pepper) = (Arc::new(ManualClock::at(START_MS)), secrets::fresh()?);
        let backend = MemoryBackend::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let store = Driver::start(backend, DriverOptions::new("drill", ROWS_MAX));
        Ok(Self::over(Arc::new(store), clock, families, pepper, None))
    }

    /// A guard whose rows are on disk, in a temporary folder. Must be called within a tokio runtime.
    pub(super) fn on_disk(families: BTreeMap<Family, FamilyRules>) -> Result<Self, DrillError> {
        let folder = TempDir::with_prefix("tidegate-drill-").map_err(DrillError::Folder)?;
        let clock = Arc::new(ManualClock::at(START_MS));
        Self::opened(Arc::new(folder), clock, families, secrets::fresh()?)
    }

    fn opened(
        folder: Arc<TempDir>,
        clock: Arc<ManualClock>,
        families: BTreeMap<Family, FamilyRules>,
        pepper: Secret,
    ) -> Result<Self, DrillError> {
        let options = Options { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..Options::at(folder.path()) };
        let store = Driver::start(EmbeddedBackend::open(&options)?, DriverOptions::new("drill", ROWS_MAX));
        let disk = Some(Disk { folder, store: store.clone() });
        Ok(Self::over(Arc::new(store), clock, families, pepper, disk))
    }

    fn over(
        store: Arc<dyn LimitStore>,
        clock: Arc<ManualClock>,
        families: BTreeMap<Family, FamilyRules>,
        pepper: Secret,
        disk: Option<Disk>,
    ) -> Self {
        let metrics = Arc::new(Metrics::register(&mut Registry::default()));
        let options = GuardOptions::of(families.clone());
        let guard = Guard::new(store, Arc::clone(&clock) as Arc<dyn Clock>, options, metrics);
        let client = GuardClient::in_process(guard.clone(), &pepper).with_timeout(TIMEOUT_MAX);
        Self { client, control: ControlClient::in_process(guard), clock, families, pepper, disk }
    }
}

impl Target for Simulated {
    fn client(&self) -> &GuardClient {
        &self.client
    }

    fn control(&self) -> &ControlClient {
        &self.control
    }

    fn simulated_from_ms(&self) -> Option<u64> {
        Some(START_MS)
    }

    fn pass(&self, by_ms: u64) {
        self.clock.advance(by_ms);
    }

    async fn restart(self) -> Result<Self, DrillError> {
        let Self { client, control, clock, families, pepper, disk } = self;
        let Some(Disk { folder, store }) = disk else { return Err(DrillError::NothingKept) };
        store.shutdown().await;
        // The last handles on the store: with them the folder is let go.
        drop((client, control, store));
        Self::opened(folder, clock, families, pepper)
    }
}
