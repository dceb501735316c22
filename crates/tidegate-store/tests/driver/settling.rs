//! Batches that are committed and have not settled: others go on meanwhile, and everybody is answered once.

use std::time::Duration;

use tidegate_store::{StoreError, Unavailable};
use tokio::{task::JoinSet, time::Instant};

use crate::scripted::{Call, Says, bump, options, settle, start};

const TAKES: Duration = Duration::from_millis(100);
const FAILED: Result<u8, StoreError> = Err(StoreError::Unavailable(Unavailable::Backend));
const LATE: Result<u8, StoreError> = Err(StoreError::Unavailable(Unavailable::Deadline));

#[tokio::test(start_paused = true)]
async fn some_batches_settle_at_once_and_the_next_gathers() {
    let (driver, script) = start(options(1000));
    script.says(Says { settling_takes: TAKES, ..Says::default() });
    let (began, mut calls) = (Instant::now(), JoinSet::new());
    for name in 0..40 {
        let driver = driver.clone();
        calls.spawn(async move { (name, bump(&driver, name).await, began.elapsed()) });
        settle().await;
    }
    assert_eq!((script.count(Call::Commit), script.count(Call::Settle)), (8, 8));
    for (name, answer, after) in calls.join_all().await {
        let expected = if name < 8 { TAKES } else { 2 * TAKES };
        assert_eq!((answer, after), (Ok(1), expected), "caller {name}");
    }
    assert_eq!(script.count(Call::Commit), 9, "all the others were one batch");
}

#[tokio::test(start_paused = true)]
async fn batches_grow_while_they_wait_for_the_backend() {
    let (driver, script) = start(options(1000));
    script.says(Says { settling_takes: TAKES, ..Says::default() });
    bump(&driver, "a").await.unwrap();
    let calls: JoinSet<_> = (0..8 * 16 + 32)
        .map(|_| {
            let driver = driver.clone();
            async move { bump(&driver, "a").await }
        })
        .collect();
    settle().await;
    assert_eq!(script.count(Call::Settle), 1 + 8);
    assert!(calls.join_all().await.into_iter().all(|answer| answer.is_ok()));
    assert_eq!(script.count(Call::Settle), 1 + 8 + 1, "the next is twice as large");
    assert_eq!(driver.stats().batches_by_size, [1, 0, 8, 1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn what_has_not_settled_is_seen_by_the_next_batch() {
    let (driver, script) = start(options(1000));
    script.says(Says { settling_takes: TAKES, ..Says::default() });
    let mut counts = JoinSet::new();
    for _ in 0..10 {
        let driver = driver.clone();
        counts.spawn(async move { bump(&driver, "a").await.unwrap() });
        settle().await;
    }
    let mut counts = counts.join_all().await;
    counts.sort_unstable();
    assert_eq!(counts, (1..=10).collect::<Vec<u8>>());
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_does_not_settle_is_a_failure() {
    let faults = [
        Says { settling_fails: true, settling_takes: TAKES, ..Says::default() },
        Says { settling_fails: true, ..Says::default() },
        Says { settling_panics: true, ..Says::default() },
    ];
    for says in faults {
        let (driver, script) = start(options(1000));
        script.says(says);
        assert_eq!(bump(&driver, "a").await, FAILED, "{says:?}");
        assert_eq!(driver.stats().backend_failures, 1, "{says:?}");
        script.says(Says::default());
        assert_eq!(bump(&driver, "a").await, Ok(2), "it was committed: {says:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_never_settles_holds_up_only_its_own_callers() {
    let (driver, script) = start(options(1000));
    script.says(Says { settling_takes: Duration::from_secs(3600), ..Says::default() });
    let began = Instant::now();
    let stuck = tokio::spawn({
        let driver = driver.clone();
        async move { (bump(&driver, "a").await, Instant::now()) }
    });
    settle().await;
    script.says(Says::default());
    assert_eq!((bump(&driver, "a").await, began.elapsed()), (Ok(2), Duration::ZERO));
    let (answer, at) = stuck.await.unwrap();
    assert_eq!((answer, at - began), (LATE, Duration::from_secs(2)));
    assert_eq!(bump(&driver, "a").await, Ok(3), "and goes on");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_what_settles() {
    let (driver, script) = start(options(1000));
    script.says(Says { settling_takes: TAKES, ..Says::default() });
    let call = tokio::spawn({
        let driver = driver.clone();
        async move { bump(&driver, "a").await }
    });
    settle().await;
    driver.shutdown().await;
    assert!(call.is_finished());
    assert_eq!(call.await.unwrap(), Ok(1));
}

#[tokio::test(start_paused = true)]
async fn late_calls_of_batches_that_settle_count_as_waiting_for_the_backend() {
    let (driver, script) = start(options(1000));
    settle().await;
    script.says(Says { settling_takes: Duration::from_secs(3600), ..Says::default() });
    let calls: JoinSet<_> = (0..64)
        .map(|_| {
            let driver = driver.clone();
            async move { bump(&driver, "a").await }
        })
        .collect();
    assert!(calls.join_all().await.into_iter().all(|answer| answer == LATE));
    assert_eq!(bump(&driver, "a").await, Err(Unavailable::Busy.into()));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    script.says(Says::default());
    assert!(bump(&driver, "a").await.is_ok(), "they have settled");
}
