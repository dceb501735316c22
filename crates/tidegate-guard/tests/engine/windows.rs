//! `win.hit`: results in every field, one window and several.

use tidegate_protocol::{Command, request::Window};

use crate::harness::{ABSENT, Bench, WRITTEN, allowed, check, denied, digest, get, usage, value};

const MINUTE_MS: u64 = 60_000;

fn sliding(limit: u64) -> Window {
    Window::sliding(digest("k"), limit, MINUTE_MS)
}

fn fixed(limit: u64) -> Window {
    Window::fixed(digest("k"), limit, MINUTE_MS)
}

fn bucket(limit: u64) -> Window {
    Window::bucket(digest("k"), limit, MINUTE_MS)
}

fn hit(window: Window, cost: u64) -> Command {
    Command::hit([window]).costing(cost)
}

#[tokio::test]
async fn a_fixed_window_ends_at_the_edge() {
    check(&[
        (0, hit(fixed(2), 1), allowed([usage(2, 1, 60_000)])),
        (10_000, hit(fixed(2), 1), allowed([usage(2, 2, 50_000)])),
        (10_000, hit(fixed(2), 1), denied(50_000, [usage(2, 2, 50_000)])),
        (59_999, hit(fixed(2), 1), denied(1, [usage(2, 2, 1)])),
        (60_000, hit(fixed(2), 2), allowed([usage(2, 2, 60_000)])),
        (180_500, hit(fixed(2), 1), allowed([usage(2, 1, 59_500)])),
    ])
    .await;
}

#[tokio::test]
async fn a_sliding_window_fades_by_the_share_that_is_covered() {
    check(&[
        (0, hit(sliding(6), 6), allowed([usage(6, 6, 60_000)])),
        // floor(6 * left / 60 000) + 1 <= 6 once less than all of it is covered: 1 ms into the next bucket.
        (0, hit(sliding(6), 1), denied(60_001, [usage(6, 6, 60_000)])),
        (60_000, hit(sliding(6), 1), denied(1, [usage(6, 6, 60_000)])),
        (60_001, hit(sliding(6), 1), allowed([usage(6, 6, 59_999)])),
        (60_001, hit(sliding(6), 1), denied(10_000, [usage(6, 6, 59_999)])),
        (70_000, hit(sliding(6), 1), denied(1, [usage(6, 6, 50_000)])),
        (70_001, hit(sliding(6), 1), allowed([usage(6, 6, 49_999)])),
        // The bucket before the previous one no longer counts.
        (120_000, hit(sliding(6), 0), allowed([usage(6, 2, 60_000)])),
        (150_000, hit(sliding(6), 0), allowed([usage(6, 1, 30_000)])),
        (180_000, hit(sliding(6), 0), allowed([usage(6, 0, 60_000)])),
    ])
    .await;
}

#[tokio::test]
async fn a_token_bucket_refills_one_by_one() {
    check(&[
        (0, hit(bucket(6), 5), allowed([usage(6, 5, 50_000)])),
        (0, hit(bucket(6), 2), denied(10_000, [usage(6, 5, 50_000)])),
        (9_999, hit(bucket(6), 2), denied(1, [usage(6, 5, 40_001)])),
        (10_000, hit(bucket(6), 2), allowed([usage(6, 6, 60_000)])),
        (69_999, hit(bucket(6), 0), allowed([usage(6, 1, 1)])),
        (70_000, hit(bucket(6), 0), allowed([usage(6, 0, 0)])),
        (70_000, hit(bucket(6), 6), allowed([usage(6, 6, 60_000)])),
    ])
    .await;
}

#[tokio::test]
async fn a_limit_of_zero_admits_nothing_and_promises_nothing() {
    for window in [sliding, fixed, bucket] {
        let bench = Bench::new();
        let used = if window(0).algorithm == bucket(0).algorithm { 0 } else { 60_000 };
        for cost in [1, 1, 0, 7] {
            let expected = denied(None, [usage(0, 0, used)]);
            assert_eq!(bench.command(hit(window(0), cost)).await, expected, "cost {cost}");
        }
        assert_eq!(bench.rows().await, 0, "refusing costs no row");
    }
}

