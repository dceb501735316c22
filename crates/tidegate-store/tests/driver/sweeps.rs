//! When the driver sweeps, and that nobody waits for it.

use std::time::Duration;

use tidegate_store::{DriverOptions, LimitStore, LimitStoreExt, testing::Disturbance};
use tokio::time::Instant;

use crate::scripted::{Call, LONG_MS, Says, bump, key, options, settle, start};

const MINUTE: Duration = Duration::from_secs(60);

/// The times of the sweeps so far, in s after `start`.
fn seconds(times: &[Instant], start: Instant) -> Vec<u64> {
    times.iter().map(|at| (*at - start).as_secs()).collect()
}

#[tokio::test(start_paused = true)]
async fn it_sweeps_at_the_start_and_every_five_minutes() {
    let began = Instant::now();
    let (_driver, script) = start(options(1000));
    tokio::time::sleep(11 * MINUTE).await;
    assert_eq!(seconds(&script.times(Call::Sweep), began), [0, 300, 600]);
}

#[tokio::test(start_paused = true)]
async fn the_interval_can_be_shorter_than_a_deadline() {
    let began = Instant::now();
    let (_driver, script) = start(DriverOptions { sweep_interval: Duration::from_secs(1), ..options(1000) });
    tokio::time::sleep(Duration::from_millis(4500)).await;
    assert_eq!(seconds(&script.times(Call::Sweep), began), [0, 1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn failing_sweeps_back_off_and_rest_until_a_write() {
    let began = Instant::now();
    let (driver, script) = start(options(1000));
    script.says(Says { sweep_fails: true, ..Says::default() });
    tokio::time::sleep(100 * MINUTE).await;
    assert_eq!(
        seconds(&script.times(Call::Sweep), began),
        [0, 60, 180, 420, 900],
        "1, 2, 4, 8 minutes, rest"
    );
    driver.read(vec![key("a")]).await.unwrap();
    settle().await;
    assert_eq!(script.count(Call::Sweep), 5, "a read is no write");
    script.says(Says::default());
    bump(&driver, "a").await.unwrap();
    tokio::time::sleep(6 * MINUTE).await;
    assert_eq!(
        seconds(&script.times(Call::Sweep), began)[5..],
        [6000, 6300],
        "a write, and its interval again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_sweep_goes_step_by_step_and_lets_requests_in_between() {
    let (driver, script) = start(options(10_000));
    for chunk in 0..10 {
        let keys = (0..500).map(|row| key(chunk * 500 + row)).collect();
        let update = driver.update(keys, |view| {
            (0..500).for_each(|index| view.put(index, b"x".as_slice(), view.now_ms() + 1000));
        });
        update.await.unwrap();
    }
    settle().await;
    script.clock.advance(1000);
    script.switch.set(Disturbance::Hang);
    let before = script.count(Call::Sweep);
    let sweep = tokio::spawn({
        let driver = driver.clone();
        async move { driver.sweep().await }
    });
    settle().await;
    // These wait for the step that is under way, and for no other.
    let requests = tokio::spawn({
        let driver = driver.clone();
        async move { bump(&driver, "request").await }
    });
    settle().await;
    let loads = script.count(Call::Load);
    script.switch.set(Disturbance::None);
    requests.await.unwrap().unwrap();
    assert_eq!(script.count(Call::Load), loads + 1);
    assert!(script.count(Call::Sweep) <= before + 2, "answered before the sweep went on");
    assert_eq!(sweep.await.unwrap(), Ok(5000));
    assert_eq!(script.count(Call::Sweep), before + 6, "five full steps and an empty one");
    assert_eq!(driver.stats().entries, 1);
}

#[tokio::test(start_paused = true)]
async fn sweeps_asked_for_together_are_one() {
    let (driver, script) = start(options(1000));
    bump(&driver, "a").await.unwrap();
    settle().await;
    let before = script.count(Call::Sweep);
    script.clock.advance(LONG_MS);
    let answers = tokio::join!(driver.sweep(), driver.sweep(), driver.sweep());
    assert_eq!(answers, (Ok(1), Ok(1), Ok(1)));
    assert_eq!(script.count(Call::Sweep), before + 1);
}
