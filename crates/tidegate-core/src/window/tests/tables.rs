//! Cases by hand, most of them from the field.

use super::{Algorithm::*, *};

/// A cost at an instant, and whether it is allowed or how long it must wait.
type Call = (u64, u64, Answer);

#[derive(Debug, PartialEq)]
enum Answer {
    Allowed { used: u64, remaining: u64, reset_ms: u64 },
    Wait(u64),
    Never,
}

fn allowed(used: u64, remaining: u64, reset_ms: u64) -> Answer {
    Answer::Allowed { used, remaining, reset_ms }
}

fn check(what: &str, rule: Rule, calls: &[Call]) {
    let mut meter = Meter::new(&[rule]);
    for (place, (now_ms, cost, expected)) in calls.iter().enumerate() {
        let hit = meter.hit(*cost, *now_ms);
        let usage = hit.usages[0];
        let answer = match hit.retry_after_ms {
            Some(0) => allowed(usage.used, usage.remaining, usage.reset_ms),
            Some(wait_ms) => Answer::Wait(wait_ms),
            None => Answer::Never,
        };
        assert_eq!(answer, *expected, "{what}, call {place} at {now_ms}");
        assert_eq!(hit.allowed, hit.retry_after_ms == Some(0));
        assert_eq!(usage.limit, rule.limit);
    }
}

#[test]
fn sliding_counts_the_share_of_the_previous_bucket() {
    check(
        "10 per 10 s, all at 9.0 s",
        rule(Sliding, 10, 10_000),
        &[
            (9000, 10, allowed(10, 0, 1000)),
            (9000, 1, Answer::Wait(1001)),
            (10_000, 1, Answer::Wait(1)),
            (10_001, 0, allowed(9, 1, 9999)),
            (10_500, 1, allowed(10, 0, 9500)),
            (10_500, 1, Answer::Wait(501)),
            (19_000, 1, allowed(3, 7, 1000)),
            (30_000, 0, allowed(0, 10, 10_000)),
        ],
    );
    check(
        "1 per 10 s: the estimate is floored",
        rule(Sliding, 1, 10_000),
        &[
            (0, 1, allowed(1, 0, 10_000)),
            (5000, 1, Answer::Wait(5001)),
            (10_000, 1, Answer::Wait(1)),
            (10_001, 1, allowed(1, 0, 9999)),
        ],
    );
}

#[test]
fn fixed_counts_in_buckets() {
    check(
        "1 per second, at the instants of expiry",
        rule(Fixed, 1, 1000),
        &[
            (0, 1, allowed(1, 0, 1000)),
            (999, 1, Answer::Wait(1)),
            (1000, 1, allowed(1, 0, 1000)),
            (2000, 1, allowed(1, 0, 1000)),
            (3000, 1, allowed(1, 0, 1000)),
        ],
    );
    let edge = |algorithm| {
        let mut meter = Meter::new(&[rule(algorithm, 10, 60_000)]);
        [meter.admitted(10, 59_900), meter.admitted(10, 60_100), meter.admitted(1, 61_000)]
    };
    assert_eq!(edge(Fixed), [10, 10, 0], "twice the limit around an edge, as documented");
    assert_eq!(edge(Sliding), [10, 1, 0], "one more by the floor, as specified");
    assert_eq!(edge(Bucket), [10, 0, 0]);
}

#[test]
fn bucket_refills_steadily() {
    check(
        "5, one a second",
        rule(Bucket, 5, 5000),
        &[
            (1000, 5, allowed(5, 0, 5000)),
            (1000, 1, Answer::Wait(1000)),
            (1999, 1, Answer::Wait(1)),
            (2000, 1, allowed(5, 0, 5000)),
            (4500, 0, allowed(3, 2, 2500)),
            (4500, 3, Answer::Wait(500)),
            (7000, 0, allowed(0, 5, 0)),
            (7000, 5, allowed(5, 0, 5000)),
        ],
    );
    check(
        "3 in 1000 ms: a third of a ms is not lost",
        rule(Bucket, 3, 1000),
        &[
            (0, 3, allowed(3, 0, 1000)),
            (333, 1, Answer::Wait(1)),
            (334, 1, allowed(3, 0, 1000)),
            (666, 1, Answer::Wait(1)),
            (667, 1, allowed(3, 0, 1000)),
            (1000, 1, allowed(3, 0, 1000)),
            (1000, 1, Answer::Wait(334)),
        ],
    );
}

