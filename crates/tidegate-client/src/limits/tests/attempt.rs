use super::*;

fn limiter(bench: &Bench, source: u64, target: u64) -> AttemptLimiter {
    let budget = |limit| AttemptBudget::new(limit, 15 * MINUTE);
    let limiter = AttemptLimiter::new(&bench.selection(), "login", budget(source), budget(target)).unwrap();
    limiter.with_clock(bench.clock()).with_observer(bench.observer())
}

const SPENT: Outcome = Outcome::Refused(RefusalCode::AttemptsSpent);

#[tokio::test]
async fn a_denial_is_believed_for_a_second() {
    let bench = Bench::new();
    let limiter = limiter(&bench, 100, 1);
    let attempt = limiter.begin(caller(1), "alice").await.into_result().unwrap();
    bench.told();
    for (at_ms, by, wait_ms) in
        [(0, DecidedBy::Store, 900_000), (999, DecidedBy::Memory, 899_001), (1000, DecidedBy::Store, 899_000)]
    {
        bench.at(at_ms);
        let refusal = limiter.begin(caller(1), "alice").await.into_result().unwrap_err();
        assert_eq!((refusal.retry_after_ms, bench.told()), (Some(wait_ms), (SPENT, by, false)), "at {at_ms}");
    }
    // Another source and another target are other pairs.
    assert!(!limiter.begin(caller(2), "alice").await.is_allowed());
    assert_eq!(bench.told(), (SPENT, DecidedBy::Store, false));
    assert!(limiter.begin(caller(1), "bob").await.is_allowed());
    bench.told();

    // The success gives the attempt back, and within a second everybody sees it.
    assert_eq!(attempt.succeeded().await, Ok(true));
    bench.at(1999);
    assert!(!limiter.begin(caller(1), "alice").await.is_allowed());
    assert_eq!(bench.told(), (SPENT, DecidedBy::Memory, false));
    bench.at(2000);
    assert!(limiter.begin(caller(1), "alice").await.is_allowed());
    assert_eq!(bench.told(), (Outcome::Allowed, DecidedBy::Store, false));
}

#[tokio::test]
async fn a_dropped_attempt_stays_charged() {
    let bench = Bench::new();
    let limiter = limiter(&bench, 3, 100);
    for _ in 0..3 {
        drop(limiter.begin(caller(1), "alice").await);
    }
    assert!(!limiter.begin(caller(1), "bob").await.is_allowed(), "the source is spent");
    assert!(limiter.begin(caller(2), "alice").await.is_allowed(), "the target is not");
    bench.at(900_000);
    assert!(limiter.begin(caller(1), "alice").await.is_allowed());
}

#[tokio::test]
async fn a_success_that_can_not_be_told_is_a_success() {
    let bench = Bench::new();
    let limiter = limiter(&bench, 3, 3);
    let attempt = limiter.begin(caller(1), "alice").await.into_result().unwrap();
    bench.stop().await;
    assert_eq!(attempt.succeeded().await.unwrap_err().reason(), Reason::Stopped);
}

/// A target is taken as it is spelled: the application folds it as its login does.
#[tokio::test]
async fn spellings_are_the_applications_to_fold() {
    let bench = Bench::new();
    let limiter = limiter(&bench, 100, 1);
    for (target, allowed) in [("alice", true), ("Alice", true), ("alice ", true), ("alice", false)] {
        assert_eq!(limiter.begin(caller(1), target).await.is_allowed(), allowed, "{target:?}");
    }
}