#[tokio::test]
async fn more_than_the_limit_never_fits_and_takes_nothing() {
    for window in [sliding, fixed, bucket] {
        let bench = Bench::new();
        let idle_ms = if window(0).algorithm == bucket(0).algorithm { 0 } else { 60_000 };
        assert_eq!(bench.command(hit(window(10), 11)).await, denied(None, [usage(10, 0, idle_ms)]));
        assert_eq!(bench.command(hit(window(10), 10)).await, allowed([usage(10, 10, 60_000)]));
    }
    check(&[
        (0, hit(fixed(10), 8), allowed([usage(10, 8, 60_000)])),
        (0, hit(fixed(10), 5), denied(60_000, [usage(10, 8, 60_000)])),
        (0, hit(fixed(10), 1), allowed([usage(10, 9, 60_000)])),
        (0, hit(fixed(10), 1), allowed([usage(10, 10, 60_000)])),
        (0, hit(fixed(10), 1), denied(60_000, [usage(10, 10, 60_000)])),
    ])
    .await;
}

#[tokio::test]
async fn a_look_charges_nothing() {
    for window in [sliding, fixed, bucket] {
        let bench = Bench::new();
        bench.command(hit(window(2), 1)).await;
        let before = bench.command(hit(window(2), 0)).await;
        let writes = bench.writes();
        assert_eq!(bench.command(hit(window(2), 0)).await, before);
        assert_eq!(bench.writes(), writes);
    }
}

#[tokio::test]
async fn refusals_cost_nothing_so_a_fast_client_gets_its_share() {
    let bench = Bench::new();
    let mut admitted = [0; 3];
    for call in 0..450 {
        bench.at(call * 400);
        if bench.command(hit(fixed(10), 1)).await.is_denial() {
            continue;
        }
        admitted[usize::try_from(call / 150).expect("three minutes")] += 1;
    }
    assert_eq!(admitted, [10, 10, 10]);
}

#[tokio::test]
async fn another_limit_counts_against_the_same_row() {
    let bench = Bench::new();
    let mut admitted = Vec::new();
    for (limit, calls) in [(10, 20), (20, 15), (5, 3)] {
        let mut count = 0;
        for _ in 0..calls {
            count += u32::from(!bench.command(hit(fixed(limit), 1)).await.is_denial());
        }
        admitted.push(count);
    }
    assert_eq!(admitted, [10, 10, 0]);
    assert_eq!(bench.command(hit(fixed(5), 0)).await, denied(60_000, [usage(5, 20, 60_000)]));
}

#[tokio::test]
async fn all_windows_or_none() {
    for client_first in [true, false] {
        let bench = Bench::new();
        let windows = |client: &str| {
            let mut windows =
                [Window::fixed(digest(client), 1, MINUTE_MS), Window::sliding(digest("all"), 10, MINUTE_MS)];
            if !client_first {
                windows.reverse();
            }
            Command::hit(windows)
        };
        for call in 0..20 {
            assert_eq!(bench.command(windows("a")).await.is_denial(), call > 0, "call {call}");
        }
        let all = hit(Window::sliding(digest("all"), 10, MINUTE_MS), 0);
        assert_eq!(bench.command(all.clone()).await, allowed([usage(10, 1, 60_000)]));
        for client in ["b", "c", "d", "e", "f", "g", "h", "i", "j"] {
            assert!(!bench.command(windows(client)).await.is_denial(), "{client}");
        }
        assert_eq!(bench.command(all).await, allowed([usage(10, 10, 60_000)]));
    }
}

