//! The limits over a guard in this process, with a clock that the test moves.

mod attempt;
mod bulk_read;
mod common;
mod cut_over;
mod replay;
mod route;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use prometheus_client::registry::Registry;
use tidegate_core::{INTEGER_MAX, admission::FamilyRules, secret::Secret};
use tidegate_guard::{Guard, GuardOptions, Metrics};
use tidegate_store::{
    Driver, DriverOptions, MemoryBackend,
    clock::{Clock, ManualClock},
};

use super::*;
use crate::{Caller, GuardClient};

/// A UTC midnight, so that every window of whole seconds, minutes or hours begins here.
const START_MS: u64 = 1_764_460_800_000;
const MINUTE: Duration = Duration::from_secs(60);

/// A guard, its clock, and what hooks were told.
struct Bench {
    guard: Guard,
    clock: Arc<ManualClock>,
    told: Arc<Told>,
}

/// What was told: the outcome, where it was decided, whether it was only observed.
type Row = (Outcome, DecidedBy, bool);

#[derive(Debug, Default)]
struct Told(Mutex<Vec<Row>>);

impl Bench {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(START_MS));
        let shared = || Arc::clone(&clock) as Arc<dyn Clock>;
        let store = Driver::start(MemoryBackend::new(shared()), DriverOptions::new("client", 100_000));
        let roomy = FamilyRules { shares_bp: [10_000; 5], ..FamilyRules::of_budget(INTEGER_MAX) };
        let families = Family::ALL.map(|family| (family.name(), roomy.clone()));
        let metrics = Arc::new(Metrics::register(&mut Registry::default()));
        let guard = Guard::new(Arc::new(store), shared(), GuardOptions::of(families), metrics);
        Self { guard, clock, told: Arc::default() }
    }

    fn selection(&self) -> Selection {
        Selection::of(self.client(), Family::ALL)
    }

    fn client(&self) -> GuardClient {
        let pepper = Secret::new("pepper-for-test-vectors-0123456789abcdef").unwrap();
        GuardClient::in_process(self.guard.clone(), &pepper)
    }

    fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.told) as Arc<dyn Observer>
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as Arc<dyn Clock>
    }

    /// Moves the clock to `ms` after the start.
    fn at(&self, ms: u64) {
        self.clock.advance_to(START_MS + ms);
    }

    async fn stop(&self) {
        self.guard.operator().stop(Default::default(), "a test").await.unwrap();
    }

    async fn resume(&self) {
        self.guard.operator().resume(Default::default(), "a test").await.unwrap();
    }

    /// What was told since the last time, of one call.
    #[track_caller]
    fn told(&self) -> Row {
        let rows = std::mem::take(&mut *self.told.0.lock().unwrap());
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows[0]
    }
}

impl Observer for Told {
    fn decided(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push((event.outcome, event.decided_by, event.observed_only));
    }
}

/// A family that is assigned, and off.
fn off() -> Selection {
    Selection::from_variables(|name| match name {
        "TIDEGATE_CLIENT_FAMILIES" => Some("offline,replay,proxy,password".into()),
        "TIDEGATE_CLIENT_BACKEND" => Some("off".into()),
        _ => None,
    })
}

/// Nothing is assigned.
fn unassigned() -> Selection {
    Selection::from_variables(|_| None)
}

fn caller(number: u32) -> Caller<'static> {
    Caller::from(std::net::IpAddr::from((0x0a00_0000 + number).to_be_bytes()))
}

const LIMITED: Outcome = Outcome::Refused(RefusalCode::RateLimited);
