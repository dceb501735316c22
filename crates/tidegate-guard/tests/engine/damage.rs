//! Stores that can't answer, rows that can't be read: nobody may take them for empty, nor for full.

use tidegate_guard::Refusal;
use tidegate_protocol::{
    Command, CommandResult,
    control::Resume,
    name::ReceiptId,
    request::{Budget, SetMode, Window},
};

use crate::{
    harness::{Bench, digest, get, increment},
    rig::{Kind, Rig},
};

const MINUTE_MS: u64 = 60_000;

fn attempt() -> Command {
    Command::reserve([Budget::new(digest("k"), 9, MINUTE_MS)])
}

/// A row of every kind under `k` in Alice's partition.
async fn fill(bench: &Bench) -> ReceiptId {
    let windows = [Window::sliding, Window::fixed, Window::bucket];
    let hits = windows.map(|window| Command::hit([window(digest("k"), 9, MINUTE_MS)]));
    bench.step(hits).await;
    bench.command(increment("k")).await;
    match bench.command(attempt()).await {
        CommandResult::Reserved { receipt: Some(receipt), .. } => receipt,
        other => unreachable!("there is room: {other:?}"),
    }
}

/// The commands that need the row of a kind.
fn commands_on(kind: Kind, receipt: ReceiptId) -> Vec<Command> {
    let hit = |window: Window| vec![Command::hit([window]), Command::hit([window]).costing(0)];
    let claim = Command::claim(digest("k"), "v", MINUTE_MS);
    match kind {
        Kind::Sliding => hit(Window::sliding(digest("k"), 9, MINUTE_MS)),
        Kind::Fixed => hit(Window::fixed(digest("k"), 9, MINUTE_MS)),
        Kind::Bucket => hit(Window::bucket(digest("k"), 9, MINUTE_MS)),
        Kind::Budget => vec![attempt(), attempt().costing(0), Command::refund(receipt)],
        Kind::Receipt => vec![Command::refund(receipt)],
        Kind::Record => vec![get("k"), increment("k"), claim],
        Kind::Operation | Kind::FamilyDay | Kind::Quota | Kind::Fence => Vec::new(),
    }
}

#[tokio::test]
async fn a_damaged_row_is_no_answer_and_nothing_is_written() {
    use Kind::{Bucket, Budget, Fixed, Receipt, Record, Sliding};
    let numbers = [Sliding, Fixed, Bucket, Budget, Receipt];
    let table = [Sliding, Fixed, Bucket, Budget, Receipt, Record].map(|kind| (kind, Rig::Garbles(kind)));
    let table = table.into_iter().chain(numbers.map(|kind| (kind, Rig::Cuts(kind))));
    let table = table.chain(numbers.map(|kind| (kind, Rig::Smears(kind))));
    for (kind, rig) in table {
        let bench = Bench::new();
        let receipt = fill(&bench).await;
        let writes = bench.writes();
        bench.rig(rig);
        for command in commands_on(kind, receipt) {
            // What the same request wrote elsewhere goes with it.
            let request = bench
                .fresh()
                .step(digest("bob"), [increment("a")])
                .step(digest("alice"), [increment("a"), command.clone()])
                .step(digest("bob"), [increment("a")])
                .independent();
            assert_eq!(bench.run(request).await, Err(Refusal::Unavailable), "{rig:?}: {command:?}");
            assert_eq!(bench.writes(), writes, "{rig:?}: {command:?}");
        }
    }
}

#[tokio::test]
async fn text_that_is_none_is_not_read() {
    let bench = Bench::new();
    fill(&bench).await;
    bench.rig(Rig::Smears(Kind::Record));
    for command in [get("k"), Command::claim(digest("k"), "v", MINUTE_MS)] {
        let request = bench.fresh().step(digest("alice"), [command]);
        assert_eq!(bench.run(request).await, Err(Refusal::Unavailable));
    }
}