#[tokio::test]
async fn the_longest_wait_of_the_refusing_windows() {
    let windows = || {
        [
            Window::fixed(digest("hour"), 2, 3_600_000),
            Window::fixed(digest("day"), 3, 86_400_000),
            Window::bucket(digest("idle"), 100, MINUTE_MS),
        ]
    };
    let (hour, day, idle) = (
        |used, reset_ms| usage(2, used, reset_ms),
        |used, reset_ms| usage(3, used, reset_ms),
        |used, reset_ms| usage(100, used, reset_ms),
    );
    check(&[
        (
            0,
            Command::hit(windows()).costing(2),
            allowed([hour(2, 3_600_000), day(2, 86_400_000), idle(2, 1200)]),
        ),
        (
            0,
            Command::hit(windows()),
            denied(3_600_000, [hour(2, 3_600_000), day(2, 86_400_000), idle(2, 1200)]),
        ),
        (3_600_000, Command::hit(windows()), allowed([hour(1, 3_600_000), day(3, 82_800_000), idle(1, 600)])),
        (
            3_600_000,
            Command::hit(windows()),
            denied(82_800_000, [hour(1, 3_600_000), day(3, 82_800_000), idle(1, 600)]),
        ),
        (
            7_200_000,
            Command::hit(windows()),
            denied(79_200_000, [hour(0, 3_600_000), day(3, 79_200_000), idle(0, 0)]),
        ),
        (
            7_200_000,
            Command::hit(windows()).costing(3),
            denied(None, [hour(0, 3_600_000), day(3, 79_200_000), idle(0, 0)]),
        ),
        (
            86_400_000,
            Command::hit(windows()),
            allowed([hour(1, 3_600_000), day(1, 86_400_000), idle(1, 600)]),
        ),
    ])
    .await;
}

#[tokio::test]
async fn around_an_edge_a_fixed_window_passes_twice_its_limit_and_a_sliding_one_does_not() {
    for (window, second_burst) in [(fixed(10), 10), (sliding(10), 1)] {
        let bench = Bench::new();
        let mut admitted = Vec::new();
        for at_ms in [59_900, 60_100] {
            bench.at(at_ms);
            let mut count = 0;
            for _ in 0..10 {
                count += u32::from(!bench.command(hit(window, 1)).await.is_denial());
            }
            admitted.push(count);
        }
        assert_eq!(admitted, [10, second_burst]);
    }
}

#[tokio::test]
async fn another_algorithm_or_period_under_one_key_is_another_count() {
    let bench = Bench::new();
    let windows = [
        sliding(1),
        fixed(1),
        bucket(1),
        Window::fixed(digest("k"), 1, 30_000),
        Window::sliding(digest("k"), 1, 30_000),
        Window::bucket(digest("k"), 1, 30_000),
        Window::fixed(digest("other"), 1, MINUTE_MS),
    ];
    for window in windows {
        assert!(!bench.command(hit(window, 1)).await.is_denial(), "{window:?}");
    }
    for window in windows {
        assert!(bench.command(hit(window, 1)).await.is_denial(), "{window:?}");
        assert!(!bench.command_in("bob", hit(window, 1)).await.is_denial(), "{window:?}");
    }
}

#[tokio::test]
async fn rows_of_other_kinds_under_one_key_are_other_rows() {
    let budget = tidegate_protocol::request::Budget::new(digest("k"), 1, MINUTE_MS);
    let all: [(&str, Command); 5] = [
        ("sliding", hit(sliding(1), 1)),
        ("fixed", hit(fixed(1), 1)),
        ("bucket", hit(bucket(1), 1)),
        ("budget", Command::reserve([budget])),
        ("record", Command::claim(digest("k"), "v", MINUTE_MS)),
    ];
    let bench = Bench::new();
    assert_eq!(bench.command(get("k")).await, ABSENT);
    for (what, command) in &all {
        let result = bench.command(command.clone()).await;
        assert!(!result.is_denial() && (*what != "record" || result == WRITTEN), "{what}");
    }
    bench.command(Command::delete(digest("k"))).await;
    for (what, command) in &all[..4] {
        assert!(
            bench.command(command.clone()).await.is_denial(),
            "{what}: deleting the record left it alone"
        );
    }
    bench.command(all[4].1.clone()).await;
    assert_eq!(bench.command(get("k")).await, value("v", MINUTE_MS));
}
