//! Every call is answered in time, whatever the backend does.

use std::time::Duration;

use parking_lot::Mutex;
use tidegate_store::{
    Driver, DriverOptions, LimitStore, LimitStoreExt, StoreError, Unavailable, testing::Disturbance,
};
use tokio::{
    task::{JoinHandle, JoinSet},
    time::Instant,
};

use crate::scripted::{Call, Says, Scripted, bump, key, options, settle, start};

const DEADLINE: Duration = Duration::from_secs(2);
const LATE: Result<u8, StoreError> = Err(StoreError::Unavailable(Unavailable::Deadline));
const BUSY: Result<u8, StoreError> = Err(StoreError::Unavailable(Unavailable::Busy));

type Timed = JoinHandle<(Result<u8, StoreError>, Duration)>;

/// A call in a task of its own, with the time that its answer took.
fn call(driver: &Driver<Scripted>, name: &'static str) -> Timed {
    let driver = driver.clone();
    tokio::spawn(async move {
        let began = Instant::now();
        (bump(&driver, name).await, began.elapsed())
    })
}

#[tokio::test(start_paused = true)]
async fn calls_are_answered_at_their_own_deadline() {
    let (driver, script) = start(options(1000));
    settle().await;
    script.switch.set(Disturbance::Hang);
    let in_the_backend = call(&driver, "a");
    tokio::time::sleep(Duration::from_millis(700)).await;
    let waiting = call(&driver, "a");
    tokio::time::sleep(Duration::from_millis(800)).await;
    let sweep = tokio::spawn({
        let driver = driver.clone();
        async move { (driver.sweep().await, Instant::now()) }
    });
    let asked = Instant::now();
    settle().await;
    assert_eq!(in_the_backend.await.unwrap(), (LATE, DEADLINE));
    assert_eq!(waiting.await.unwrap(), (LATE, DEADLINE));
    let (swept, at) = sweep.await.unwrap();
    assert_eq!((swept, at - asked), (Err(Unavailable::Deadline.into()), DEADLINE));
    assert_eq!(driver.stats().deadline, 3);
}

#[tokio::test(start_paused = true)]
async fn a_late_update_that_had_not_begun_is_not_run() {
    let (driver, script) = start(options(1000));
    settle().await;
    script.switch.set(Disturbance::Hang);
    let (in_load, waiting) = (call(&driver, "a"), {
        settle().await;
        call(&driver, "a")
    });
    assert_eq!((in_load.await.unwrap().0, waiting.await.unwrap().0), (LATE, LATE));
    script.switch.set(Disturbance::None);
    assert_eq!(bump(&driver, "a").await, Ok(1), "neither was run");
}

#[tokio::test(start_paused = true)]
async fn a_late_update_that_was_being_committed_may_count() {
    let (driver, script) = start(options(1000));
    script.says(Says { commit_takes: 2 * DEADLINE, ..Says::default() });
    assert_eq!(call(&driver, "a").await.unwrap(), (LATE, DEADLINE));
    script.says(Says::default());
    tokio::time::sleep(2 * DEADLINE).await;
    assert_eq!(bump(&driver, "a").await, Ok(2), "once, not twice");
}

#[tokio::test(start_paused = true)]
async fn a_slow_backend_in_time_is_no_fault() {
    let (driver, script) = start(options(1000));
    script.says(Says { load_takes: DEADLINE * 2 / 5, commit_takes: DEADLINE * 2 / 5, ..Says::default() });
    for count in 1..4 {
        assert_eq!(bump(&driver, "a").await, Ok(count));
    }
    assert_eq!(driver.stats().deadline, 0);
}

#[tokio::test(start_paused = true)]
async fn after_64_late_calls_the_next_is_busy_at_once_until_the_backend_answers() {
    let (driver, script) = start(options(1000));
    settle().await;
    script.switch.set(Disturbance::Hang);
    let calls: Vec<_> = (0..63).map(|_| call(&driver, "a")).collect();
    for late in calls {
        assert_eq!(late.await.unwrap(), (LATE, DEADLINE));
    }
    assert_eq!(call(&driver, "a").await.unwrap(), (LATE, DEADLINE), "the 64th still waits");
    assert_eq!(call(&driver, "a").await.unwrap(), (BUSY, Duration::ZERO));
    assert_eq!(driver.sweep().await, Err(Unavailable::Busy.into()));
    assert_eq!(driver.stats().busy, 2);
    script.switch.set(Disturbance::None);
    settle().await;
    assert_eq!(bump(&driver, "a").await, Ok(1));
}

