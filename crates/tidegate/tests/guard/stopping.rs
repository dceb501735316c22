//! Stop and resume: what a stop promises once it has answered.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use serde_json::{Value, json};

use crate::{
    http2::Http2,
    support::{
        eventually,
        message::{digest, get, incr, one_step, post_with, signed},
        server::{SECRET, Server, Setup},
        spending::{assert_refused, budgeted, carrying, looks, split},
        wire::{self, Reply, Wire},
    },
};

/// Connections of HTTP/1.1 with that many requests in the pipe each, and of HTTP/2 with that many streams.
const CONNECTIONS: usize = 16;
const AT_ONCE: usize = 8;

#[test]
fn once_a_stop_has_answered_nothing_executes() {
    let server = budgeted(1_000_000).start();
    for round in 0..4 {
        let executed = AtomicUsize::new(0);
        let stopped = thread::scope(|scope| {
            let clients = clients_of(scope, server.guard, &executed);
            await_executed(&executed, 60 * round);
            let stopped = server.order("/control/stop", "");
            clients.into_iter().for_each(|client| client.join().expect("it was answered"));
            stopped
        });
        let executed = executed.into_inner() as u64;
        let used = &stopped["families"]["proxy"]["used"];
        assert_eq!(used, executed, "round {round}: all that was admitted was so before the stop answered");
        assert_eq!(server.used("proxy"), executed, "round {round}: and nothing since");
        server.order("/control/resume", "");
        assert_eq!(take_counter(&server), executed, "round {round}: all that was admitted was executed");
        server.order("/control/resume", "");
    }
}

/// The control: the same clients go on if the call that answered was no stop, and the same count shows it.
#[test]
fn the_count_notices_what_executes_afterwards() {
    let server = budgeted(1_000_000).start();
    let executed = AtomicUsize::new(0);
    thread::scope(|scope| {
        let clients = clients_of(scope, server.guard, &executed);
        await_executed(&executed, 60);
        let used = server.used("proxy");
        eventually("more to be executed", || (server.used("proxy") > used).then_some(()));
        server.order("/control/stop", "");
        clients.into_iter().for_each(|client| client.join().expect("it was answered"));
    });
}

