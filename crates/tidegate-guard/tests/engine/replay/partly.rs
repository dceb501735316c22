//! Steps that left no record, alone and beside others that did.

use tidegate_protocol::{
    Command,
    request::{SetMode, Window},
    response::Status,
};

use super::{MINUTE_MS, attempt, once, set};
use crate::harness::{Bench, allowed, digest, forged, get, increment, usage};

#[tokio::test]
async fn what_changes_nothing_records_nothing() {
    let bench = Bench::new();
    bench.command(once()).await;
    bench.command(set("k", "v")).await;
    bench.command(Command::set(digest("short"), "v", 1000)).await;
    bench.at(1000);
    let absent_xx = Command::Set {
        key: digest("none"),
        value: "v".into(),
        ttl_ms: Some(1000),
        mode: SetMode::Xx,
        keep_ttl: false,
    };
    let steps = [
        vec![get("k"), Command::ttl(digest("k")), get("none")],
        vec![once().costing(0)],
        vec![attempt().costing(0)],
        vec![once()],
        vec![once().costing(2)],
        vec![attempt().costing(4)],
        vec![Command::claim(digest("k"), "w", MINUTE_MS)],
        vec![absent_xx],
        vec![Command::delete(digest("none"))],
        vec![Command::expire(digest("none"), 1000)],
        vec![Command::refund(forged(1))],
        // Expired, whether it has been swept or not.
        vec![Command::delete(digest("short"))],
        vec![Command::expire(digest("short"), 1000)],
        vec![Command::increment(digest("k"), 1, 1000)],
        vec![once(), get("k"), Command::claim(digest("k"), "w", MINUTE_MS), Command::delete(digest("none"))],
    ];
    let (rows, writes) = (bench.rows().await, bench.writes());
    for step in steps {
        let request = bench.fresh().step(digest("alice"), step.clone());
        let first = bench.respond(request.clone()).await;
        let again = bench.respond(request).await;
        assert_eq!(first, again, "{step:?}");
        assert!(!again.steps[0].replayed, "{step:?}");
        assert_eq!((bench.rows().await, bench.writes()), (rows, writes), "{step:?}");
    }
}

#[tokio::test]
async fn a_step_that_changed_nothing_may_succeed_later_under_its_id() {
    let bench = Bench::new();
    bench.command(once()).await;
    let request = bench.fresh().step(digest("alice"), [once()]);
    assert_eq!(bench.statuses(request.clone()).await, [Status::Denied]);
    bench.at(MINUTE_MS);
    assert_eq!(bench.respond(request.clone()).await.steps[0].results, [allowed([usage(1, 1, MINUTE_MS)])]);
    assert!(bench.respond(request).await.steps[0].replayed);
}

#[tokio::test]
async fn a_retry_goes_on_where_the_first_call_ended() {
    let bench = Bench::new();
    let [alice, bob] = ["alice", "bob"].map(digest);
    bench.command(once()).await;
    let request = bench.fresh().step(bob, [increment("a")]).step(alice, [once()]).step(bob, [increment("a")]);
    assert_eq!(bench.statuses(request.clone()).await, [Status::Ok, Status::Denied, Status::Skipped]);
    bench.at(MINUTE_MS);
    let again = bench.respond(request.clone()).await;
    let replayed: Vec<bool> = again.steps.iter().map(|step| step.replayed).collect();
    assert_eq!(replayed, [true, false, false]);
    let third = bench.respond(request).await;
    assert!(third.steps.iter().all(|step| step.replayed && step.status == Status::Ok));
}

#[tokio::test]
async fn a_step_that_was_executed_is_never_called_skipped() {
    let bench = Bench::new();
    // A look leaves no record: the retry looks anew, and finds the window spent by somebody else.
    let request =
        bench.fresh().step(digest("alice"), [once().costing(0)]).step(digest("alice"), [increment("a")]);
    let first = bench.respond(request.clone()).await;
    bench.command(once()).await;
    let look_at_one = Command::hit([Window::fixed(digest("once"), 1, MINUTE_MS)]).costing(0);
    assert!(!bench.command(look_at_one).await.is_denial(), "a look of cost 0 fits a full window");
    bench.command(Command::hit([Window::fixed(digest("once"), 9, MINUTE_MS)])).await;
    let again = bench.respond(request).await;
    assert_eq!(again.steps[0].status, Status::Denied);
    assert!(again.steps[1].replayed);
    assert_eq!(again.steps[1].results, first.steps[1].results);
    assert_eq!(bench.counter("a").await, Some(1));
}
