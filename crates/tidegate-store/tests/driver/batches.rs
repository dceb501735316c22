//! Many callers, few batches; one caller's trouble is not another's.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tidegate_core::secret::Secret;
use tidegate_store::{DriverOptions, LimitStore, LimitStoreExt, StoreError, Unavailable};
use tokio::task::JoinSet;

use crate::scripted::{Call, Says, bump, key, options, settle, start};

#[tokio::test(start_paused = true)]
async fn callers_at_once_share_a_batch() {
    let (driver, script) = start(options(1000));
    settle().await;
    let mut callers: JoinSet<_> = (0..512)
        .map(|caller| {
            let driver = driver.clone();
            async move { bump(&driver, caller % 10).await }
        })
        .collect();
    while let Some(answer) = callers.join_next().await {
        answer.unwrap().unwrap();
    }
    assert!(script.count(Call::Commit) <= 3, "512 callers took {} batches", script.count(Call::Commit));
    assert_eq!(script.count(Call::Load), script.count(Call::Commit));
    let stats = driver.stats();
    assert_eq!((stats.jobs, stats.busy, stats.deadline), (512, 0, 0));
    assert_eq!(bump(&driver, 3).await, Ok(52));
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_bounded() {
    let (driver, script) = start(DriverOptions { batch_jobs_max: 8, ..options(1000) });
    let calls: JoinSet<_> = (0..64)
        .map(|caller| {
            let driver = driver.clone();
            async move { bump(&driver, caller).await.unwrap() }
        })
        .collect();
    calls.join_all().await;
    assert_eq!(script.count(Call::Commit), 8);
}

#[tokio::test(start_paused = true)]
async fn keys_are_loaded_once_in_ascending_order() {
    let (driver, script) = start(options(1000));
    settle().await;
    let keys = |names: [&str; 3]| names.map(key).to_vec();
    let (left, right) = tokio::join!(
        driver.update(keys(["a", "b", "c"]), |view| view.put(1, b"x".as_slice(), view.now_ms() + 1000)),
        driver.update(keys(["c", "b", "d"]), |view| (view.get(1).cloned(), view.get(0).cloned())),
    );
    left.unwrap();
    let (b, c) = right.unwrap();
    assert_eq!(b.unwrap().value.as_slice(), b"x", "the second sees the first's write at its own place");
    assert_eq!(c, None);
    let mut expected = ["a", "b", "c", "d"].map(key).to_vec();
    expected.sort_unstable();
    assert_eq!(script.loaded(), [expected]);
}

#[tokio::test(start_paused = true)]
async fn updates_run_in_the_order_of_their_callers() {
    let (driver, _script) = start(options(1000));
    let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let calls: Vec<_> = (0..20)
        .map(|caller| {
            let (driver, order) = (driver.clone(), order.clone());
            tokio::spawn(
                async move { driver.update(vec![key("a")], move |_| order.lock().push(caller)).await },
            )
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(*order.lock(), (0..20).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_its_own_callers_trouble() {
    let (driver, _script) = start(options(1000));
    let panics = driver.update(vec![key("a"), key("b")], |view| {
        view.put(0, b"half".as_slice(), view.now_ms() + 1000);
        assert!(view.get(1).is_some(), "this test's update panics");
    });
    let (before, panicked, after) = tokio::join!(bump(&driver, "a"), panics, bump(&driver, "a"));
    assert_eq!((before, after), (Ok(1), Ok(2)), "nothing of the one between shows");
    assert_eq!(panicked, Err(Unavailable::Backend.into()));
    assert_eq!(driver.stats().panics, 1);
    assert_eq!(bump(&driver, "a").await, Ok(3), "the driver lives");
}

struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "this test's update panics when dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_panics_when_dropped_leaves_the_driver_alive() {
    let (driver, script) = start(options(1000));
    script.says(Says { commit_fails: true, ..Says::default() });
    let bomb = PanicsOnDrop;
    let update = driver.update(vec![key("a")], move |_| {
        let _held = &bomb;
    });
    assert_eq!(update.await, Err(Unavailable::Backend.into()));
    script.says(Says::default());
    assert_eq!(bump(&driver, "a").await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn a_failed_commit_answers_all_and_keeps_nothing() {
    let (driver, script) = start(options(1000));
    script.says(Says { commit_fails: true, ..Says::default() });
    let answers = tokio::join!(bump(&driver, "a"), bump(&driver, "a"), driver.read(vec![key("a")]));
    let failed = StoreError::from(Unavailable::Backend);
    assert_eq!(answers, (Err(failed), Err(failed), Err(failed)));
    assert_eq!(driver.stats().backend_failures, 1);
    script.says(Says::default());
    assert_eq!(bump(&driver, "a").await, Ok(1), "what was not committed is not seen");
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_panics_has_failed() {
    let (driver, script) = start(options(1000));
    script.says(Says { load_panics: true, ..Says::default() });
    assert_eq!(bump(&driver, "a").await, Err(Unavailable::Backend.into()));
    script.says(Says::default());
    assert_eq!(bump(&driver, "a").await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn an_update_whose_caller_has_gone_is_not_run() {
    let (driver, script) = start(options(1000));
    script.says(Says { load_takes: std::time::Duration::from_millis(100), ..Says::default() });
    let ran = Arc::new(AtomicUsize::new(0));
    let call = |name: &'static str| {
        let (driver, ran) = (driver.clone(), ran.clone());
        tokio::spawn(async move {
            driver
                .update(vec![key(name)], move |_| {
                    ran.fetch_add(1, Ordering::SeqCst);
                })
                .await
        })
    };
    let (in_the_backend, _) = (call("a"), settle().await);
    let waiting = call("b");
    settle().await;
    in_the_backend.abort();
    waiting.abort();
    settle().await;
    assert_eq!(bump(&driver, "a").await, Ok(1));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(script.loaded(), [[key("a")], [key("a")]], "nor are the rows of one that waits loaded");
}

#[tokio::test(start_paused = true)]
async fn a_secret_names_the_rows() {
    let secret = |text: &str| Some(Secret::new(text.repeat(4)).unwrap());
    let (driver, script) = start(DriverOptions { secret: secret("4f1c0a9be7d3"), ..options(1000) });
    bump(&driver, "a").await.unwrap();
    let seen = script.loaded().concat();
    let under = key("a").under(secret("4f1c0a9be7d3").unwrap().expose().as_bytes());
    assert_eq!(seen, [under]);
    assert_eq!(driver.read(vec![key("a")]).await.unwrap()[0].as_ref().unwrap().value.as_slice(), [1]);
}
