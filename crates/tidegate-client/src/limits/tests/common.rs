//! What every limit does: observe, go the legacy path, say little, and say it once.

use super::*;
use crate::WindowLimit;

/// One of each.
struct Each {
    route: RouteLimiter,
    bulk: BulkReadGuard,
    fence: ReplayFence,
    attempts: AttemptLimiter,
}

impl Each {
    fn over(selection: &Selection, bench: &Bench) -> Self {
        let budget = AttemptBudget::new(0, MINUTE);
        let nothing = vec![WindowLimit::fixed(0, MINUTE)];
        let limits = BulkReadLimits { source: nothing.clone(), ..BulkReadLimits::default() };
        let fence = ReplayFence::new(selection, "refresh").unwrap().with_grace(Duration::ZERO);
        let (route, bulk) =
            (RouteLimiter::new(selection, "api", nothing), BulkReadGuard::new(selection, "export", limits));
        let attempts = AttemptLimiter::new(selection, "login", budget, budget).unwrap();
        Self {
            route: route.unwrap().with_clock(bench.clock()).with_observer(bench.observer()),
            bulk: bulk.unwrap().with_clock(bench.clock()).with_observer(bench.observer()),
            fence: fence.with_clock(bench.clock()).with_observer(bench.observer()),
            attempts: attempts.with_clock(bench.clock()).with_observer(bench.observer()),
        }
    }

    fn observing(self) -> Self {
        Self {
            route: self.route.observing(),
            bulk: self.bulk.observing(),
            fence: self.fence.observing(),
            attempts: self.attempts.observing(),
        }
    }

    /// Asks each; the fence with a token that was used before.
    async fn ask(&self, bench: &Bench) -> Vec<(bool, Row)> {
        let token =
            Token { id: "secret-token-id", ends_at_ms: START_MS + 3_600_000, principal: "secret-owner" };
        let _ = self.fence.claim(token, caller(1)).await;
        bench.told();
        bench.clock.advance(1);
        let mut rows = Vec::new();
        let allowed = self.route.check(caller(1)).await.is_allowed();
        rows.push((allowed, bench.told()));
        let allowed = self.bulk.check(BulkRead::by(caller(1), "secret-actor")).await.is_allowed();
        rows.push((allowed, bench.told()));
        let allowed = self.fence.claim(token, caller(1)).await.is_allowed();
        rows.push((allowed, bench.told()));
        let allowed = self.attempts.begin(caller(1), "secret-target").await.is_allowed();
        rows.push((allowed, bench.told()));
        rows
    }
}

const REFUSALS: [RefusalCode; 4] = [
    RefusalCode::RateLimited,
    RefusalCode::RateLimited,
    RefusalCode::TokenReplayed,
    RefusalCode::AttemptsSpent,
];

#[tokio::test]
async fn observing_decides_the_same_and_refuses_nothing() {
    for is_observing in [false, true] {
        let bench = Bench::new();
        let each = Each::over(&bench.selection(), &bench);
        let each = if is_observing { each.observing() } else { each };
        for by in [DecidedBy::Store, DecidedBy::Memory] {
            let rows = each.ask(&bench).await;
            // The fence knows from the second claim on.
            let expected = REFUSALS.map(|code| (is_observing, (Outcome::Refused(code), by, is_observing)));
            assert_eq!(rows, expected, "observing: {is_observing}");
        }
    }
}

#[tokio::test]
async fn observing_without_a_store_refuses_nothing() {
    let bench = Bench::new();
    let rows = Each::over(&off(), &bench).observing().ask(&bench).await;
    assert!(rows.iter().all(|(allowed, row)| *allowed && row.2), "{rows:?}");
    let rows = Each::over(&off(), &bench).ask(&bench).await;
    assert!(rows.iter().all(|(allowed, row)| !allowed && !row.2 && row.1 == DecidedBy::Instance), "{rows:?}");
}

#[tokio::test]
async fn unassigned_families_go_where_the_application_says() {
    let bench = Bench::new();
    let rows = Each::over(&unassigned(), &bench).ask(&bench).await;
    assert!(rows.iter().all(|(allowed, row)| *allowed && row.1 == DecidedBy::Nobody), "{rows:?}");

    let no = || Refusal::after(RefusalCode::RateLimited, 7);
    let each = Each::over(&unassigned(), &bench);
    let each = Each {
        route: each.route.with_legacy(move |route: LegacyRoute| async move {
            assert_eq!((route.scope.as_str(), route.subject.as_str()), ("api", "source:10.0.0.1/32"));
            Verdict::Refused(no())
        }),
        bulk: each.bulk.with_legacy(move |read: LegacyRead| async move {
            assert_eq!((read.source.as_str(), read.actor.as_deref()), ("10.0.0.1/32", Some("secret-actor")));
            Verdict::Refused(no())
        }),
        fence: each.fence.with_legacy(move |_| async move { Verdict::Refused(no()) }),
        attempts: each.attempts.with_legacy(move |attempt: LegacyAttempt| async move {
            assert_eq!((attempt.source.as_str(), attempt.target.as_str()), ("10.0.0.1/32", "secret-target"));
            Verdict::Refused(no())
        }),
    };
    let rows = each.ask(&bench).await;
    assert!(rows.iter().all(|row| *row == (false, (LIMITED, DecidedBy::Legacy, false))), "{rows:?}");
}

#[tokio::test]
async fn a_legacy_reservation_is_given_back_after_a_success_only() {
    let given_back = Arc::new(AtomicBool::new(false));
    let budget = AttemptBudget::new(1, MINUTE);
    let told = Arc::clone(&given_back);
    let limiter =
        AttemptLimiter::new(&unassigned(), "login", budget, budget).unwrap().with_legacy(move |_| {
            let told = Arc::clone(&told);
            let refund: LegacyRefund = Box::pin(async move { !told.swap(true, Ordering::SeqCst) });
            async move { Verdict::Allowed(Some(refund)) }
        });
    limiter.begin(caller(1), "alice").await.into_result().unwrap().failed();
    assert!(!given_back.load(Ordering::SeqCst));
    assert_eq!(limiter.begin(caller(1), "alice").await.into_result().unwrap().succeeded().await, Ok(true));
    assert!(given_back.load(Ordering::SeqCst));
}

#[tokio::test]
async fn the_log_says_once_that_the_store_went_and_once_that_it_came_and_never_who_asked() {
    let bench = Bench::new();
    let log = crate::log::Log::default();
    let _captured = log.capture();
    let each = Each::over(&bench.selection(), &bench);
    // Somebody else in each round: what is remembered says nothing of the store.
    for user in ["secret-user", "secret-user-2"] {
        bench.stop().await;
        for number in 0..5 {
            let _ = each.route.check(caller(number).principal(user)).await;
            let _ = each.attempts.begin(caller(number), user).await;
        }
        bench.resume().await;
        for number in 10..15 {
            let _ = each.route.check(caller(number).principal(user)).await;
            let _ = each.attempts.begin(caller(number), user).await;
        }
    }
    let text = log.text();
    assert_eq!(text.matches("the guard store is unavailable").count(), 4, "{text}");
    assert_eq!(text.matches("the guard store is back").count(), 4, "{text}");
    assert!(text.contains("decided"), "even the most detailed log");
    let printed = format!("{:?}{:?}{:?}{:?}", each.route, each.bulk, each.fence, each.attempts);
    for hidden in ["secret-", "10.0.0.", "pepper-for-test"] {
        assert!(!text.contains(hidden) && !printed.contains(hidden), "{hidden}: {text}{printed}");
    }
}
