use std::collections::BTreeSet;

use tidegate_store::{Driver, DriverOptions, MemoryBackend, Unavailable, clock::ManualClock};
use tokio::task::JoinSet;

use super::*;
use crate::{Count, Counters};

const MINUTE: Duration = Duration::from_secs(60);
/// Whole minutes, so that fixed windows begin here.
const START_MS: u64 = 1_800_000_000_000;

struct Bench {
    clock: Arc<ManualClock>,
    store: Arc<dyn LimitStore>,
    limits: Limits,
}

fn bench(max_entries: u64) -> Bench {
    let clock = Arc::new(ManualClock::at(START_MS));
    let backend = MemoryBackend::new(Arc::clone(&clock) as _);
    let store: Arc<dyn LimitStore> =
        Arc::new(Driver::start(backend, DriverOptions::new("test", max_entries)));
    Bench { clock, limits: Limits::new(Arc::clone(&store)), store }
}

fn attempts(name: &'static str, limit: u64) -> Attempts {
    Attempts::new(name, limit, MINUTE * 5).unwrap()
}

async fn reserved(limits: &Limits, of: &[Of<Attempts>]) -> Reservation {
    match limits.reserve(of).await.unwrap() {
        Attempt::Reserved(reservation) => reservation,
        Attempt::Refused(decision) => panic!("refused: {decision:?}"),
    }
}

async fn refused(limits: &Limits, of: &[Of<Attempts>]) -> Decision {
    match limits.reserve(of).await.unwrap() {
        Attempt::Refused(decision) => decision,
        Attempt::Reserved(reservation) => panic!("reserved: {reservation:?}"),
    }
}

#[tokio::test]
async fn windows_answer_over_time() {
    let Bench { clock, limits, .. } = bench(1000);
    let window = Window::fixed("codes", 3, MINUTE).unwrap();
    // At, cost, then: allowed, left, the wait in ms.
    let table = [
        (0, 2, true, 1, Some(0)),
        (0, 2, false, 1, Some(60_000)),
        (10_000, 1, true, 0, Some(0)),
        (10_000, 0, true, 0, Some(0)),
        (59_999, 1, false, 0, Some(1)),
        (60_000, 3, true, 0, Some(0)),
        (60_000, 4, false, 0, None),
    ];
    let mut at_ms = 0;
    for (row, (then_ms, cost, allowed, left, wait_ms)) in table.into_iter().enumerate() {
        clock.advance(then_ms - at_ms);
        at_ms = then_ms;
        let decision = limits.hit(&[window.of(&["alice"])], cost).await.unwrap();
        let Standing { remaining, refused, .. } = decision.standings[0];
        assert_eq!(
            (decision.allowed, remaining, decision.retry_after, refused),
            (allowed, left, wait_ms.map(Duration::from_millis), !allowed),
            "row {row}"
        );
    }
}

#[tokio::test]
async fn several_limits_are_charged_all_or_none_in_any_order() {
    for reversed in [false, true] {
        let Bench { limits, .. } = bench(1000);
        let (client, all) =
            (Window::sliding("client", 1, MINUTE).unwrap(), Window::sliding("all", 10, MINUTE * 2).unwrap());
        let call = |who: &'static str| {
            let limits = limits.clone();
            async move {
                let mut of = [client.of(&[who]), all.of(&[])];
                if reversed {
                    of.reverse();
                }
                limits.hit(&of, 1).await.unwrap()
            }
        };
        let mut greedy = Vec::new();
        for _ in 0..20 {
            greedy.push(call("a").await);
        }
        assert_eq!(greedy.iter().filter(|decision| decision.allowed).count(), 1);
        assert_eq!(greedy[19].refused_by().unwrap().name, "client");
        for who in ["b", "c", "d", "e", "f", "g", "h", "i", "j"] {
            assert!(call(who).await.allowed, "{who}, reversed: {reversed}");
        }
        let last = call("k").await;
        assert_eq!((last.allowed, last.refused_by().unwrap().name), (false, "all"));
    }
}

