//! A known operation id with other commands.

use tidegate_guard::Refusal;
use tidegate_protocol::{Command, Request};

use super::{LIFE_MS, MINUTE_MS, once, set};
use crate::harness::{ABSENT, Bench, digest, family, get, increment, op, request};

#[tokio::test]
async fn other_commands_under_a_known_operation_are_a_conflict_and_change_nothing() {
    let [alice, bob] = ["alice", "bob"].map(digest);
    let id = op(1 << 40);
    let same = |request: Request| request.step(alice, [increment("a"), get("b")]);
    let other = |request: Request| request.step(alice, [increment("a"), get("c")]);
    let second = |request: Request| request.step(bob, [set("k", "v")]);
    let in_family = |name: &str| Request::new(id, family(name));
    let table: [(&str, usize, Request); 12] = [
        (
            "another amount",
            0,
            request(id).step(alice, [Command::increment(digest("a"), 2, MINUTE_MS), get("b")]),
        ),
        ("another ttl", 0, request(id).step(alice, [Command::increment(digest("a"), 1, 1000), get("b")])),
        ("another key", 0, request(id).step(alice, [increment("other"), get("b")])),
        ("another read", 0, other(request(id))),
        ("another order", 0, request(id).step(alice, [get("b"), increment("a")])),
        ("one command more", 0, request(id).step(alice, [increment("a"), get("b"), increment("new")])),
        ("one command less", 0, request(id).step(alice, [increment("a")])),
        ("a read only", 0, request(id).step(alice, [get("b")])),
        ("a look", 0, request(id).step(alice, [once().costing(0)])),
        ("another family", 0, second(same(in_family("password")))),
        ("the second step only", 1, same(request(id)).step(bob, [set("k", "w")])),
        ("the second step only, a read", 1, same(request(id)).step(bob, [get("k")])),
    ];
    for (what, step, conflicting) in table {
        let bench = Bench::new();
        bench.respond(second(same(request(id)))).await;
        let writes = bench.writes();
        for request in [conflicting.clone(), conflicting.independent()] {
            assert_eq!(bench.run(request).await, Err(Refusal::Conflict { step }), "{what}");
        }
        assert_eq!(bench.writes(), writes, "{what}");
        bench.at(LIFE_MS);
        bench.respond(same(request(id))).await;
    }
}

#[tokio::test]
async fn a_conflict_is_found_before_anything_runs() {
    let bench = Bench::new();
    let id = op(1 << 40);
    let [alice, bob] = ["alice", "bob"].map(digest);
    // Only the second step is known: the first changed nothing.
    bench
        .respond(request(id).independent().step(alice, [once().costing(2)]).step(bob, [increment("a")]))
        .await;
    let writes = bench.writes();
    let conflicting = request(id).step(alice, [set("new", "v"), increment("a")]).step(bob, [increment("b")]);
    assert_eq!(bench.run(conflicting).await, Err(Refusal::Conflict { step: 1 }));
    assert_eq!(bench.writes(), writes);
    assert_eq!(bench.command(get("new")).await, ABSENT);
}

#[tokio::test]
async fn an_operation_belongs_to_its_partition_and_its_place() {
    let bench = Bench::new();
    let id = op(1 << 40);
    let [alice, bob] = ["alice", "bob"].map(digest);
    bench.respond(request(id).step(alice, [increment("a")])).await;
    let response = bench.respond(request(id).step(bob, [increment("a")]).step(alice, [increment("a")])).await;
    let replayed: Vec<bool> = response.steps.iter().map(|step| step.replayed).collect();
    assert_eq!(replayed, [false, false]);
    assert_eq!(bench.counter("a").await, Some(2));
}