#[tokio::test]
async fn what_needs_no_value_repairs_the_row() {
    let repairs = [
        Command::delete(digest("k")),
        Command::set(digest("k"), "v", MINUTE_MS),
        Command::Set {
            key: digest("k"),
            value: "v".to_owned(),
            ttl_ms: None,
            mode: SetMode::Xx,
            keep_ttl: true,
        },
    ];
    for repair in repairs {
        let bench = Bench::new();
        fill(&bench).await;
        bench.rig(Rig::Garbles(Kind::Record));
        bench.command(repair.clone()).await;
        bench.rig(Rig::Sound);
        let CommandResult::Get { value, .. } = bench.command(get("k")).await else {
            unreachable!("a get was asked for");
        };
        assert_ne!(value.as_deref(), Some("1"), "{repair:?}");
    }
}

#[tokio::test]
async fn a_damaged_operation_record_is_no_answer() {
    for rig in [Rig::Garbles(Kind::Operation), Rig::Cuts(Kind::Operation)] {
        let bench = Bench::new();
        let request = bench.fresh().step(digest("alice"), [increment("k")]);
        bench.respond(request.clone()).await;
        let writes = bench.writes();
        bench.rig(rig);
        assert_eq!(bench.run(request.clone()).await, Err(Refusal::Unavailable), "{rig:?}");
        assert_eq!(bench.writes(), writes);
        bench.rig(Rig::Sound);
        assert!(bench.respond(request).await.steps[0].replayed);
        assert_eq!(bench.counter("k").await, Some(1));
    }
}

#[tokio::test]
async fn damaged_rows_of_admission_are_neither_empty_nor_full() {
    for kind in [Kind::FamilyDay, Kind::Quota, Kind::Fence] {
        for rig in [Rig::Garbles(kind), Rig::Cuts(kind)] {
            let bench = Bench::new();
            let from_a_source = |bench: &Bench| {
                let mut request = bench.fresh().step(digest("alice"), [increment("k")]);
                request.fairness.source = Some(digest("source"));
                request
            };
            bench.respond(from_a_source(&bench)).await;
            bench.guard.operator().resume(Resume::default(), "::1").await.expect("the store is well");
            let writes = bench.writes();
            bench.rig(rig);
            assert_eq!(bench.run(from_a_source(&bench)).await, Err(Refusal::Unavailable), "{rig:?}");
            assert_eq!(bench.writes(), writes, "{rig:?}");
        }
    }
}

#[tokio::test]
async fn damage_elsewhere_stops_nobody() {
    let bench = Bench::new();
    fill(&bench).await;
    bench.rig(Rig::Garbles(Kind::Record));
    let hit = Command::hit([Window::sliding(digest("k"), 9, MINUTE_MS)]);
    assert!(!bench.command(hit).await.is_denial());
}

#[tokio::test]
async fn a_store_that_fails_is_no_answer() {
    let bench = Bench::new();
    let receipt = fill(&bench).await;
    assert_eq!(bench.guard.probe().await, Ok(()));
    bench.rig(Rig::Fails);
    for command in [get("k"), increment("k"), Command::refund(receipt)] {
        let request = bench.fresh().step(digest("alice"), [command]);
        assert_eq!(bench.run(request).await, Err(Refusal::Unavailable));
    }
    assert_eq!(bench.guard.probe().await, Err(Refusal::Unavailable));
    bench.rig(Rig::Sound);
    assert_eq!(bench.counter("k").await, Some(1));
    assert_eq!(bench.guard.probe().await, Ok(()));
}

#[tokio::test]
async fn a_full_store_refuses_new_rows_and_still_denies_and_reads() {
    let bench = Bench::with_room(2);
    let hit = |name: &str| Command::hit([Window::fixed(digest(name), 1, MINUTE_MS)]);
    bench.command(hit("known")).await;
    assert!(bench.command(hit("known")).await.is_denial());
    for command in [increment("k"), hit("new")] {
        let request = bench.fresh().step(digest("alice"), [command]);
        assert_eq!(bench.run(request).await, Err(Refusal::Unavailable));
    }
    assert_eq!(bench.counter("k").await, None);
    bench.at(180_000);
    assert!(!bench.command(hit("new")).await.is_denial(), "expired rows make room");
}
