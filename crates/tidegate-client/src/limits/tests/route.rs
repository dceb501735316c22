use super::*;
use crate::{WindowLimit, WindowState};

fn limiter(bench: &Bench, limits: impl IntoIterator<Item = WindowLimit>) -> RouteLimiter {
    let limiter = RouteLimiter::new(&bench.selection(), "api", limits).unwrap();
    limiter.with_clock(bench.clock()).with_observer(bench.observer())
}

#[tokio::test]
async fn a_denial_is_remembered_until_it_ends_and_counts_down() {
    let bench = Bench::new();
    let limiter = limiter(&bench, [WindowLimit::fixed(2, MINUTE), WindowLimit::fixed(100, 60 * MINUTE)]);
    for _ in 0..2 {
        assert!(limiter.check(caller(1)).await.is_allowed());
        assert_eq!(bench.told(), (Outcome::Allowed, DecidedBy::Store, false));
    }
    let window =
        |period_ms, limit, remaining, reset_ms| WindowState { period_ms, limit, remaining, reset_ms };
    let table = [
        (0, DecidedBy::Store, 60_000, 3_600_000),
        (1, DecidedBy::Memory, 59_999, 3_599_999),
        (59_999, DecidedBy::Memory, 1, 3_540_001),
    ];
    for (at_ms, by, wait_ms, hour_ms) in table {
        bench.at(at_ms);
        let refusal = limiter.check(caller(1)).await.into_result().unwrap_err();
        assert_eq!(bench.told(), (LIMITED, by, false), "at {at_ms}");
        assert_eq!(refusal.retry_after_ms, Some(wait_ms), "at {at_ms}");
        assert_eq!(refusal.windows, [window(60_000, 2, 0, wait_ms), window(3_600_000, 100, 98, hour_ms)]);
    }
    assert!(limiter.check(caller(2)).await.is_allowed(), "nobody else is refused");
    bench.told();
    bench.at(60_000);
    assert!(limiter.check(caller(1)).await.is_allowed());
    assert_eq!(bench.told(), (Outcome::Allowed, DecidedBy::Store, false));
}

#[tokio::test]
async fn a_limit_of_nothing_is_remembered_for_its_window() {
    let bench = Bench::new();
    let limiter = limiter(&bench, [WindowLimit::fixed(0, MINUTE)]);
    for (at_ms, by) in [(0, DecidedBy::Store), (59_999, DecidedBy::Memory), (60_000, DecidedBy::Store)] {
        bench.at(at_ms);
        assert!(!limiter.check(caller(1)).await.is_allowed());
        assert_eq!(bench.told(), (LIMITED, by, false), "at {at_ms}");
    }
}

#[tokio::test]
async fn without_the_store_the_same_limits_hold_here_from_zero() {
    let bench = Bench::new();
    let limiter = limiter(&bench, [WindowLimit::sliding(3, MINUTE), WindowLimit::bucket(5, 60 * MINUTE)]);
    assert!(limiter.check(caller(1)).await.is_allowed());
    bench.told();
    bench.stop().await;
    // The healthy call did not count, and nobody is refused for another.
    let in_the_first_minute = [true, true, true, false, false].map(|allowed| (0, 1, allowed));
    // Two more of five in the hour: then that one refuses, and charges nothing of the minute.
    let in_the_second = [true, true, false, false].map(|allowed| (60_000, 1, allowed));
    let of_another = [(60_000, 2, true)];
    for (at_ms, number, allowed) in [&in_the_first_minute[..], &in_the_second, &of_another].concat() {
        bench.at(at_ms);
        assert_eq!(limiter.check(caller(number)).await.is_allowed(), allowed, "{at_ms} {number}");
        let outcome = if allowed { Outcome::Allowed } else { LIMITED };
        assert_eq!(bench.told(), (outcome, DecidedBy::Instance, false));
    }
    assert_eq!(limiter.callers_counted_here(), 2);
    bench.resume().await;
    assert!(limiter.check(caller(1)).await.is_allowed());
    assert_eq!(bench.told(), (Outcome::Allowed, DecidedBy::Store, false));
}

#[tokio::test]
async fn one_subject_however_it_is_written_and_a_principal_before_a_source() {
    let bench = Bench::new();
    let limiter = limiter(&bench, [WindowLimit::fixed(1, MINUTE)]);
    let table = [
        (Caller::at("192.0.2.7"), true),
        (Caller::at("::ffff:192.0.2.7"), false),
        (Caller::at("64:ff9b::c000:207"), false),
        (Caller::at("2001:db8:0:1::9"), true),
        (Caller::at("2001:db8:0:1:ffff::"), false),
        (Caller::at("192.0.2.7").principal("user_42"), true),
        (Caller::at("192.0.2.8").principal("user_42"), false),
        (Caller::at("not an address"), true),
        (Caller::unknown(), false),
        // A name that looks like another's subject is not that subject.
        (Caller::unknown().principal("source:192.0.2.7/32"), true),
    ];
    for (caller, allowed) in table {
        assert_eq!(limiter.check(caller).await.is_allowed(), allowed);
    }
}

#[tokio::test]
async fn a_million_callers_without_the_store_take_the_room_of_ten_thousand() {
    let limiter = RouteLimiter::new(&off(), "api", [WindowLimit::fixed(1, MINUTE)]).unwrap();
    for number in 0..20_000 {
        let _ = limiter.check(caller(number)).await;
    }
    let before = resident_pages();
    for number in 20_000..1_000_000 {
        let _ = limiter.check(caller(number)).await;
    }
    assert_eq!(limiter.callers_counted_here(), crate::ENTRIES_MAX);
    // A million entries would be 100 MiB; other tests of this process allocate too.
    let grown_mib = resident_pages().saturating_sub(before) * 4 / 1024;
    assert!(grown_mib < 40, "{grown_mib} MiB");
}

fn resident_pages() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("this is Linux");
    statm.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn what_can_not_be_a_limit() {
    let fixed = |limit, ms| WindowLimit::fixed(limit, Duration::from_millis(ms));
    let sliding = |limit, ms| WindowLimit::sliding(limit, Duration::from_millis(ms));
    let table = [
        ("api", vec![fixed(1, 1000)], None),
        ("", vec![fixed(1, 1000)], Some(InvalidLimit::Scope)),
        ("a:b", vec![fixed(1, 1000)], Some(InvalidLimit::Scope)),
        ("Api", vec![fixed(1, 1000)], Some(InvalidLimit::Scope)),
        ("api", vec![], Some(InvalidLimit::Windows)),
        ("api", (1..=5).map(|s| fixed(1, s * 1000)).collect(), Some(InvalidLimit::Windows)),
        ("api", vec![fixed(1, 1000), sliding(1, 1000)], Some(InvalidLimit::PeriodTwice)),
        ("api", vec![fixed(1, 999)], Some(InvalidLimit::Period)),
        ("api", vec![sliding(1, 5_184_000_001)], Some(InvalidLimit::Period)),
        ("api", vec![fixed(1, 10_368_000_001)], Some(InvalidLimit::Period)),
        ("api", vec![fixed(INTEGER_MAX + 1, 1000)], Some(InvalidLimit::Number)),
    ];
    for (scope, limits, expected) in table {
        assert_eq!(RouteLimiter::new(&unassigned(), scope, limits.clone()).err(), expected, "{limits:?}");
    }
}
