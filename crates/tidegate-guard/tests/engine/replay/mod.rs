//! Operation records: the same operation again is answered from them and changes nothing.

mod conflicts;
mod json;
mod partly;

use tidegate_guard::Refusal;
use tidegate_protocol::{
    Command, CommandResult, Request, Response,
    name::OperationId,
    request::{Budget, SetMode, Window},
};

use crate::{
    harness::{ABSENT, Bench, WRITTEN, counted, denied, digest, get, increment, op, request, usage, value},
    rig::{Kind, Rig},
};

const MINUTE_MS: u64 = 60_000;
const LIFE_MS: u64 = 180_000;

fn once() -> Command {
    Command::hit([Window::fixed(digest("once"), 1, MINUTE_MS)])
}

fn attempt() -> Command {
    Command::reserve([Budget::new(digest("minute"), 3, MINUTE_MS), Budget::new(digest("hour"), 5, 3_600_000)])
}

fn set(key: &str, text: &str) -> Command {
    Command::set(digest(key), text, MINUTE_MS)
}

/// What `first` answered, as its replay tells it at `now_ms`.
fn replayed(first: &Response, now_ms: u64) -> Response {
    let mut again = Response { now_ms, ..first.clone() };
    again.steps.iter_mut().for_each(|step| step.replayed = true);
    again
}

/// Steps that change something, in every command and every result that there is.
fn changing_steps(
    bench: &Bench,
    receipt: tidegate_protocol::name::ReceiptId,
) -> Vec<(&'static str, Request)> {
    let windows = [
        Window::sliding(digest("s"), 5, MINUTE_MS),
        Window::fixed(digest("f"), 9_007_199_254_740_991, 86_400_000),
        Window::bucket(digest("b"), 7, 10_368_000_000),
        Window::bucket(digest("b2"), 1, 1000),
    ];
    let expire = Command::expire(digest("v"), 5000);
    let keep =
        Command::Set { key: digest("v"), value: "x".into(), ttl_ms: None, mode: SetMode::Xx, keep_ttl: true };
    let steps = vec![
        ("hit", vec![Command::hit(windows)]),
        ("hit, all of a huge limit", vec![Command::hit([windows[1]]).costing(9_007_199_254_740_991)]),
        ("look and count", vec![Command::hit(windows).costing(0), increment("a")]),
        ("denied, but counting", vec![once().costing(2), increment("a"), once().costing(2)]),
        (
            "get and ttl",
            vec![
                increment("a"),
                get("a"),
                get("none"),
                Command::ttl(digest("a")),
                Command::ttl(digest("none")),
            ],
        ),
        (
            "set, expire, delete",
            vec![
                set("v", "é\0"),
                expire,
                keep,
                get("v"),
                Command::delete(digest("v")),
                Command::delete(digest("v")),
            ],
        ),
        (
            "refused sets",
            vec![
                set("v", ""),
                Command::claim(digest("v"), "x", 1000),
                Command::claim(digest("w"), "x", 1000),
            ],
        ),
        ("counter", vec![Command::increment(digest("n"), -9_007_199_254_740_991, MINUTE_MS)]),
        ("reserve", vec![attempt()]),
        (
            "reserve, look, too much",
            vec![attempt(), attempt().costing(0), attempt().costing(3), attempt().costing(9)],
        ),
        (
            "refund",
            vec![
                Command::refund(receipt),
                Command::refund(receipt),
                Command::refund(crate::harness::forged(1)),
            ],
        ),
    ];
    steps.into_iter().map(|(what, step)| (what, bench.fresh().step(digest("alice"), step))).collect()
}

#[tokio::test]
async fn the_same_again_changes_nothing_for_as_long_as_it_is_known() {
    for index in 0.. {
        let bench = Bench::new();
        let CommandResult::Reserved { receipt: Some(receipt), .. } = bench.command(attempt()).await else {
            unreachable!("there is room");
        };
        let Some((what, request)) = changing_steps(&bench, receipt).into_iter().nth(index) else { break };
        let first = bench.respond(request.clone()).await;
        assert!(!first.steps[0].replayed, "{what}");
        let writes = bench.writes();
        for at_ms in [0, 1, MINUTE_MS, 120_000, LIFE_MS - 1] {
            bench.at(at_ms);
            assert_eq!(
                bench.respond(request.clone()).await,
                replayed(&first, bench.now_ms()),
                "{what} at {at_ms}"
            );
            assert_eq!(bench.writes(), writes, "{what} at {at_ms}");
        }
        bench.at(LIFE_MS);
        assert!(!bench.respond(request).await.steps[0].replayed, "{what}: forgotten, so it runs anew");
    }
}

#[tokio::test]
async fn after_its_life_an_operation_executes_anew() {
    let bench = Bench::new();
    let add = Command::increment(digest("a"), 1, 3_600_000);
    let request = bench.fresh().step(digest("alice"), [add]);
    for (at_ms, replayed, sum, left_ms) in [
        (0, false, 1, 3_600_000),
        (LIFE_MS - 1, true, 1, 3_600_000),
        (LIFE_MS, false, 2, 3_420_000),
        (2 * LIFE_MS - 1, true, 2, 3_420_000),
        (2 * LIFE_MS, false, 3, 3_240_000),
    ] {
        bench.at(at_ms);
        let step = bench.respond(request.clone()).await.steps.remove(0);
        assert_eq!((step.replayed, step.results), (replayed, vec![counted(sum, left_ms)]), "at {at_ms}");
    }
}

