//! Steps: what runs, what stays, what is skipped.

use tidegate_guard::Refusal;
use tidegate_protocol::{
    Command, CommandResult, Request,
    request::{Budget, Window},
    response::{Status, StepError, StepErrorCode, StepResult},
};

use crate::harness::{
    ABSENT, Bench, WRITTEN, allowed, counted, denied, digest, family, get, increment, op, refused, usage,
    value,
};

const MINUTE_MS: u64 = 60_000;

/// A hit that fits once.
fn once() -> Command {
    Command::hit([Window::fixed(digest("once"), 1, MINUTE_MS)])
}

/// A hit that never fits.
fn never() -> Command {
    Command::hit([Window::fixed(digest("never"), 0, MINUTE_MS)])
}

fn set(key: &str, text: &str) -> Command {
    Command::set(digest(key), text, MINUTE_MS)
}

#[tokio::test]
async fn every_command_of_a_denied_step_runs_and_its_effects_stay() {
    let bench = Bench::new();
    let step = bench.step([increment("a"), never(), set("b", "v"), increment("a")]).await;
    let results =
        vec![counted(1, MINUTE_MS), denied(None, [usage(0, 0, MINUTE_MS)]), WRITTEN, counted(2, MINUTE_MS)];
    assert_eq!(step, StepResult { status: Status::Denied, replayed: false, results, error: None });
    assert_eq!(bench.command(get("a")).await, value("2", MINUTE_MS));
    assert_eq!(bench.command(get("b")).await, value("v", MINUTE_MS));
}

#[tokio::test]
async fn a_step_that_fails_writes_nothing_and_names_the_command() {
    let max = 9_007_199_254_740_991_i64;
    let add = |by| Command::increment(digest("n"), by, MINUTE_MS);
    let (no_integer, overflow) = (StepErrorCode::NotAnInteger, StepErrorCode::Overflow);
    let table = [
        ("word", add(1), no_integer),
        ("", add(1), no_integer),
        ("1.5", add(1), no_integer),
        ("007", add(0), no_integer),
        ("+1", add(1), no_integer),
        (" 1", add(1), no_integer),
        ("9007199254740991", add(1), overflow),
        ("-9007199254740991", add(-1), overflow),
        ("9007199254740992", add(-1), overflow),
        ("9223372036854775808", add(0), overflow),
        ("1", add(max), overflow),
        ("-2", add(-max), overflow),
    ];
    for (stored, add, code) in table {
        let bench = Bench::new();
        bench.command(set("n", stored)).await;
        let writes = bench.writes();
        let step = bench
            .step([set("a", "v"), once(), Command::delete(digest("n")), set("n", stored), add, once()])
            .await;
        let error = step.error.expect("the step failed");
        assert_eq!((step.status, error.code, error.command), (Status::Failed, code, 4), "{stored:?}");
        assert!(!error.message.is_empty() && step.results.is_empty() && !step.replayed, "{stored:?}");
        assert_eq!(bench.writes(), writes, "{stored:?}");
        assert_eq!(bench.command(get("n")).await, value(stored, MINUTE_MS));
        assert_eq!(bench.command(get("a")).await, ABSENT);
        assert!(!bench.command(once()).await.is_denial(), "the window was not charged");
    }
}

#[tokio::test]
async fn the_largest_counters_are_reached() {
    let max = 9_007_199_254_740_991_i64;
    for by in [max, -max] {
        let bench = Bench::new();
        let add = Command::increment(digest("n"), by, MINUTE_MS);
        assert_eq!(bench.command(add.clone()).await, counted(by, MINUTE_MS));
        assert_eq!(bench.step([add]).await.error.map(|error| error.code), Some(StepErrorCode::Overflow));
        assert_eq!(bench.command(get("n")).await, value(&by.to_string(), MINUTE_MS));
    }
}

