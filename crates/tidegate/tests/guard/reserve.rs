//! The part of a budget that is kept for those who are known to be good.

use serde_json::{Value, json};

use crate::support::{
    eventually,
    message::{digest, one_step},
    server::{Server, Setup},
    spending::{assert_refused, budgeted, carrying, looks},
};

/// A hundred commands, twenty of them kept, and nobody has a share that matters here.
fn setup() -> Setup {
    budgeted(100)
        .set("guard.families.proxy.reserve_bp", "2000")
        .set("guard.families.proxy.shares_bp", "source=10000,principal=10000")
}

#[test]
fn strangers_stop_at_the_reserve_and_known_good_ones_go_on_to_the_end() {
    let server = setup().start();
    server.ok(&vouched("friend"));
    drain_open_part(&server, 80);
    let seen = server.state()["families"]["proxy"].clone();
    let expected = json!({"budget": 100, "used": 80, "open_remaining": 0, "reserve_remaining": 20,
                          "state": "reserve", "warned": true});
    assert_eq!(seen, expected);
    for stranger in
        [looks("proxy", 1), from("a stranger", 1), carrying(looks("proxy", 1), "network/24", "friend")]
    {
        assert_refused(&server.rpc(&stranger), "guard_stopped", "budget_exhausted");
    }
    server.wait_for_log("reserve-entered");
    let log = server.log();
    assert_eq!(log.matches("reserve-entered").count(), 1, "{log}");
    assert!(!log.contains("budget-exhausted"), "{log}");

    // It is as durable as everything else.
    let server = server.kill_and_restart();
    assert_refused(&server.rpc(&from("a stranger", 1)), "guard_stopped", "budget_exhausted");
    assert_eq!(server.rpc(&from("friend", 15)).status, 200);
    assert_refused(&server.rpc(&from("friend", 6)), "guard_stopped", "budget_insufficient");
    assert_eq!(server.rpc(&from("friend", 5)).status, 200, "to the last command");
    assert_refused(&server.rpc(&from("friend", 1)), "guard_stopped", "budget_exhausted");
    server.wait_for_log("budget-exhausted");
    assert_eq!(server.state()["families"]["proxy"]["state"], "stopped");
    assert_eq!(server.log().matches("reserve-entered").count(), 0, "said before the restart");
}

#[test]
fn known_good_ones_spend_the_open_part_first() {
    let server = setup().start();
    server.ok(&vouched("friend"));
    drain(&server, "friend", 80);
    assert_eq!(server.state()["families"]["proxy"]["reserve_remaining"], 20);
    assert_refused(&server.rpc(&from("a stranger", 1)), "guard_stopped", "budget_exhausted");
}

#[test]
fn who_is_known_to_be_good() {
    type Before = fn(&Server);
    let visit: Before = |server| drop(server.ok(&from("it", 1)));
    let source: Before = |server| drop(server.ok(&vouched("it")));
    let principal: Before = |server| drop(server.ok(&good(carrying(looks("proxy", 1), "principal", "it"))));
    let network: Before = |server| drop(server.ok(&good(carrying(looks("proxy", 1), "network/24", "it"))));
    let success: Before = |server| attempt(server, true);
    let failure: Before = |server| attempt(server, false);
    // What was done before, the one axis that a caller then comes with, and whether it may spend the reserve.
    let table = [
        ("a visit", visit, "source", false),
        ("its source was vouched for", source, "source", true),
        ("only its source was", source, "principal", false),
        ("its principal was vouched for", principal, "principal", true),
        ("a network was vouched for", network, "network/24", false),
        ("a refund after a success", success, "source", true),
        ("an attempt without one", failure, "source", false),
    ];
    for (what, before, axis, is_good) in table {
        let server = setup().start();
        before(&server);
        drain_open_part(&server, 80);
        let reply = server.rpc(&carrying(looks("proxy", 1), axis, "it"));
        if is_good {
            assert_eq!(reply.status, 200, "{what}: {}", reply.text());
        } else {
            assert_refused(&reply, "guard_stopped", "budget_exhausted");
        }
    }
}

#[test]
fn who_is_vouched_for_may_spend_the_reserve_at_once_and_who_vouches_for_nobody_may_not() {
    let server = setup().start();
    drain_open_part(&server, 80);
    assert_refused(&server.rpc(&good(looks("proxy", 1))), "guard_stopped", "budget_exhausted");
    assert_eq!(server.rpc(&vouched("newcomer")).status, 200);
    assert_eq!(server.rpc(&from("newcomer", 1)).status, 200);
}

/// A family that is full of strangers again after a resume is open to all, and enters the reserve once more.
#[test]
fn a_resume_opens_it_again() {
    let server = setup().start();
    drain_open_part(&server, 80);
    server.order("/control/resume", "");
    drain_open_part(&server, 80);
    eventually("two entries", || (server.log().matches("reserve-entered").count() == 2).then_some(()));
    assert_eq!(server.metric(r#"tidegate_alerts_total{kind="reserve-entered"}"#), 2);
}

/// The control: without a reserve there is nothing to go on with.
#[test]
fn without_a_reserve_a_flood_of_strangers_stops_known_good_ones_too() {
    let server = setup().set("guard.families.proxy.reserve_bp", "0").start();
    server.ok(&vouched("friend"));
    drain_open_part(&server, 100);
    assert_refused(&server.rpc(&from("friend", 1)), "guard_stopped", "budget_exhausted");
}

/// Strangers, each from a source of its own, spend until `used` commands are.
#[track_caller]
fn drain_open_part(server: &Server, used: u64) {
    let left = used - server.used("proxy");
    for stranger in 0..left {
        server.ok(&from(&format!("stranger {stranger}"), 1));
    }
}

#[track_caller]
fn drain(server: &Server, name: &str, used: u64) {
    for _ in server.used("proxy")..used {
        server.ok(&from(name, 1));
    }
}

fn from(name: &str, commands: usize) -> Value {
    carrying(looks("proxy", commands), "source", name)
}

fn good(mut request: Value) -> Value {
    request["good"] = json!(true);
    request
}

fn vouched(name: &str) -> Value {
    good(from(name, 1))
}

#[track_caller]
fn attempt(server: &Server, succeeds: bool) {
    let budget = json!({"key": digest("attempts"), "limit": 5, "period_ms": 60_000});
    let command = |command: Value| carrying(one_step("login", json!([command])), "source", "it");
    let reserved = server.ok(&command(json!({"cmd": "res.reserve", "budgets": [budget]})));
    if succeeds {
        let receipt = &reserved["steps"][0]["results"][0]["receipt"];
        let refunded = server.ok(&command(json!({"cmd": "res.refund", "receipt": receipt})));
        assert_eq!(refunded["steps"][0]["results"][0]["refunded"], true);
    }
}
