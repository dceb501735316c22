//! Properties, each against a plain reckoning that shares no code with the windows.

use super::*;

/// Small enough to try every instant of two periods.
fn small_rules() -> impl Strategy<Value = Vec<Rule>> {
    let one = (any_algorithm(), 0..8_u64, 1..40_u64);
    prop::collection::vec(
        one.prop_map(|(algorithm, limit, period_ms)| rule(algorithm, limit, period_ms)),
        1..4,
    )
}

/// Calls: how much later than the one before, and at which cost.
fn calls() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0..25_u64, 0..4_u64), 0..20)
}

/// Plays `calls` from `start_ms`; gives the meter and the last instant.
fn play(rules: &[Rule], calls: &[(u64, u64)], start_ms: u64) -> (Meter, u64) {
    let mut meter = Meter::new(rules);
    let mut now_ms = start_ms;
    for (later_ms, cost) in calls {
        now_ms += later_ms;
        meter.hit(*cost, now_ms);
    }
    (meter, now_ms)
}

/// Whether `retry_after_ms` is the first wait after which the call is allowed: every shorter one is tried.
fn is_first_opening(meter: &Meter, cost: u64, now_ms: u64, retry_after_ms: Option<u64>) -> bool {
    let horizon_ms = 2 * meter.rows.iter().map(|(rule, _)| rule.period_ms).max().unwrap_or(0) + 1;
    let first = (0..=horizon_ms).find(|wait_ms| meter.ask(cost, now_ms + wait_ms).allowed);
    first == retry_after_ms
}

proptest! {
    #[test]
    fn the_wait_is_exact(
        rules in small_rules(), calls in calls(), start_ms in 0..200_u64, cost in 0..9_u64, limits in prop::collection::vec(0..8_u64, 3),
    ) {
        let (mut meter, now_ms) = play(&rules, &calls, start_ms);
        prop_assert!(is_first_opening(&meter, cost, now_ms, meter.ask(cost, now_ms).retry_after_ms));
        // Under other limits than the rows were charged under, and on a clock that has stepped back.
        for ((rule, _), limit) in meter.rows.iter_mut().zip(limits) {
            rule.limit = limit;
        }
        for now_ms in [now_ms, now_ms.saturating_sub(15)] {
            let retry_after_ms = meter.ask(cost, now_ms).retry_after_ms;
            if now_ms + 15 > start_ms {
                let wait_ms = retry_after_ms.unwrap_or(100);
                let allowed_at = |wait_ms| meter.ask(cost, now_ms + wait_ms).allowed;
                prop_assert_eq!(allowed_at(wait_ms), retry_after_ms.is_some());
                prop_assert!((0..wait_ms).all(|shorter_ms| !allowed_at(shorter_ms)));
            }
        }
    }

    #[test]
    fn the_wait_is_exact_for_large_numbers(
        algorithm in any_algorithm(),
        limit in 1..=crate::INTEGER_MAX,
        period_ms in 1..=LIFE_MS_MAX / 2,
        shares in prop::collection::vec((0..=100_u64, 0..=LIFE_MS_MAX / 4), 1..6),
        start_ms in 0..1_u64 << 43,
    ) {
        let calls: Vec<_> = shares.iter().map(|(share, later_ms)| (*later_ms, limit / 100 * share)).collect();
        let (meter, now_ms) = play(&[rule(algorithm, limit, period_ms)], &calls, start_ms);
        for cost in [1, limit / 3, limit] {
            let wait_ms = meter.ask(cost, now_ms).retry_after_ms.expect("the cost is within the limit");
            prop_assert!(meter.ask(cost, now_ms + wait_ms).allowed);
            prop_assert!(wait_ms == 0 || !meter.ask(cost, now_ms + wait_ms - 1).allowed);
            prop_assert!(wait_ms <= 2 * period_ms);
        }
    }

    #[test]
    fn remaining_is_what_would_be_admitted(rules in small_rules(), calls in calls(), start_ms in 0..200_u64) {
        let (mut meter, now_ms) = play(&rules, &calls, start_ms);
        let usages = meter.ask(0, now_ms).usages;
        let remaining = usages.iter().map(|usage| usage.remaining).min().unwrap_or(0);
        prop_assert_eq!(meter.admitted(20, now_ms), remaining);
    }

    #[test]
    fn a_denial_changes_nothing_and_a_charge_all(rules in small_rules(), calls in calls(), start_ms in 0..200_u64, cost in 1..9_u64) {
        let (mut meter, now_ms) = play(&rules, &calls, start_ms);
        let before = meter.used(now_ms);
        let hit = meter.hit(cost, now_ms);
        let after: Vec<u64> = before.iter().map(|used| if hit.allowed { used + cost } else { *used }).collect();
        prop_assert_eq!(&meter.used(now_ms), &after);
        prop_assert_eq!(hit.usages.iter().map(|usage| usage.used).collect::<Vec<_>>(), after);
    }

    #[test]
    fn buckets_are_counted_as_specified(
        sliding in any::<bool>(), limit in 1..9_u64, period_ms in 1..40_u64, calls in calls(), start_ms in 0..200_u64,
    ) {
        let algorithm = if sliding { Algorithm::Sliding } else { Algorithm::Fixed };
        let mut meter = Meter::new(&[rule(algorithm, limit, period_ms)]);
        let mut granted: Vec<(u64, u64)> = Vec::new();
        let mut now_ms = start_ms;
        for (later_ms, cost) in calls {
            now_ms += later_ms;
            let bucket = now_ms / period_ms;
            let sum = |number: Option<u64>| -> u64 {
                granted.iter().filter(|(at_ms, _)| Some(at_ms / period_ms) == number).map(|(_, cost)| cost).sum()
            };
            let previous = if sliding { sum(bucket.checked_sub(1)) } else { 0 };
            let used = previous * (period_ms - now_ms % period_ms) / period_ms + sum(Some(bucket));
            prop_assert_eq!(meter.used(now_ms), [used]);
            let allowed = used + cost <= limit;
            prop_assert_eq!(meter.hit(cost, now_ms).allowed, allowed);
            if allowed {
                granted.push((now_ms, cost));
            }
        }
    }

    #[test]
    fn a_token_bucket_is_one(limit in 1..9_u64, period_ms in 1..40_u64, calls in calls(), start_ms in 0..200_u64) {
        let mut meter = Meter::new(&[rule(Algorithm::Bucket, limit, period_ms)]);
        // Tokens in parts of 1 / period: a ms refills `limit` of them.
        let (mut tokens, mut now_ms) = (limit * period_ms, start_ms);
        for (later_ms, cost) in calls {
            now_ms += later_ms;
            tokens = (tokens + later_ms * limit).min(limit * period_ms);
            prop_assert_eq!(look(meter.rows[0].0, meter.windows(now_ms)[0].1.as_ref(), now_ms).remaining, tokens / period_ms);
            let allowed = cost * period_ms <= tokens;
            prop_assert_eq!(meter.hit(cost, now_ms).allowed, allowed);
            if allowed {
                tokens -= cost * period_ms;
            }
        }
    }

    #[test]
    fn a_row_ends_when_it_has_nothing_to_tell(rules in small_rules(), calls in calls(), start_ms in 0..200_u64) {
        let (meter, _) = play(&rules, &calls, start_ms);
        for (rule, row) in &meter.rows {
            let Some(Charge { state, expires_at_ms }) = row else { continue };
            prop_assert_eq!(look(*rule, Some(state), *expires_at_ms).used, 0);
        }
    }

    #[test]
    fn no_row_and_no_rule_panic(
        algorithm in any_algorithm(), limit: u64, period_ms: u64, cost: u64, now_ms: u64, numbers: (u64, u64, u64),
    ) {
        let rule = rule(algorithm, limit, period_ms);
        let (first, second, third) = numbers;
        let state = match algorithm {
            Algorithm::Sliding => State::Sliding(sliding::Sliding { bucket: first, previous: second, current: third }),
            Algorithm::Fixed => State::Fixed(fixed::Fixed { bucket: first, count: second }),
            Algorithm::Bucket => {
                let limit = third.clamp(1, crate::INTEGER_MAX);
                State::Bucket(bucket::Arrival { whole_ms: first, part: second % limit, limit })
            }
        };
        let hit = hit(&[(rule, Some(state))], cost, now_ms);
        prop_assert!(hit.retry_after_ms != Some(0) || hit.allowed);
        prop_assert!(look(rule, Some(&state), now_ms).remaining <= limit);
    }
}