#[tokio::test]
async fn a_failed_step_undoes_neither_the_steps_before_it_nor_those_after() {
    let bench = Bench::new();
    let request = |bench: &Bench| {
        bench
            .fresh()
            .step(digest("alice"), [set("n", "word"), increment("a")])
            .step(digest("alice"), [increment("a"), increment("n")])
            .step(digest("alice"), [increment("a")])
    };
    let response = bench.respond(request(&bench).independent()).await;
    assert_eq!(response.steps[1].error, Some(not_an_integer(1)));
    assert_eq!(response.steps[2].results, [counted(2, MINUTE_MS)]);
    assert!(!response.denied);
    let statuses = bench.statuses(request(&bench)).await;
    assert_eq!(statuses, [Status::Ok, Status::Failed, Status::Skipped]);
    assert_eq!(bench.counter("a").await, Some(3));
}

fn not_an_integer(command: usize) -> StepError {
    StepError {
        code: StepErrorCode::NotAnInteger,
        message: "the value is not an integer".to_owned(),
        command,
    }
}

#[tokio::test]
async fn what_a_denied_or_failed_step_means_for_the_rest() {
    use Status::{Denied, Failed, Ok, Skipped};
    let (good, bad, broken) = (|| vec![increment("a")], || vec![never()], || vec![increment("word")]);
    let table = [
        ([good(), good(), good()], [Ok, Ok, Ok], [Ok, Ok, Ok]),
        ([good(), bad(), good()], [Ok, Denied, Skipped], [Ok, Denied, Ok]),
        ([bad(), good(), bad()], [Denied, Skipped, Skipped], [Denied, Ok, Denied]),
        ([good(), broken(), good()], [Ok, Failed, Skipped], [Ok, Failed, Ok]),
        ([broken(), bad(), good()], [Failed, Skipped, Skipped], [Failed, Denied, Ok]),
    ];
    for (row, (steps, sequential, independent)) in table.into_iter().enumerate() {
        for (is_independent, expected) in [(false, sequential), (true, independent)] {
            let bench = Bench::new();
            bench.command(set("word", "word")).await;
            let base = bench.fresh();
            let base = if is_independent { base.independent() } else { base };
            let request = steps.iter().fold(base, |all, step| all.step(digest("alice"), step.clone()));
            let response = bench.respond(request).await;
            let statuses: Vec<Status> = response.steps.iter().map(|step| step.status).collect();
            assert_eq!(statuses, expected, "row {row}, independent: {is_independent}");
            assert_eq!(response.denied, expected.contains(&Denied));
            let ran = response.steps.iter().filter(|step| step.results == [counted(1, MINUTE_MS)]).count();
            let ran_again = response.steps.iter().filter(|step| step.status == Ok).count();
            assert_eq!(ran, usize::from(ran_again > 0), "only the first finds the counter new");
            for skipped in response.steps.iter().filter(|step| step.status == Skipped) {
                assert_eq!(*skipped, StepResult::skipped());
            }
        }
    }
}

