//! The same operation again: the recorded answer, and nothing changes.

use serde_json::{Value, json};

use crate::support::{
    message::{digest, get, hit, incr, one_step, set, signed, steps},
    server::{SECRET, Server, Setup},
    state::{KEY, Watched},
    wire::Wire,
};

#[test]
fn the_same_bytes_again_have_the_same_answer() {
    let server = Server::start();
    let budget = json!({"key": digest("k"), "limit": 5, "period_ms": 3_600_000});
    let reserve = json!({"cmd": "res.reserve", "budgets": [budget]});
    let request = one_step("bytes", json!([incr("k"), hit("k", 5), set("s", "v", "nx"), reserve]));
    let bytes = signed(SECRET, request.to_string().as_bytes());
    let replies = [(); 3].map(|()| Wire::tcp(server.guard).unwrap().exchange(&bytes).unwrap().json());
    assert_eq!(replies.each_ref().map(|reply| &reply["steps"][0]["replayed"]), [false, true, true]);
    let results = replies.each_ref().map(|reply| &reply["steps"][0]["results"]);
    assert_eq!(results[1..], [results[0], results[0]], "receipt and numbers included");
    assert_eq!(server.counter("bytes", "k"), json!("1"));

    // And signed anew, as a caller that repeats a call does.
    let again = server.ok(&request);
    assert_eq!((&again["steps"][0]["results"], &again["steps"][0]["replayed"]), (results[0], &json!(true)));
    assert!(server.metric("tidegate_guard_steps_replayed_total") >= 3);
}

#[test]
fn a_client_that_never_read_its_answer_repeats_it() {
    let server = Server::start();
    let request = one_step("unread", json!([incr("k")]));
    let mut wire = Wire::tcp(server.guard).unwrap();
    wire.send(&signed(SECRET, request.to_string().as_bytes())).unwrap();
    drop(wire);
    for _ in 0..3 {
        assert_eq!(server.ok(&request)["steps"][0]["results"][0]["value"], 1);
    }
    assert_eq!(server.counter("unread", "k"), json!("1"));
}

#[test]
fn the_same_id_with_other_commands_is_a_conflict() {
    let server = Server::start();
    let watched = Watched::new(&server, "conflict");
    let request = one_step("conflict", json!([incr("k")]));
    server.ok(&request);
    let step = request["steps"][0].clone();
    let changes: [(&str, &str, Value); 8] = [
        ("another amount", "/steps/0/commands/0/by", json!(5)),
        ("another key", "/steps/0/commands/0/key", json!(digest(KEY))),
        ("another life", "/steps/0/commands/0/ttl_ms", json!(1000)),
        ("another command", "/steps/0/commands", json!([get("k")])),
        ("a command more", "/steps/0/commands", json!([incr("k"), incr(KEY)])),
        ("another family", "/family", json!("offline")),
        (
            "a step before it",
            "/steps",
            json!([{"partition": digest("conflict"), "commands": [incr(KEY)]}, step]),
        ),
        (
            "a good step before it",
            "/steps",
            json!([
                {"partition": digest("conflict"), "commands": [incr(KEY)]},
            ]),
        ),
    ];
    for (what, pointer, value) in changes {
        let mut other = request.clone();
        *other.pointer_mut(pointer).unwrap() = value;
        let reply = server.rpc(&other);
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (409, "operation_conflict"),
            "{what}: {}",
            reply.text()
        );
        assert!(reply.message().starts_with("steps[0]"), "{what}: {}", reply.message());
    }
    watched.assert_unchanged("conflicts");
    assert_eq!(server.counter("conflict", "k"), json!("1"));
    let replay = server.ok(&request);
    assert_eq!(replay["steps"][0]["replayed"], true, "the operation itself is still known");
}

