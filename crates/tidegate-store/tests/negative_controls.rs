//! Each case of the contract catches the store that breaks just its promise, and passes one that breaks none.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests; their helpers, too")]

use std::{sync::Arc, time::Duration};

use tidegate_store::{
    DriverOptions, MemoryBackend,
    clock::{Clock, ManualClock},
    testing::{self, Fault, Handles, NaiveStore, Outcome},
};
use tokio::{task::JoinSet, time::Instant};

/// Every case of the contract, with a store that it must catch.
const CONTROLS: [(&str, Fault); 34] = [
    ("zero and an empty value are not absence", Fault::EmptyIsAbsent),
    ("a deleted row is absent", Fault::DeletesNothing),
    ("rows are read in the order of their keys", Fault::ReadsSorted),
    ("every handle sees one clock, which never goes back", Fault::ClocksDiffer),
    ("an expired row is absent", Fault::ServesExpired),
    ("a row ends exactly at its expiry", Fault::EndsOneLate),
    ("the last write sets the expiry", Fault::KeepsFirstExpiry),
    ("reopening keeps what was acknowledged", Fault::ForgetsOnReopen),
    ("different keys are different rows", Fault::CutsKeys),
    ("forgetting removes what belongs together", Fault::ForgetsTheGroup),
    ("values are bounded", Fault::CutsValues),
    ("expiries are bounded", Fault::IgnoresFaults),
    ("a key stands once in an update", Fault::AllowsDuplicates),
    ("keys of an update are bounded", Fault::AllowsManyKeys),
    ("watched rows are read and not written", Fault::WritesWatched),
    ("an invalid update leaves nothing", Fault::KeepsHalf),
    ("an invalid update harms no other", Fault::FailsNeighbours),
    ("an update sees those before it", Fault::ReadsStale),
    ("first attempts at once are counted", Fault::LocksExistingRows),
    ("updates at once never see the same count", Fault::SplitsUpdates),
    ("rows of one update change together", Fault::TearsWrites),
    ("conflicting key orders lose no update", Fault::LocksFirstKey),
    ("a claim has one holder at a time", Fault::LocksExistingRows),
    ("many callers are all served", Fault::BusyEarly),
    ("a full store keeps what lives", Fault::EvictsLive),
    ("a full store goes on counting", Fault::CountsAdditions),
    ("the bound holds for callers at once", Fault::IgnoresBound),
    ("expired rows make room", Fault::ExpiredTakeRoom),
    ("sweeping removes what has expired", Fault::SweepsNothing),
    ("sweeping keeps what lives", Fault::SweepsByAge),
    ("a failing store is no answer", Fault::FailureReadsEmpty),
    ("every call is answered by its deadline", Fault::NoDeadline),
    ("a store that hangs is busy at once", Fault::NeverBusy),
    ("an update is answered once it has settled", Fault::AnswersEarly),
];

fn naive(max_entries: u64, fault: Fault) -> Handles {
    let deadline = Duration::from_millis(500);
    NaiveStore::handles(DriverOptions { deadline, ..DriverOptions::new("naive", max_entries) }, fault)
}

#[tokio::test(start_paused = true)]
async fn each_case_catches_the_store_that_breaks_it() {
    let cases = testing::contract_cases();
    assert_eq!(
        cases.iter().map(|case| case.name).collect::<Vec<_>>(),
        CONTROLS.map(|(name, _)| name),
        "every case has a store that breaks it"
    );
    for (case, (_, fault)) in cases.into_iter().zip(CONTROLS) {
        let violation = case.run(naive(case.max_entries, fault)).await;
        let violation = violation.expect_err(&format!("{case:?} did not see {fault:?}"));
        assert_eq!(violation.case, case.name);
        println!("{fault:?} - {violation}");
        assert_eq!(case.run(naive(case.max_entries, Fault::None)).await, Ok(Outcome::Kept), "{case:?}");
    }
}

/// Nor does a case see less if the store is in another process: what is asked and answered goes the same way here.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_case_catches_it_in_another_process() {
    // Whoever waits for a store that does not answer waits for long, in real time.
    let controls = testing::contract_cases().into_iter().zip(CONTROLS.map(|(_, fault)| fault));
    let caught = controls.filter(|(_, fault)| *fault != Fault::NoDeadline).map(|(case, fault)| async move {
        let handles = naive(case.max_entries, fault).forwarded().await.unwrap();
        assert!(case.run(handles).await.is_err(), "{case:?} did not see {fault:?}");
    });
    caught.collect::<JoinSet<()>>().join_all().await;
}

/// A store in memory, whose rows outlive its driver.
fn kept(max_entries: u64, deadline: Duration) -> Handles {
    let clock = Arc::new(ManualClock::at(START_MS));
    let backend = Arc::new(MemoryBackend::new(clock.clone()));
    let options = DriverOptions { deadline, ..DriverOptions::new("memory", max_entries) };
    Handles::reopenable(move || backend.clone(), &options, Some(clock))
}

#[tokio::test(start_paused = true)]
async fn a_store_in_memory_keeps_the_contract() {
    let report = testing::check_all(async |max_entries| kept(max_entries, Duration::from_secs(2))).await;
    let report = report.unwrap_or_else(|violations| panic!("{violations}"));
    assert_eq!(report.kept, CONTROLS.map(|(name, _)| name));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_keeps_the_contract_on_several_threads() {
    let report = testing::check_all(async |max_entries| kept(max_entries, Duration::from_millis(500))).await;
    let report = report.unwrap_or_else(|violations| panic!("{violations}"));
    assert_eq!(report.kept.len(), CONTROLS.len());
}

/// The time of the test's runtime, which its sleeps move.
#[derive(Debug)]
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now_ms(&self) -> u64 {
        START_MS + u64::try_from(self.0.elapsed().as_millis()).unwrap()
    }

    fn advance_to(&self, _: u64) {}
}

#[tokio::test(start_paused = true)]
async fn a_store_on_a_clock_that_nobody_moves_keeps_it() {
    let report = testing::check_all(async |max_entries| {
        let backend = MemoryBackend::new(Arc::new(RuntimeClock(Instant::now())));
        Handles::in_process(backend, &DriverOptions::new("memory", max_entries), None)
    })
    .await;
    let report = report.unwrap_or_else(|violations| panic!("{violations}"));
    assert_eq!(report.kept.len(), CONTROLS.len() - 1, "but for reopening: {:?}", report.not_shown);
}

const START_MS: u64 = 1_700_000_000_000;