#[test]
fn a_stop_outlives_the_process_and_everything_else_goes_on() {
    for durability in ["fsync", "process"] {
        let setup = Setup::new().set("store.durability", durability);
        let mut server = setup.start();
        server.ok(&one_step("kept", json!([incr("k")])));
        let fence = server.order("/control/stop", r#"{"reason":"a drill"}"#)["fence"].clone();
        for restart in 0..3 {
            for family in ["proxy", "offline"] {
                assert_refused(&server.rpc(&looks(family, 1)), "guard_stopped", "operator_stop");
            }
            assert_eq!(server.state()["fence"], fence, "restart {restart}");
            for path in ["/healthz", "/readyz"] {
                assert_eq!(wire::get(server.guard, path).unwrap().status, 200, "{path}: the store is well");
            }
            server = if restart == 1 { server.restart() } else { server.kill_and_restart() };
        }
        server.order("/control/resume", "");
        assert_eq!(server.counter("kept", "k"), json!("1"), "data is kept");
        let server = server.kill_and_restart();
        assert_eq!(server.counter("kept", "k"), json!("1"), "and so is a resume");
    }
}

#[test]
fn a_stop_is_the_same_over_every_way_in() {
    let setup = Setup::new().set("guard.socket", "guard.sock");
    let server = setup.start();
    let http2 = Http2::connect(server.guard);
    let token = format!("Bearer {}", server.made_secret("operator_token"));
    let mut stop = http2.begin_with("POST", "/control/stop", &[("authorization", &token)]);
    http2.send(&mut stop, b"{}", true).unwrap();
    assert_eq!(http2.answer(stop).unwrap().json()["fence"]["stopped"], true);
    let body = looks("proxy", 1).to_string().into_bytes();
    assert_refused(&server.post(&body), "guard_stopped", "operator_stop");
    assert_refused(&http2.post(&body), "guard_stopped", "operator_stop");
    let mut socket = Wire::unix(&setup.folder().join("guard.sock")).unwrap();
    let reply = socket.exchange(&post_with(&[], &body)).unwrap();
    assert_refused(&reply, "guard_stopped", "operator_stop");
    server.wait_for_log("fence-changed");
    let alerts = || server.metric(r#"tidegate_alerts_total{kind="fence-changed"}"#);
    assert_eq!(alerts(), 1);

    let fence = server.state()["fence"].clone();
    server.order("/control/stop", r#"{"reason":"again"}"#);
    let again = server.order("/control/stop", "")["fence"].clone();
    assert_eq!((&again["since_ms"], &again["reason"]), (&fence["since_ms"], &json!("again")));
    assert_eq!(alerts(), 1, "it was up already");
    server.order("/control/resume", r#"{"families":[]}"#);
    assert_eq!(alerts(), 2);
    server.order("/control/resume", "");
    assert_eq!(alerts(), 2, "it was down already");
}

#[test]
fn a_family_is_warned_of_once_a_day() {
    let server = split(100, "proxy=10,offline=90").start();
    let warnings = || server.metric(r#"tidegate_alerts_total{kind="budget-warning"}"#);
    server.ok(&looks("proxy", 8));
    assert_eq!(warnings(), 1);
    let proxy = |state: &Value| state["families"]["proxy"].clone();
    let kept = proxy(&server.order("/control/resume", r#"{"families":[]}"#));
    assert_eq!((&kept["used"], &kept["warned"]), (&json!(8), &json!(true)), "nobody was named");
    let anew = proxy(&server.order("/control/resume", r#"{"families":["proxy","proxy"]}"#));
    assert_eq!((&anew["used"], &anew["warned"]), (&json!(0), &json!(true)));
    server.ok(&looks("proxy", 8));
    assert_eq!(warnings(), 1, "the day has had its warning");
}

#[test]
fn a_resume_lets_the_named_families_go_on_and_keeps_quotas() {
    let server = split(300, "proxy=100,offline=100,replay=100").start();
    let from_it = |family: &str| carrying(looks(family, 5), "source", "it");
    for family in ["proxy", "offline"] {
        server.ok(&from_it(family));
        for _ in 0..5 {
            server.ok(&looks(family, 19));
        }
    }
    let phases =
        |state: &Value| ["proxy", "offline"].map(|family| state["families"][family]["state"].clone());
    assert_eq!(phases(&server.state()), ["stopped", "stopped"]);
    server.order("/control/stop", "");

    let state = server.order("/control/resume", r#"{"families":["proxy"]}"#);
    assert_eq!(
        (&state["fence"]["stopped"], phases(&state)),
        (&json!(false), [json!("open"), json!("stopped")])
    );
    assert_eq!(
        (&state["families"]["proxy"]["used"], &state["families"]["offline"]["used"]),
        (&json!(0), &json!(100))
    );
    assert_eq!(server.rpc(&looks("proxy", 1)).status, 200);
    assert_refused(&server.rpc(&looks("offline", 1)), "guard_stopped", "budget_exhausted");
    assert_refused(&server.rpc(&from_it("proxy")), "guard_limited", "source");

    let state = server.order("/control/resume", "");
    assert_eq!(phases(&state), ["open", "open"]);
    assert_refused(&server.rpc(&from_it("offline")), "guard_limited", "source");
    let server = server.kill_and_restart();
    assert_refused(&server.rpc(&from_it("proxy")), "guard_limited", "source");
    assert_eq!(server.rpc(&looks("offline", 1)).status, 200);
}

#[test]
fn stops_and_resumes_at_once_each_leave_an_entry() {
    let server = budgeted(100).start();
    thread::scope(|scope| {
        for number in 0..8 {
            let server = &server;
            scope.spawn(move || match number % 2 {
                0 => server.order("/control/stop", &json!({"reason": format!("{number}")}).to_string()),
                _ => server.order("/control/resume", ""),
            });
        }
    });
    let entries = server.audit();
    assert_eq!(entries.len(), 8, "{entries:?}");
    // The last one holds.
    assert_eq!(server.state()["fence"]["stopped"], entries[0]["action"] == "stop");
    assert_eq!(server.state()["fence"]["reason"], entries[0]["reason"]);
}

/// Clients that send increments until the operator's stop, and count those that were executed.
fn clients_of<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    address: SocketAddr,
    executed: &'scope AtomicUsize,
) -> Vec<thread::ScopedJoinHandle<'scope, ()>> {
    let pipelined = move || {
        let mut wire = Wire::tcp(address).unwrap();
        until_stopped(executed, |bodies| {
            let requests: Vec<u8> = bodies.iter().flat_map(|body| signed(SECRET, body)).collect();
            wire.send(&requests).unwrap();
            bodies.iter().map(|_| wire.reply().unwrap()).collect()
        });
    };
    let streams = move || {
        let http2 = Http2::connect(address);
        until_stopped(executed, |bodies| http2.post_all(bodies));
    };
    let clients = (0..CONNECTIONS).flat_map(|_| [scope.spawn(pipelined), scope.spawn(streams)]);
    clients.collect()
}

fn until_stopped(executed: &AtomicUsize, mut send: impl FnMut(&[Vec<u8>]) -> Vec<Reply>) {
    loop {
        let increment = || one_step("stopping", json!([incr("k")])).to_string().into_bytes();
        let replies = send(&(0..AT_ONCE).map(|_| increment()).collect::<Vec<_>>());
        executed.fetch_add(replies.iter().filter(|reply| reply.status == 200).count(), Ordering::Relaxed);
        let mut refused = replies.iter().filter(|reply| reply.status != 200).peekable();
        let is_stopped = refused.peek().is_some();
        refused.for_each(|reply| assert_refused(reply, "guard_stopped", "operator_stop"));
        if is_stopped {
            return;
        }
    }
}

fn await_executed(executed: &AtomicUsize, count: usize) {
    eventually("increments", || (executed.load(Ordering::Relaxed) >= count).then_some(()));
}

/// The counter's value; removes it.
#[track_caller]
fn take_counter(server: &Server) -> u64 {
    let delete = json!({"cmd": "kv.del", "key": digest("k")});
    let results = server.ok(&one_step("stopping", json!([get("k"), delete])))["steps"][0]["results"].clone();
    results[0]["value"].as_str().map_or(0, |value| value.parse().expect("a counter"))
}