/// The sum after one increment was sent three times under one operation id.
async fn sum_of_three_deliveries(bench: &Bench) -> i64 {
    let request = bench.fresh().step(digest("alice"), [increment("a")]);
    for _ in 0..3 {
        bench.respond(request.clone()).await;
    }
    bench.counter("a").await.unwrap_or_default()
}

#[tokio::test]
async fn a_replay_rests_on_the_record_that_is_kept() {
    assert_eq!(sum_of_three_deliveries(&Bench::new()).await, 1);
    // A store that lost operation records would be noticed.
    assert_eq!(sum_of_three_deliveries(&Bench::rigged(Rig::ForgetsOperations)).await, 3);
}

/// The answers of twenty deliveries at once, and the sum after them.
async fn twenty_at_once(bench: &Bench) -> (Vec<Response>, Option<i64>) {
    let request = bench
        .fresh()
        .independent()
        .step(digest("alice"), [increment("a"), attempt()])
        .step(digest("bob"), [once(), increment("a"), once()]);
    let answers = bench.all_at_once(vec![request; 20]).await;
    (answers.into_iter().map(|answer| answer.expect("the store is well")).collect(), bench.counter("a").await)
}

#[tokio::test]
async fn twenty_deliveries_at_once_have_one_effect_and_one_result() {
    for batch in [1, 3, 1024] {
        let bench = Bench::with(Rig::Sound, batch);
        let (answers, sum) = twenty_at_once(&bench).await;
        let first: Vec<&Response> = answers.iter().filter(|answer| !answer.steps[0].replayed).collect();
        assert_eq!(first.len(), 1, "batches of {batch}");
        let replay = replayed(first[0], bench.now_ms());
        assert_eq!(answers.iter().filter(|answer| **answer == replay).count(), 19, "batches of {batch}");
        assert_eq!(sum, Some(1));
    }
    let (_, sum) = twenty_at_once(&Bench::with(Rig::ForgetsOperations, 1)).await;
    assert_eq!(sum, Some(20), "a store that lost operation records would be noticed");
}

#[tokio::test]
async fn a_denied_step_that_counted_replays_as_denied_and_halts_the_rest() {
    let bench = Bench::new();
    let request = bench
        .fresh()
        .step(digest("alice"), [increment("a"), once().costing(2)])
        .step(digest("alice"), [increment("a")]);
    let first = bench.respond(request.clone()).await;
    assert!(first.denied);
    assert_eq!(first.steps[0].results[1], denied(None, [usage(1, 0, MINUTE_MS)]));
    bench.advance(1000);
    let again = bench.respond(request).await;
    assert!(again.denied && again.steps[0].replayed);
    assert_eq!(again.steps[0].results, first.steps[0].results);
    assert_eq!(again.steps[1], first.steps[1], "skipped, as before");
    assert_eq!(bench.counter("a").await, Some(1));
}

/// Seven values of 2 KiB, and a counter: more than three rows can hold.
fn large(id: OperationId) -> Request {
    let gets = (0..7).map(|number| get(&format!("v{number}")));
    request(id).step(digest("alice"), gets.chain([increment("a")]))
}

#[tokio::test]
async fn results_larger_than_a_row_replay_exactly() {
    let bench = Bench::new();
    let long = |number: usize| ["é", "x\u{1}"][number % 2].repeat(1024);
    for number in 0..7 {
        bench.command(set(&format!("v{number}"), &long(number))).await;
    }
    let id = op(1 << 40);
    let rows = bench.rows().await;
    let first = bench.respond(large(id)).await;
    assert_eq!(first.steps[0].results[6], value(&long(6), MINUTE_MS));
    assert_eq!(bench.rows().await, rows + 1 + 4, "a counter, and a record in four rows");
    let expected = first.clone();
    for number in 0..7 {
        bench.command(Command::delete(digest(&format!("v{number}")))).await;
    }
    bench.at(LIFE_MS - 1);
    assert_eq!(bench.respond(large(id)).await, replayed(&expected, bench.now_ms()));
    // Where the record's end is lost, there is no answer: never half of one.
    bench.rig(Rig::Cuts(Kind::Operation));
    assert_eq!(bench.run(large(id)).await, Err(Refusal::Unavailable));
    bench.rig(Rig::Sound);
    bench.at(LIFE_MS);
    let anew = bench.respond(large(id)).await;
    assert_eq!(anew.steps[0].results[..7], [ABSENT; 7]);
    assert_eq!(
        bench.respond(large(id)).await,
        replayed(&anew, bench.now_ms()),
        "a shorter record over a longer"
    );
}

#[tokio::test]
async fn a_claim_that_lost_replays_with_the_long_value_it_saw() {
    let bench = Bench::new();
    let long = "y".repeat(2048);
    bench.command(set("k", &long)).await;
    let claims = (0..7).map(|_| Command::claim(digest("k"), "mine", MINUTE_MS));
    let request = bench.fresh().step(digest("alice"), claims.chain([Command::delete(digest("k"))]));
    let first = bench.respond(request.clone()).await;
    assert_eq!(first.steps[0].results[0], crate::harness::refused(Some(&long)));
    assert_eq!(bench.command(Command::claim(digest("k"), "other", MINUTE_MS)).await, WRITTEN);
    assert_eq!(bench.respond(request).await, replayed(&first, bench.now_ms()));
}

#[tokio::test]
async fn commands_and_replays_are_counted() {
    let bench = Bench::new();
    let request =
        bench.fresh().step(digest("alice"), [increment("a"), get("a")]).step(digest("bob"), [get("a")]);
    for _ in 0..3 {
        bench.respond(request.clone()).await;
    }
    assert_eq!((bench.metrics.commands.get(), bench.metrics.steps_replayed.get()), (9, 2));
}