/// What counts is the meaning, not the spelling.
#[test]
fn another_spelling_of_the_same_commands_is_the_same_operation() {
    let server = Server::start();
    let request =
        one_step("spelled", json!([{"cmd": "kv.incr", "key": digest("k"), "by": 1, "ttl_ms": 600_000}]));
    server.ok(&request);
    let spaced = serde_json::to_string_pretty(&request).unwrap();
    let default = request.to_string().replace("\"by\":1,", "");
    assert_ne!(default, request.to_string());
    for text in [spaced, default] {
        let reply = server.post(text.as_bytes());
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.json()["steps"][0]["replayed"], true, "{text}");
    }
    assert_eq!(server.counter("spelled", "k"), json!("1"));
}

/// An id names an operation in its step's partition: whoever can't know the partition can't collide.
#[test]
fn the_same_id_in_another_partition_is_another_operation() {
    let server = Server::start();
    let request = one_step("one", json!([incr("k")]));
    let mut other = request.clone();
    other["steps"][0]["partition"] = json!(digest("two"));
    for request in [&request, &other] {
        assert_eq!(server.ok(request)["steps"][0]["replayed"], false);
    }
    assert_eq!([server.counter("one", "k"), server.counter("two", "k")], [json!("1"), json!("1")]);
}

#[test]
fn what_changed_nothing_is_not_recorded() {
    let server = Server::start();
    // The family's own row is there from the first request on.
    server.run("other", incr("k"));
    for command in [get("k"), hit("none", 0)] {
        let request = one_step("nothing", json!([command]));
        let before = server.metric("tidegate_store_entries");
        for _ in 0..3 {
            assert_eq!(server.ok(&request)["steps"][0]["replayed"], false);
        }
        assert_eq!(server.metric("tidegate_store_entries"), before);
    }
    // A read-only step beside one that is recorded reads anew.
    let step = |command: Value| json!({"partition": digest("mixed"), "commands": [command]});
    let request = steps(json!([step(get("x")), step(incr("k"))]));
    assert_eq!(server.ok(&request)["steps"][0]["results"][0]["value"], Value::Null);
    server.run("mixed", set("x", "now", "always"));
    let again = server.ok(&request);
    assert_eq!(again["steps"][0]["results"][0]["value"], "now");
    assert_eq!(again["steps"][1]["replayed"], true);
}

#[test]
fn a_replay_outlives_a_restart() {
    let mut server = Server::start();
    let request = one_step("restart", json!([incr("k")]));
    let first = server.ok(&request);
    for how in [Server::restart, Server::kill_and_restart] {
        server = how(server);
        let again = server.ok(&request);
        assert_eq!(again["steps"][0]["results"], first["steps"][0]["results"]);
        assert_eq!(again["steps"][0]["replayed"], true);
    }
    assert_eq!(server.counter("restart", "k"), json!("1"));
}

/// Where there is no more room, what is new is refused; what was answered is never forgotten for it.
#[test]
fn a_flood_of_other_operations_does_not_push_one_out() {
    let server = Setup::new().set("store.max_entries", "1000").start();
    let request = one_step("victim", json!([incr("k")]));
    server.ok(&request);
    let mut wire = Wire::tcp(server.guard).unwrap();
    let mut refused = 0;
    for round in 0..30 {
        let fresh = |index| one_step("flood", json!([incr(&format!("{round} {index}"))])).to_string();
        let bytes: Vec<u8> = (0..50).flat_map(|index| signed(SECRET, fresh(index).as_bytes())).collect();
        wire.send(&bytes).unwrap();
        for _ in 0..50 {
            let reply = wire.reply().unwrap();
            assert!(matches!(reply.status, 200 | 503), "{}", reply.text());
            if reply.status == 503 {
                assert_eq!(
                    (reply.code().as_str(), reply.header("retry-after")),
                    ("guard_unavailable", Some("30"))
                );
                refused += 1;
            }
        }
    }
    assert!(refused >= 400, "{refused} of 1500 new keys were refused at a bound of 1000");
    let again = server.ok(&request);
    assert_eq!(
        (&again["steps"][0]["replayed"], &again["steps"][0]["results"][0]["value"]),
        (&json!(true), &json!(1))
    );
}