/// A backend that always answers, but later than anyone waits, must not lock callers out for ever.
#[tokio::test(start_paused = true)]
async fn a_backend_that_is_always_late_is_tried_again() {
    let (driver, script) = start(options(1000));
    script.says(Says { load_takes: 2 * DEADLINE, ..Says::default() });
    for _ in 0..3 {
        let calls: JoinSet<_> = (0..200).map(|_| call(&driver, "a")).collect();
        for answer in calls.join_all().await {
            assert_eq!(answer.unwrap().0, LATE);
        }
        assert_eq!(bump(&driver, "a").await, BUSY);
        tokio::time::sleep(2 * DEADLINE).await;
    }
    script.says(Says::default());
    assert_eq!(bump(&driver, "a").await, Ok(1));
}

/// The backend answers just when the calls that wait behind it are past their deadline.
#[tokio::test(start_paused = true)]
async fn late_calls_are_forgotten_when_nobody_waits_for_the_backend() {
    for head_start_ms in 0..50 {
        let (driver, script) = start(options(1000));
        tokio::time::sleep(Duration::from_millis(head_start_ms)).await;
        script.says(Says { load_takes: DEADLINE, ..Says::default() });
        let first = call(&driver, "a");
        settle().await;
        let waiting: JoinSet<_> = (0..64).map(|_| call(&driver, "a")).collect();
        waiting.join_all().await;
        let _ = first.await.unwrap();
        script.says(Says::default());
        tokio::time::sleep(2 * DEADLINE).await;
        assert!(bump(&driver, "a").await.is_ok(), "head start of {head_start_ms} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn healthy_callers_in_any_number_are_never_busy() {
    let (driver, script) = start(options(100_000));
    script.says(Says { commit_takes: Duration::from_millis(100), ..Says::default() });
    let calls: JoinSet<_> = (0..4000).map(|_| call(&driver, "a")).collect();
    for answer in calls.join_all().await {
        assert!(answer.unwrap().0.is_ok());
    }
    assert_eq!((driver.stats().busy, driver.stats().jobs), (0, 4000));
}

#[tokio::test(start_paused = true)]
async fn the_line_is_bounded() {
    let (driver, script) = start(DriverOptions { queue_jobs_max: 10, ..options(1000) });
    settle().await;
    script.switch.set(Disturbance::Hang);
    let in_the_backend = call(&driver, "a");
    settle().await;
    let waiting: Vec<_> = (0..10).map(|_| call(&driver, "a")).collect();
    settle().await;
    assert_eq!(call(&driver, "a").await.unwrap(), (BUSY, Duration::ZERO));
    script.switch.set(Disturbance::None);
    assert!(in_the_backend.await.unwrap().0.is_ok());
    for answer in waiting {
        assert!(answer.await.unwrap().0.is_ok());
    }
    assert_eq!(script.count(Call::Commit), 2);
}

/// What blocks the thread of the worker's task can't hold up the answers: they come from another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_that_blocks_holds_nobody_up_for_long() {
    let (driver, _script) = start(DriverOptions { deadline: Duration::from_millis(50), ..options(1000) });
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let (entered, running) = tokio::sync::oneshot::channel();
    let (blocked, mut entered) = (Mutex::new(blocked), Some(entered));
    let blocking = tokio::spawn({
        let driver = driver.clone();
        async move {
            let update = driver.update(vec![key("a")], move |_| {
                entered.take().map(|entered| entered.send(()));
                blocked.lock().recv().is_ok()
            });
            update.await
        }
    });
    running.await.unwrap();
    assert_eq!(bump(&driver, "b").await, LATE);
    assert_eq!(blocking.await.unwrap(), Err(Unavailable::Deadline.into()));
    release.send(()).unwrap();
    while bump(&driver, "b").await.is_err() {}
}
