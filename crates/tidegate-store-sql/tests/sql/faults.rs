//! Callers that count while something happens to the database.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tidegate_store::{Backend, Driver};
use tokio::time::Instant;

use crate::harness::{bump, counter, key};

const CALLERS: usize = 32;
/// For a machine with other things to do.
const SLACK: Duration = Duration::from_secs(1);
/// What a store may take to serve again.
const RECOVERY: Duration = Duration::from_secs(5);

/// What a caller has seen.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    counted: u64,
    unanswered: u64,
    longest: Duration,
}

/// Counts over both instances before, during and after `fault`. Every call is answered within its deadline, every
/// increment that was answered is there and none twice, and both instances serve again soon after.
pub(crate) async fn survives<B: Backend>(
    instances: [Driver<B>; 2],
    deadline: Duration,
    fault: impl AsyncFnOnce(),
) {
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| tokio::spawn(count(instances[caller % 2].clone(), caller, Arc::clone(&stop))))
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    fault().await;
    let ended = Instant::now();
    for instance in &instances {
        while let Err(error) = bump(instance, key(1000)).await {
            assert!(ended.elapsed() < RECOVERY, "it still says: {error}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    println!("served again after {:?}", ended.elapsed());
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.store(true, Ordering::Relaxed);
    let mut all = Seen::default();
    let mut of_keys = [Seen::default(); KEYS];
    for (caller, task) in (0..).zip(callers) {
        let seen = tokio::time::timeout(deadline + SLACK, task).await;
        let seen = seen.expect("no caller hangs").expect("no caller panics");
        for tally in [&mut all, &mut of_keys[caller % KEYS]] {
            tally.counted += seen.counted;
            tally.unanswered += seen.unanswered;
            tally.longest = tally.longest.max(seen.longest);
        }
    }
    println!("{all:?}");
    assert!(all.longest < deadline + SLACK, "a call took {:?}", all.longest);
    for (number, seen) in (0..).zip(of_keys) {
        let there = counter(&instances[0], key(number)).await;
        let right = seen.counted..=seen.counted + seen.unanswered;
        assert!(right.contains(&there), "counter {number} is {there}, not in {right:?}");
    }
    assert!(all.counted > CALLERS as u64, "nothing was counted");
}

async fn count<B: Backend>(store: Driver<B>, caller: usize, stop: Arc<AtomicBool>) -> Seen {
    let mut seen = Seen::default();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        match bump(&store, key((caller % KEYS) as u64)).await {
            Ok(_) => seen.counted += 1,
            Err(_) => {
                seen.unanswered += 1;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        seen.longest = seen.longest.max(began.elapsed());
    }
    seen
}

/// So few that both instances count the same ones.
const KEYS: usize = 5;
