//! How a driver ends.

use std::{sync::Arc, time::Duration};

use tidegate_store::{LimitStore, LimitStoreExt, Unavailable, testing::Disturbance};
use tokio::time::Instant;

use crate::scripted::{Says, bump, key, options, settle, start};

#[tokio::test(start_paused = true)]
async fn what_was_accepted_is_worked_off() {
    let (driver, script) = start(options(1000));
    script.says(Says { commit_takes: Duration::from_millis(500), ..Says::default() });
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let driver = driver.clone();
            tokio::spawn(async move { bump(&driver, "a").await })
        })
        .collect();
    settle().await;
    let later = driver.clone();
    let later = tokio::spawn(async move { bump(&later, "a").await });
    settle().await;
    driver.shutdown().await;
    for call in calls.into_iter().chain([later]) {
        assert!(call.await.unwrap().is_ok());
    }
    assert_eq!(bump(&driver, "a").await, Err(Unavailable::Busy.into()));
    assert_eq!(driver.sweep().await, Err(Unavailable::Busy.into()));
    driver.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_hangs_is_left_behind() {
    let (driver, script) = start(options(1000));
    settle().await;
    script.switch.set(Disturbance::Hang);
    let call = tokio::spawn({
        let driver = driver.clone();
        async move { bump(&driver, "a").await }
    });
    settle().await;
    let began = Instant::now();
    driver.shutdown().await;
    assert_eq!(began.elapsed(), Duration::from_secs(4));
    assert_eq!(call.await.unwrap(), Err(Unavailable::Deadline.into()));
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_stops_it_and_lets_go_of_the_backend() {
    let (driver, script) = start(options(1000));
    let other = driver.clone();
    bump(&driver, "a").await.unwrap();
    drop(driver);
    settle().await;
    assert_eq!(bump(&other, "a").await, Ok(2), "one handle is left");
    drop(other);
    settle().await;
    assert_eq!(Arc::strong_count(&script), 1, "nothing holds the backend");
}

#[tokio::test(start_paused = true)]
async fn after_a_shutdown_only_the_handles_hold_the_backend() {
    let (driver, script) = start(options(1000));
    driver.update(vec![key("a")], |_| ()).await.unwrap();
    driver.shutdown().await;
    drop(driver);
    assert_eq!(Arc::strong_count(&script), 1);
}
