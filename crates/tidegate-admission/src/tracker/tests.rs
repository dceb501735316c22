mod model;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use tidegate_core::tracker::{Cause, Key, Limit, Share, Work};

use super::{Charge, Decision, Size, Tracker};
use crate::{
    metrics::{Metrics, Stage},
    refusal::Dimension,
};

const SIZE: Size = Size { window_ms: 1000, fixed_rows: 2, tracked_max: 8, reserve: 2 };

const UNLEASED: Decision<'static> = Decision::of(Stage::One, Work::Optional);
const LEASED: Decision<'static> = Decision { leased: true, ..UNLEASED };

fn tracker(size: Size) -> Tracker {
    Tracker::new(size, Metrics::default().admitted())
}

const fn charge<Place>(place: Place, limit: Limit) -> Charge<Place> {
    Charge { place, limit, dimension: Dimension::Tenant }
}

const fn wide(key: u64) -> Charge<Key> {
    charge(Key(key), Limit::even(1000, 1000))
}

#[test]
fn a_refusal_charges_nothing() {
    let tracker = tracker(SIZE);
    let (narrow, wide) = (charge(Key(1), Limit::even(1, 1)), charge(Key(2), Limit::even(2, 2)));
    let global = charge(0, Limit::even(2, 2));
    let decide = |keyed: &[Charge<Key>]| {
        let decision = Decision { fixed: &[global], keyed, ..UNLEASED };
        tracker.decide(0, &decision).map_err(|refusal| refusal.cause)
    };
    assert_eq!(decide(&[narrow, wide]), Ok(()));
    for _ in 0..10 {
        assert_eq!(decide(&[narrow, wide]), Err(Cause::Rate), "whichever comes first");
        assert_eq!(decide(&[wide, narrow]), Err(Cause::Rate));
    }
    assert_eq!(decide(&[wide]), Ok(()), "neither the wide key nor the global one paid for the refusals");
    assert_eq!(decide(&[wide]), Err(Cause::Rate));
}

#[test]
fn an_exhausted_tracker_refuses_new_keys_alone_and_adds_no_state() {
    let tracker = tracker(SIZE);
    let decide = |now_ms, key, work| {
        let decision = Decision { keyed: &[wide(key)], work, ..UNLEASED };
        tracker.decide(now_ms, &decision).map_err(|refusal| (refusal.cause, refusal.retry_after_seconds))
    };
    let full = Err((Cause::TrackedKeys, 1));
    for key in 0..6 {
        assert_eq!(decide(0, key, Work::Optional), Ok(()));
    }
    assert_eq!(decide(0, 6, Work::Optional), full, "the last two are the reserve");
    assert_eq!((decide(0, 6, Work::Critical), decide(0, 7, Work::Critical)), (Ok(()), Ok(())));
    assert_eq!(decide(0, 8, Work::Critical), full, "the ceiling is hard");
    assert_eq!(tracker.tracked(0), SIZE.tracked_max);
    let bytes = tracker.bytes();
    for key in 100..1100 {
        assert_eq!(decide(999, key, Work::Critical), full);
    }
    assert_eq!((tracker.tracked(0), tracker.bytes()), (SIZE.tracked_max, bytes));
    assert_eq!(decide(999, 3, Work::Optional), Ok(()), "a key that is there goes on");
    assert_eq!(decide(1000, 100, Work::Optional), Ok(()), "the next window begins empty");
    assert_eq!(tracker.tracked(1000), 1);
}

#[test]
fn leases_outlive_the_window_and_go_when_they_end() {
    let tracker = tracker(SIZE);
    let (global, one) = (charge(0, Limit::even(10, 2)), charge(Key(1), Limit::even(10, 2)));
    let decide = |now_ms| {
        let decision = Decision { fixed: &[global], keyed: &[one], ..LEASED };
        tracker.decide(now_ms, &decision).map_err(|refusal| (refusal.cause, refusal.retry_after_seconds))
    };
    assert_eq!((decide(0), decide(0)), (Ok(()), Ok(())));
    assert_eq!(decide(5000), Err((Cause::Concurrency, 1)));
    assert_eq!((tracker.tracked(5000), tracker.active(0)), (1, 2));
    tracker.release(Work::Optional, &[0], &[Key(1)]);
    assert_eq!(decide(5000), Ok(()));
    tracker.release(Work::Optional, &[0], &[Key(1)]);
    tracker.release(Work::Optional, &[0], &[Key(1)]);
    assert_eq!((tracker.tracked(6000), tracker.active(0)), (0, 0));
}

#[test]
fn optional_work_leaves_a_share_to_critical_work() {
    let tracker = tracker(SIZE);
    let share = Share { all: 3, optional: 2 };
    let global = charge(0, Limit { spent: share, active: share });
    let decide = |work| tracker.decide(0, &Decision { work, fixed: &[global], ..UNLEASED }).is_ok();
    let (optional, critical) = (Work::Optional, Work::Critical);
    assert_eq!(
        [optional, optional, optional, critical, critical].map(decide),
        [true, true, false, true, false]
    );
}

#[test]
fn a_refusal_says_when_to_come_back() {
    let size = Size { window_ms: 10_000, ..SIZE };
    for (now_ms, expected) in [(0, 10), (1, 10), (1000, 9), (8999, 2), (9000, 1), (9999, 1), (10_000, 10)] {
        let tracker = tracker(size);
        let decision = Decision { keyed: &[charge(Key(1), Limit::even(0, 1))], ..UNLEASED };
        let refusal = tracker.decide(now_ms, &decision).expect_err("nothing is allowed");
        assert_eq!(refusal.retry_after_seconds, expected, "{now_ms}");
    }
}

/// 1500 at once, from several threads, over shared and private keys: five of the narrowest budget, exactly.
#[test]
fn a_cap_is_one_cap_for_all_threads() {
    let tracker = tracker(Size { tracked_max: 4096, ..SIZE });
    let admitted = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..6_u64 {
            let (tracker, admitted) = (&tracker, &admitted);
            scope.spawn(move || {
                for request in 0..250 {
                    let (shared, private) = (Key(7 << 32), Key((thread * 250 + request) << 32 | 1));
                    let wide = Limit::even(1000, 1000);
                    let mut keyed = [charge(shared, Limit::even(5, 5)), charge(private, wide)];
                    if request % 2 == 0 {
                        keyed.reverse();
                    }
                    let decision = Decision { fixed: &[charge(0, wide)], keyed: &keyed, ..LEASED };
                    admitted.fetch_add(usize::from(tracker.decide(0, &decision).is_ok()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(admitted.into_inner(), 5);
    assert_eq!((tracker.tracked(0), tracker.active(0)), (6, 5), "the refused left nothing behind");
}

#[test]
fn a_million_keys_take_at_most_64_bytes_each() {
    const KEYS: usize = 1_000_000;
    let tracker = tracker(Size { tracked_max: KEYS, reserve: 0, ..SIZE });
    let seed = crate::Seed::from([3; 16]);
    for identity in 0..KEYS {
        let key = seed.key(Dimension::Tenant, None, &identity.to_le_bytes());
        let decision = Decision { keyed: &[charge(key, Limit::even(1, 1))], ..UNLEASED };
        tracker.decide(0, &decision).expect("there is room");
    }
    assert_eq!(tracker.tracked(0), KEYS);
    let each = tracker.bytes() as f64 / KEYS as f64;
    assert!(each <= 64.0, "{each} bytes a key");
}