#[test]
fn a_rate_beyond_one_a_millisecond_is_kept() {
    for rate in [999, 1000, 1001, 1500, 8000] {
        let burst = 100;
        // A bucket of 100 that refills at `rate` a second: 100 000 / rate ms, as near as whole ms allow.
        let period_ms = burst * 1000 / rate;
        let mut meter = Meter::new(&[rule(Bucket, burst, period_ms)]);
        assert_eq!(meter.admitted(101, 0), burst);
        let exact = burst * 1000 / period_ms;
        let admitted: u64 = (1..=1000).map(|now_ms| meter.admitted(20, now_ms)).sum();
        assert!(admitted.abs_diff(exact) <= 1, "{rate} a second: {admitted}, not {exact}");
    }
    let mut meter = Meter::new(&[rule(Bucket, 8000, 1000)]);
    assert_eq!(meter.admitted(8001, 0), 8000);
    assert_eq!((1..=1000).map(|now_ms| meter.admitted(20, now_ms)).sum::<u64>(), 8000);
}

#[test]
fn refusals_cost_nothing() {
    for (algorithm, expected) in [(Fixed, 30), (Sliding, 30), (Bucket, 39)] {
        let mut meter = Meter::new(&[rule(algorithm, 10, 60_000)]);
        let admitted: u64 = (0..450).map(|call| meter.admitted(1, call * 400)).sum();
        assert_eq!(admitted, expected, "{algorithm:?}");
    }
}

#[test]
fn another_limit_is_compared_with_what_was_granted() {
    for algorithm in [Sliding, Fixed, Bucket] {
        let mut meter = Meter::new(&[rule(algorithm, 10, 60_000)]);
        assert_eq!(meter.admitted(20, 7), 10, "{algorithm:?}");
        meter.set_limit(20);
        assert_eq!(meter.admitted(15, 7), 10, "{algorithm:?}: raised, there is room at once");
        meter.set_limit(5);
        let hit = meter.ask(1, 7);
        assert_eq!((hit.allowed, hit.usages[0].used, hit.usages[0].remaining), (false, 20, 0));
        assert!(!meter.ask(0, 7).allowed, "{algorithm:?}: a look over the limit is denied too");
        meter.set_limit(20);
        assert_eq!(meter.used(7), [20], "{algorithm:?}: a lowered limit frees nothing");
    }
}

#[test]
fn what_can_never_be_is_told_from_what_can_wait() {
    for algorithm in [Sliding, Fixed, Bucket] {
        check(
            "a cost over the limit",
            rule(algorithm, 10, 60_000),
            &[
                (0, 11, Answer::Never),
                (0, u64::MAX, Answer::Never),
                (0, 8, allowed(8, 2, if algorithm == Bucket { 48_000 } else { 60_000 })),
                (
                    0,
                    5,
                    Answer::Wait(match algorithm {
                        Sliding => 60_000 + 15_001,
                        Fixed => 60_000,
                        Bucket => 18_000,
                    }),
                ),
                (0, 2, allowed(10, 0, 60_000)),
                (0, 0, allowed(10, 0, 60_000)),
            ],
        );
        check(
            "a limit of 0",
            rule(algorithm, 0, 60_000),
            &[(0, 0, Answer::Never), (0, 1, Answer::Never), (90_000, 1, Answer::Never)],
        );
    }
}

#[test]
fn all_windows_or_none() {
    for algorithm in [Sliding, Fixed, Bucket] {
        let client = rule(algorithm, 1, 60_000);
        let global = rule(algorithm, 10, 60_000);
        for rules in [[client, global], [global, client]] {
            let mut meter = Meter::new(&rules);
            assert_eq!(meter.admitted(20, 5), 1);
            assert_eq!(meter.used(5), [1, 1]);
        }
        let mut meter = Meter::new(&[rule(algorithm, 5, 60_000), rule(algorithm, 2, 60_000)]);
        let hit = meter.hit(3, 0);
        assert_eq!((hit.allowed, hit.retry_after_ms, hit.charged), (false, None, None));
        assert_eq!(meter.used(0), [0, 0]);
    }
}