/// Charges one window after the other, as a limiter of several calls would.
fn hit_in_turn(windows: &[(Rule, Option<State>)], cost: u64, now_ms: u64) -> Vec<Hit> {
    windows.iter().map(|window| hit(&[*window], cost, now_ms)).collect()
}

#[test]
fn the_check_of_all_or_nothing_can_fail() {
    let windows = [(rule(Algorithm::Sliding, 5, 1000), None), (rule(Algorithm::Sliding, 2, 1000), None)];
    let in_turn = hit_in_turn(&windows, 3, 0);
    assert!(in_turn.iter().any(|hit| hit.charged.is_some()) && !in_turn.iter().all(|hit| hit.allowed));
    let at_once = hit(&windows, 3, 0);
    assert!(at_once.charged.is_none() && !at_once.allowed);
}

/// The checks above can fail: answers that are nearly right are told from right ones.
#[test]
fn the_check_of_waits_can_fail() {
    for algorithm in [Algorithm::Sliding, Algorithm::Fixed, Algorithm::Bucket] {
        let (meter, now_ms) = play(&[rule(algorithm, 3, 30)], &[(5, 3)], 100);
        let exact = meter.ask(1, now_ms).retry_after_ms.expect("waiting helps");
        assert!(is_first_opening(&meter, 1, now_ms, Some(exact)));
        let reset_ms = meter.ask(1, now_ms).usages[0].reset_ms;
        for wrong in [Some(exact - 1), Some(exact + 1), Some(0), None, Some(reset_ms)] {
            let same = wrong == Some(exact); // A fixed window does open at its reset.
            assert_eq!(is_first_opening(&meter, 1, now_ms, wrong), same, "{algorithm:?} {wrong:?}");
        }
    }
}
