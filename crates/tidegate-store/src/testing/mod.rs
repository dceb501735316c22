//! The contract's own tests: for whoever writes a store, and proof that each test can fail.
//!
//! ```
//! use std::sync::Arc;
//! use tidegate_store::{DriverOptions, MemoryBackend, clock::ManualClock, testing};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), testing::Violations> {
//! let report = testing::check_all(async |max_entries| {
//!     let clock = Arc::new(ManualClock::at(1_700_000_000_000));
//!     let backend = MemoryBackend::new(clock.clone());
//!     testing::Handles::in_process(backend, &DriverOptions::new("memory", max_entries), Some(clock))
//! })
//! .await?;
//! assert_eq!(report.not_shown, [("reopening keeps what was acknowledged", "the store can't be reopened")]);
//! # Ok(())
//! # }
//! ```
//!
//! A backend in this process starts from [`Handles::in_process`] or [`Handles::reopenable`], one that
//! instances share from [`Handles::two_instances`] and [`Handles::two_processes`], and a store without a driver
//! implements [`Harness`].

mod cases;
mod faulty;
mod harness;
mod naive;
mod processes;
mod unlocked;

use std::{fmt, time::Duration};

use thiserror::Error;

pub use cases::contract_cases;
pub use faulty::{Disturbance, FaultyBackend, Switch};
pub use harness::{Handles, Harness, Reopened};
pub use naive::{Fault, NaiveStore};
pub use processes::{place_of_child, take_part};
pub use unlocked::Unlocked;

use crate::{StoreError, contract::BoxFuture};

/// One promise of the contract, and how to see whether a store keeps it.
#[derive(Clone, Copy)]
pub struct ContractCase {
    /// What a store that passes can be said to do.
    pub name: &'static str,
    /// The bound of the fresh, empty store that the case needs.
    pub max_entries: u64,
    check: fn(Handles) -> BoxFuture<'static, Result<Outcome, What>>,
}

/// What a case saw of a store that broke no promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The promise is kept.
    Kept,
    /// The harness can't bring about what the case needs.
    NotShown(&'static str),
}

/// A promise that a store has broken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{case}: {what}")]
pub struct ContractViolation {
    /// The name of the case.
    pub case: &'static str,
    /// What was seen.
    pub what: String,
}

/// Everything that [`check_all`] found broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations(pub Vec<ContractViolation>);

/// What [`check_all`] saw of a store that broke no promise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The cases that it passed.
    pub kept: Vec<&'static str>,
    /// The cases that could not be run, with the reason.
    pub not_shown: Vec<(&'static str, &'static str)>,
}

/// Runs every case, each on a fresh store that `open` makes with room for so many entries.
///
/// # Errors
/// Every violation; all cases are run first.
pub async fn check_all(open: impl AsyncFn(u64) -> Handles) -> Result<Report, Violations> {
    let (mut report, mut violations) = (Report::default(), Vec::new());
    for case in contract_cases() {
        match case.run(open(case.max_entries).await).await {
            Ok(Outcome::Kept) => report.kept.push(case.name),
            Ok(Outcome::NotShown(why)) => report.not_shown.push((case.name, why)),
            Err(violation) => violations.push(violation),
        }
    }
    if violations.is_empty() { Ok(report) } else { Err(Violations(violations)) }
}

impl ContractCase {
    /// Runs the case on a fresh, empty store.
    ///
    /// # Errors
    /// What the store did otherwise. One that does not answer at all is given up on after 15 deadlines.
    pub async fn run(&self, handles: Handles) -> Result<Outcome, ContractViolation> {
        let patience = (handles.deadline * 15).max(PATIENCE_MIN);
        let outcome = tokio::time::timeout(patience, (self.check)(handles)).await;
        let outcome = outcome.unwrap_or_else(|_| Err(What(format!("no answer within {patience:?}"))));
        outcome.map_err(|What(what)| ContractViolation { case: self.name, what })
    }
}

impl fmt::Debug for ContractCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ContractCase").field(&self.name).finish()
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} promises of the limit store are broken", self.0.len())?;
        self.0.iter().try_for_each(|violation| write!(f, "\n- {violation}"))
    }
}

impl std::error::Error for Violations {}

/// What a case saw and should not have.
#[derive(Debug)]
struct What(String);

impl From<StoreError> for What {
    fn from(error: StoreError) -> Self {
        Self(format!("a call that should succeed was answered: {error}"))
    }
}

const PATIENCE_MIN: Duration = Duration::from_secs(10);