#[tokio::test]
async fn commands_and_steps_see_what_those_before_them_did() {
    let bench = Bench::new();
    let window = || Command::hit([Window::fixed(digest("w"), 3, MINUTE_MS)]);
    let request = bench
        .fresh()
        .independent()
        .step(digest("alice"), [window(), window(), increment("a"), get("a")])
        .step(digest("bob"), [window(), get("a")])
        .step(digest("alice"), [window(), window(), get("a"), Command::claim(digest("a"), "v", MINUTE_MS)])
        .step(digest("alice"), [Command::delete(digest("a")), get("a"), set("a", "v"), increment("b")]);
    let used = |used| allowed([usage(3, used, MINUTE_MS)]);
    let expected = [
        vec![used(1), used(2), counted(1, MINUTE_MS), value("1", MINUTE_MS)],
        vec![used(1), ABSENT],
        vec![used(3), denied(MINUTE_MS, [usage(3, 3, MINUTE_MS)]), value("1", MINUTE_MS), refused(Some("1"))],
        vec![CommandResult::Delete { deleted: true }, ABSENT, WRITTEN, counted(1, MINUTE_MS)],
    ];
    let response = bench.respond(request).await;
    assert_eq!(response.steps.iter().map(|step| step.results.clone()).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_row_that_two_commands_of_a_failed_step_wrote_is_as_before() {
    let bench = Bench::new();
    bench.step([set("n", "word"), increment("a")]).await;
    let budget = || Command::reserve([Budget::new(digest("budget"), 5, MINUTE_MS)]);
    let step = bench.step([increment("a"), budget(), increment("a"), budget(), increment("n")]).await;
    assert_eq!(step.status, Status::Failed);
    assert_eq!(bench.counter("a").await, Some(1));
    let CommandResult::Reserved { budgets, .. } = bench.command(budget()).await else {
        unreachable!("there is room for one of five");
    };
    assert_eq!(budgets, [usage(5, 1, MINUTE_MS)]);
}

#[tokio::test]
async fn the_largest_request_runs() {
    let bench = Bench::new();
    let windows = |step: usize| {
        (0..4).map(move |index| Window::sliding(digest(&format!("w{step}_{index}")), 9, MINUTE_MS))
    };
    let steps = (0..16).fold(bench.fresh(), |request, step| {
        request
            .step(digest(&format!("p{step}")), [Command::hit(windows(step)), Command::hit(windows(step + 1))])
    });
    assert_eq!(bench.statuses(steps).await, [Status::Ok; 16]);

    let budgets =
        |index: usize| (0..4).map(move |b| Budget::new(digest(&format!("b{index}_{b}")), 9, MINUTE_MS));
    let steps = (0..4).fold(bench.fresh(), |request, step| {
        request.step(digest("alice"), (0..8).map(|index| Command::reserve(budgets(step * 8 + index))))
    });
    let response = bench.respond(steps).await;
    let receipts = response.steps.iter().flat_map(|step| &step.results).map(|result| match result {
        CommandResult::Reserved { receipt: Some(receipt), .. } => *receipt,
        other => unreachable!("there is room for all: {other:?}"),
    });
    let receipts: Vec<_> = receipts.collect();
    let steps = receipts.chunks(8).fold(bench.fresh(), |request, receipts| {
        request.step(digest("alice"), receipts.iter().copied().map(Command::refund))
    });
    let response = bench.respond(steps).await;
    let refunded = CommandResult::Refund { refunded: true, reason: None };
    assert!(response.steps.iter().flat_map(|step| &step.results).all(|result| *result == refunded));
}

#[tokio::test]
async fn a_request_out_of_bounds_is_refused_with_its_place_and_changes_nothing() {
    let bench = Bench::new();
    let alice = digest("alice");
    let table: [(&str, Request); 7] = [
        ("steps", bench.fresh()),
        ("steps[0].commands", bench.fresh().step(alice, [])),
        ("steps[0].commands[1].cost", bench.fresh().step(alice, [increment("a"), once().costing(1 << 53)])),
        (
            "steps[0].commands[1].windows[1].key",
            bench.fresh().step(
                alice,
                [
                    increment("a"),
                    Command::hit([Window::fixed(digest("w"), 1, 1000), Window::bucket(digest("w"), 1, 1000)]),
                ],
            ),
        ),
        (
            "steps[0].commands[0].windows[0].period_ms",
            bench.fresh().step(alice, [Command::hit([Window::fixed(digest("w"), 1, 999)])]),
        ),
        (
            "steps[1].commands[0].value",
            bench.fresh().step(alice, [increment("a")]).step(alice, [set("k", &"x".repeat(2049))]),
        ),
        ("family", Request::new(op(1 << 40), family("unknown")).step(alice, [increment("a")])),
    ];
    for (place, request) in table {
        let Err(Refusal::BadRequest(fault)) = bench.run(request).await else {
            unreachable!("{place} is out of bounds");
        };
        assert_eq!(fault.place, place);
        assert!(!fault.message.is_empty());
    }
    assert_eq!(bench.rows().await, 0);
}
