use tidegate_store::{Driver, DriverOptions, MemoryBackend, clock::ManualClock};
use tokio::task::JoinSet;

use super::*;

fn counters() -> (Arc<ManualClock>, Counters) {
    let clock = Arc::new(ManualClock::at(1_800_000_000_000));
    let backend = MemoryBackend::new(Arc::clone(&clock) as _);
    (clock, Counters::new(Arc::new(Driver::start(backend, DriverOptions::new("test", 1000)))))
}

#[tokio::test]
async fn a_window_begins_with_its_first_hit_and_nothing_moves_its_end() {
    let (clock, counters) = counters();
    // At second, then: hits, seconds to the end.
    let mut at = 0;
    for (second, hits, left) in [(0, 1, 60), (30, 2, 30), (59, 3, 1), (60, 1, 60), (61, 2, 59)] {
        clock.advance((second - at) * 1000);
        at = second;
        let count = counters.increment("k", Duration::from_secs(60)).await.unwrap();
        assert_eq!(count, Count { hits, resets_in: Duration::from_secs(left) }, "second {second}");
    }
    counters.reset("k").await.unwrap();
    assert_eq!(counters.increment("k", Duration::from_secs(60)).await.unwrap().hits, 1);
}

#[tokio::test]
async fn no_increment_is_lost() {
    let (_clock, counters) = counters();
    let calls: JoinSet<_> = (0..200)
        .map(|_| {
            let counters = counters.clone();
            async move { counters.increment("k", Duration::from_secs(60)).await.unwrap().hits }
        })
        .collect();
    let mut seen = calls.join_all().await;
    seen.sort_unstable();
    assert_eq!(seen, (1..=200).collect::<Vec<u64>>());
}
