//! Many at once: every update sees all that was done before it. What is counted here is the outcome of fifty
//! calls of different operations, in batches of one update, of a few and of all of them.

use tidegate_guard::Refusal;
use tidegate_protocol::{
    Command, CommandResult, Request, Response,
    request::{Budget, Window},
    response::Status,
};

use crate::{
    harness::{Bench, digest, get, increment, usage, value},
    rig::Rig,
};

const MINUTE_MS: u64 = 60_000;
const BATCHES: [usize; 3] = [1, 3, 1024];

async fn fifty(bench: &Bench, step: impl Fn() -> Vec<Command>) -> Vec<Response> {
    let requests: Vec<Request> = (0..50).map(|_| bench.fresh().step(digest("alice"), step())).collect();
    let responses: Result<Vec<_>, Refusal> = bench.all_at_once(requests).await.into_iter().collect();
    responses.expect("the store is well")
}

/// How many of fifty first hits on a key are admitted under a limit of five.
async fn admitted_hits(bench: &Bench) -> usize {
    let windows = || [Window::sliding(digest("w"), 5, MINUTE_MS), Window::fixed(digest("x"), 50, MINUTE_MS)];
    let responses = fifty(bench, || vec![Command::hit(windows())]).await;
    responses.iter().filter(|response| !response.denied).count()
}

#[tokio::test]
async fn fifty_first_hits_admit_the_limit() {
    for batch in BATCHES {
        let bench = Bench::with(Rig::Sound, batch);
        assert_eq!(admitted_hits(&bench).await, 5, "batches of {batch}");
        let look = Command::hit([Window::fixed(digest("x"), 50, MINUTE_MS)]).costing(0);
        let CommandResult::Hit { windows, .. } = bench.command(look).await else {
            unreachable!("a hit was asked for");
        };
        assert_eq!(windows, [usage(50, 5, MINUTE_MS)], "a denial charges no window");
    }
    // A store whose updates do not see each other would be noticed.
    assert_eq!(admitted_hits(&Bench::with(Rig::ReadsNothing, 1)).await, 50);
}

#[tokio::test]
async fn fifty_increments_count_fifty() {
    for batch in BATCHES {
        let bench = Bench::with(Rig::Sound, batch);
        let mut sums: Vec<i64> = fifty(&bench, || vec![increment("a")])
            .await
            .iter()
            .map(|response| match response.steps[0].results[0] {
                CommandResult::Increment { value, .. } => value,
                _ => 0,
            })
            .collect();
        sums.sort_unstable();
        assert_eq!(sums, (1..=50).collect::<Vec<i64>>(), "each sees a sum of its own");
        assert_eq!(bench.command(get("a")).await, value("50", MINUTE_MS));
    }
}

#[tokio::test]
async fn fifty_reservations_over_several_budgets() {
    for batch in BATCHES {
        let bench = Bench::with(Rig::Sound, batch);
        let attempt = || {
            Command::reserve([
                Budget::new(digest("minute"), 20, MINUTE_MS),
                Budget::new(digest("hour"), 7, 3_600_000),
                Budget::new(digest("day"), 30, 86_400_000),
            ])
        };
        let responses = fifty(&bench, || vec![attempt()]).await;
        let receipts: Vec<_> = responses
            .iter()
            .filter_map(|response| match &response.steps[0].results[0] {
                CommandResult::Reserved { receipt, .. } => *receipt,
                CommandResult::NotReserved { denied_by, retry_after_ms, budgets } => {
                    assert_eq!((denied_by.as_slice(), *retry_after_ms), ([1].as_slice(), Some(3_600_000)));
                    assert!(budgets.iter().all(|budget| budget.used == 7), "all or none: {budgets:?}");
                    None
                }
                other => unreachable!("a reservation was asked for: {other:?}"),
            })
            .collect();
        assert_eq!(receipts.len(), 7);

        // Each of them refunded seven times at once gives back seven, and not one more.
        let refunds: Vec<Request> = (0..49)
            .map(|number| bench.fresh().step(digest("alice"), [Command::refund(receipts[number % 7])]))
            .collect();
        let refunded = bench.all_at_once(refunds).await.into_iter().filter(|response| {
            let response = response.as_ref().expect("the store is well");
            response.steps[0].results[0] == CommandResult::Refund { refunded: true, reason: None }
        });
        assert_eq!(refunded.count(), 7);
        let CommandResult::Reserved { budgets, .. } = bench.command(attempt().costing(0)).await else {
            unreachable!("all was given back");
        };
        assert!(budgets.iter().all(|budget| budget.used == 0), "{budgets:?}");
    }
}

#[tokio::test]
async fn a_slow_check_is_never_run_more_often_than_its_budget() {
    let bench = Bench::new();
    let budget = || Command::reserve([Budget::new(digest("user"), 10, 300_000)]);
    let wrong = fifty(&bench, || vec![budget()]).await;
    assert_eq!(wrong.iter().filter(|response| !response.denied).count(), 10);

    bench.at(300_000);
    let requests: Vec<Request> = (0..12).map(|_| bench.fresh().step(digest("alice"), [budget()])).collect();
    let right = bench.all_at_once(requests).await;
    let receipts: Vec<_> = right
        .into_iter()
        .filter_map(|response| match response.expect("the store is well").steps[0].results[0] {
            CommandResult::Reserved { receipt, .. } => receipt,
            _ => None,
        })
        .collect();
    assert_eq!(receipts.len(), 10);
    for receipt in receipts {
        bench.command(Command::refund(receipt)).await;
    }
    assert_eq!(
        bench.statuses(bench.fresh().step(digest("alice"), [budget().costing(10)])).await,
        [Status::Ok]
    );
}