#[test]
fn a_cost_of_0_writes_nothing() {
    for algorithm in [Sliding, Fixed, Bucket] {
        let mut meter = Meter::new(&[rule(algorithm, 2, 1000)]);
        assert_eq!(meter.hit(0, 5).charged, None, "{algorithm:?}: no row for asking");
        assert_eq!(meter.admitted(2, 5), 2);
        let hit = meter.hit(0, 6);
        assert!(hit.allowed && hit.charged.is_none(), "{algorithm:?}: nor when it is full");
    }
}

#[test]
fn rows_end_with_what_they_tell() {
    let table = [(Sliding, 2000, 120_000), (Fixed, 2000, 60_000), (Bucket, 2000, 2000 + 30_000)];
    for (algorithm, now_ms, expires_at_ms) in table {
        let hit = Meter::new(&[rule(algorithm, 10, 60_000)]).hit(5, now_ms);
        assert_eq!(hit.charged.expect("there is room")[0].expires_at_ms, expires_at_ms, "{algorithm:?}");
    }
    // A clock that was a year ahead leaves rows that no store could keep as long.
    for algorithm in [Sliding, Fixed] {
        let mut meter = Meter::new(&[rule(algorithm, 10, LIFE_MS_MAX / 2)]);
        meter.hit(1, 4 * LIFE_MS_MAX);
        let hit = meter.hit(1, LIFE_MS_MAX);
        assert_eq!(hit.charged.expect("there is room")[0].expires_at_ms, 2 * LIFE_MS_MAX, "{algorithm:?}");
    }
}

#[test]
fn the_wait_is_that_of_the_last_window_to_open() {
    // 2 an hour and 5 a day; both are spent with 2400 s and 36 000 s to go.
    let day = 86_400_000;
    let now_ms = day - 36_000_000 + 1_200_000;
    let mut meter = Meter::new(&[rule(Fixed, 2, 3_600_000), rule(Fixed, 5, day)]);
    for (hits, at_ms) in [(2, 0), (1, 3_600_000), (2, now_ms)] {
        assert_eq!(meter.admitted(hits, at_ms), hits);
    }
    assert_eq!(meter.ask(1, now_ms).retry_after_ms, Some(36_000_000 - 1_200_000));
    assert!(!meter.ask(1, now_ms + 2_400_000).allowed);
}

#[test]
fn a_clock_that_steps_back_frees_nothing() {
    for algorithm in [Sliding, Fixed, Bucket] {
        let rule = rule(algorithm, 5, 5000);
        let mut meter = Meter::new(&[rule]);
        assert_eq!(meter.admitted(6, 100_000), 5, "{algorithm:?}");
        for now_ms in [99_999, 94_000, 40_000, 0] {
            let hit = meter.ask(1, now_ms);
            assert_eq!((hit.allowed, hit.usages[0].used), (false, 5), "{algorithm:?} at {now_ms}");
            let wait_ms = hit.retry_after_ms.expect("waiting helps");
            assert!(meter.ask(1, now_ms + wait_ms).allowed, "{algorithm:?} at {now_ms}");
            assert!(!meter.ask(1, now_ms + wait_ms - 1).allowed, "{algorithm:?} at {now_ms}");
        }
        let admitted: u64 =
            (0..100).map(|step| meter.admitted(9, if step % 2 == 0 { 40_000 } else { 100_000 })).sum();
        assert_eq!(admitted, 0, "{algorithm:?}: nothing to gain by stepping to and fro");
    }
}

#[test]
fn a_row_of_another_algorithm_is_another_windows() {
    let mut meter = Meter::new(&[rule(Fixed, 5, 1000)]);
    meter.admitted(5, 0);
    meter.rows[0].0.algorithm = Sliding;
    assert_eq!(meter.used(0), [0]);
}

#[test]
fn no_windows_deny_nothing() {
    let hit = hit(&[], 1, 0);
    assert!(hit.allowed && hit.usages.is_empty());
}