#[tokio::test]
async fn a_success_gives_back_its_own_attempt_and_no_other() {
    let Bench { clock, limits, .. } = bench(1000);
    let by_address = attempts("login-address", 10);
    let alice = [attempts("login", 10).of(&["alice"]), by_address.of(&["192.0.2.7"])];
    let mallory = [attempts("login", 10).of(&["mallory"]), by_address.of(&["192.0.2.7"])];
    let mut guesses = 0;
    for _ in 0..20 {
        for _ in 0..9 {
            guesses += u64::from(matches!(limits.reserve(&alice).await.unwrap(), Attempt::Reserved(_)));
        }
        if let Attempt::Reserved(own) = limits.reserve(&mallory).await.unwrap() {
            assert_eq!(own.refund().await.unwrap(), Refunded::Now);
        }
    }
    assert_eq!(guesses, 10);
    let decision = refused(&limits, &alice).await;
    assert_eq!(decision.retry_after, Some(MINUTE * 5));
    clock.advance(5 * 60_000);
    reserved(&limits, &alice).await;
}

#[tokio::test]
async fn a_reservation_is_given_back_once() {
    let Bench { clock, limits, .. } = bench(1000);
    let of = [attempts("login", 2).of(&["alice"])];
    let first = Arc::new(reserved(&limits, &of).await);
    assert_eq!(first.decision.standings[0].remaining, 1);
    let refunds: JoinSet<_> = (0..50)
        .map(|_| {
            let first = Arc::clone(&first);
            async move { first.refund().await.unwrap() }
        })
        .collect();
    let refunds = refunds.join_all().await;
    assert_eq!(refunds.iter().filter(|refund| **refund == Refunded::Now).count(), 1);
    assert!(refunds.iter().all(|refund| matches!(refund, Refunded::Now | Refunded::Before)));
    assert_eq!(reserved(&limits, &of).await.decision.standings[0].remaining, 1, "no credit from nothing");

    clock.advance(5 * 60_000);
    let next = reserved(&limits, &of).await;
    assert_eq!(first.refund().await.unwrap(), Refunded::Expired);
    assert_eq!(next.decision.standings[0].remaining, 1);
    assert_eq!(next.refund().await.unwrap(), Refunded::Now);
}

#[tokio::test]
async fn fifty_at_once_run_as_many_checks_as_there_may_be_failures() {
    for round in 0..20 {
        let Bench { limits, .. } = bench(1000);
        let of = [attempts("login", 10).of(&["alice", "192.0.2.0/24"])];
        let calls: JoinSet<_> = (0..50)
            .map(|_| {
                let limits = limits.clone();
                async move { limits.reserve(&of).await.unwrap() }
            })
            .collect();
        let answers = calls.join_all().await;
        let running: Vec<_> =
            answers.into_iter().filter(|answer| matches!(answer, Attempt::Reserved(_))).collect();
        assert_eq!(running.len(), 10, "round {round}");
        for attempt in running {
            let Attempt::Reserved(right) = attempt else { continue };
            right.refund().await.unwrap();
        }
        assert_eq!(reserved(&limits, &of).await.decision.standings[0].remaining, 9, "round {round}");
    }
}

/// That the test above could fail: a limiter that looks first and counts afterwards lets more through.
#[tokio::test]
async fn looking_first_and_counting_afterwards_would_let_more_run() {
    let Bench { limits, .. } = bench(1000);
    let of = [Window::fixed("login", 10, MINUTE).unwrap().of(&["alice"])];
    let calls: JoinSet<_> = (0..50)
        .map(|_| {
            let limits = limits.clone();
            async move {
                let looked = limits.hit(&of, 0).await.unwrap();
                tokio::task::yield_now().await;
                limits.hit(&of, 1).await.unwrap();
                looked.standings[0].remaining > 0
            }
        })
        .collect();
    assert!(calls.join_all().await.into_iter().filter(|runs| *runs).count() > 10);
}

#[tokio::test]
async fn a_limit_that_is_raised_goes_on_with_what_was_counted() {
    let Bench { limits, .. } = bench(1000);
    for _ in 0..20 {
        let _ = limits.reserve(&[attempts("login", 10).of(&["alice"])]).await.unwrap();
    }
    let mut more = 0;
    for _ in 0..15 {
        more += usize::from(matches!(
            limits.reserve(&[attempts("login", 20).of(&["alice"])]).await.unwrap(),
            Attempt::Reserved(_)
        ));
    }
    assert_eq!(more, 10);
}

#[tokio::test]
async fn what_is_reset_counts_afresh() {
    let Bench { limits, .. } = bench(1000);
    let of = [attempts("login", 1).of(&["alice"])];
    reserved(&limits, &of).await;
    refused(&limits, &of).await;
    limits.reset(&of).await.unwrap();
    reserved(&limits, &of).await;
}

#[tokio::test]
async fn a_full_store_counts_on_for_those_it_knows_and_answers_nobody_else() {
    // Room for a count and its receipt, and for as many receipts again.
    let Bench { limits, .. } = bench(2);
    let known = [attempts("login", 3).of(&["alice"])];
    reserved(&limits, &known).await;
    let new = limits.reserve(&[attempts("login", 3).of(&["bob"])]).await;
    assert!(matches!(new, Err(LimitError::Store(StoreError::Unavailable(Unavailable::Full)))), "{new:?}");
    let second = reserved(&limits, &known).await;
    assert_eq!(second.refund().await.unwrap(), Refunded::Now);
}

#[tokio::test]
async fn a_damaged_count_is_neither_empty_nor_full() {
    let Bench { limits, store, .. } = bench(1000);
    let of = attempts("login", 3).of(&["alice"]);
    let window = Window::sliding("login", 3, MINUTE).unwrap().of(&["alice"]);
    for key in [of.key, window.key] {
        store.update(vec![key], |view| view.put(0, b"abc".as_slice(), view.now_ms() + 1000)).await.unwrap();
    }
    assert!(matches!(limits.reserve(&[of]).await, Err(LimitError::Damaged(_))));
    assert!(matches!(limits.hit(&[window], 1).await, Err(LimitError::Damaged(_))));
}

#[tokio::test]
async fn the_same_limit_named_twice_is_refused() {
    let Bench { limits, .. } = bench(1000);
    let of = attempts("login", 3).of(&["alice"]);
    assert!(matches!(limits.reserve(&[of, of]).await, Err(LimitError::Store(StoreError::Invalid(_)))));
    assert!(matches!(limits.reserve(&[]).await.unwrap(), Attempt::Reserved(_)));
}

/// A store of the earlier contract that an application might have; it answers every tenth call late.
struct Theirs {
    counters: Counters,
    seen: parking_lot::Mutex<BTreeSet<String>>,
    hangs: bool,
}

impl RateLimitStore for Theirs {
    fn increment<'a>(
        &'a self,
        key: &'a str,
        window: Duration,
    ) -> tidegate_store::BoxFuture<'a, Result<Count, EarlierError>> {
        self.seen.lock().insert(key.to_owned());
        Box::pin(async move {
            if self.hangs {
                std::future::pending::<()>().await;
            }
            self.counters.increment(key, window).await
        })
    }

    fn reset<'a>(&'a self, key: &'a str) -> tidegate_store::BoxFuture<'a, Result<(), EarlierError>> {
        self.counters.reset(key)
    }
}

fn theirs(hangs: bool) -> (Bench, Arc<Theirs>, Limits) {
    let bench = bench(1000);
    let theirs =
        Theirs { counters: Counters::new(Arc::clone(&bench.store)), seen: Default::default(), hangs };
    let theirs = Arc::new(theirs);
    let limits = Limits::in_earlier(Arc::clone(&theirs) as _, Duration::from_secs(2));
    (bench, theirs, limits)
}

#[tokio::test]
async fn a_store_of_the_earlier_contract_keeps_serving() {
    let (Bench { clock, .. }, theirs, limits) = theirs(false);
    let codes = [Window::sliding("codes", 3, MINUTE).unwrap().of(&["alice@example.com"])];
    for (cost, allowed) in [(2, true), (4, false), (1, true), (1, false)] {
        assert_eq!(limits.hit(&codes, cost).await.unwrap().allowed, allowed, "{cost}");
    }
    clock.advance(10_000);
    let decision = limits.hit(&codes, 1).await.unwrap();
    assert_eq!(decision.retry_after, Some(Duration::from_secs(50)));
    clock.advance(50_000);
    assert!(limits.hit(&codes, 1).await.unwrap().allowed);
    limits.reset(&codes).await.unwrap();

    let login = [attempts("login", 1).of(&["alice@example.com"])];
    assert_eq!(reserved(&limits, &login).await.refund().await.unwrap(), Refunded::Kept);
    refused(&limits, &login).await;
    assert!(theirs.seen.lock().iter().all(|key| key.starts_with("tidegate:") && !key.contains("alice")));
}

#[tokio::test(start_paused = true)]
async fn a_store_of_the_earlier_contract_that_hangs_is_left_behind() {
    let (_bench, _theirs, limits) = theirs(true);
    let late = limits.reserve(&[attempts("login", 1).of(&["alice"])]).await;
    assert!(matches!(late, Err(LimitError::Late(_))), "{late:?}");
}
