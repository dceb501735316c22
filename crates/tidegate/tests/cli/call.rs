//! `tidegate call`: every command, as people read it, as JSON, and as a line for curl that bash runs.

use serde_json::Value;

use crate::{
    shell::{Ran, bash, start, tidegate, unconfigured, write},
    support::{message, server::Setup},
};

#[test]
fn every_command_says_the_same_to_people_to_programs_and_by_curl() {
    let server = start(&unconfigured());
    let setup = server.setup();
    let table = [
        ("win.hit login:alice 5/1m", 0, "allowed\n"),
        (
            "win.hit login:alice burst=20/1d 100/2d --algorithm fixed --cost 3",
            0,
            "burst                    20          3",
        ),
        ("win.hit api 5/1d --algorithm bucket", 0, "allowed\n"),
        ("win.hit shut 0/1m", 1, "denied; waiting can't help"),
        ("win.hit greedy 5/1m --cost 9", 1, "denied; waiting can't help"),
        ("win.hit other 5/1m --cost 0", 0, "allowed\n"),
        ("kv.get p k", 0, "no record"),
        ("kv.set p k v --ttl 10m --xx", 1, "not written; there is no record"),
        ("kv.set p k v --ttl 10m --nx", 0, "written"),
        ("kv.set p k w --ttl 10m --nx", 1, "not written; it holds \"v\""),
        ("kv.set p k it's --xx --keep-ttl", 0, "written"),
        ("kv.get p k", 0, "it's\n"),
        ("kv.ttl p k", 0, "lives another"),
        ("kv.expire p k 1h", 0, "updated"),
        ("kv.incr p k --ttl 1h", 2, "nothing was written"),
        ("kv.incr p counter 5 --ttl 1h", 0, "5\n"),
        ("kv.incr p counter -7 --ttl 1h", 0, "-2\n"),
        ("kv.del p k", 0, "deleted"),
        ("kv.del p k", 0, "no record"),
        (
            "res.reserve login 1/15m:source 20/1h:target --target source --family password --source 192.0.2.7",
            0,
            "reserved; receipt",
        ),
        ("res.reserve login 1/15m:source 20/1h:target", 1, "denied; try again in"),
        ("res.refund login AAAAAAAAAAAAAAAAAAAAAA", 1, "not refunded: no such receipt"),
    ];
    for (line, code, said) in table {
        three_ways(setup, line, code, said);
    }
}

#[test]
fn a_reservation_is_given_back_once() {
    let server = start(&unconfigured());
    let reserved = tidegate(server.setup(), "call res.reserve login 1/15m:source --json").json();
    let receipt = reserved["steps"][0]["results"][0]["receipt"].as_str().expect("a receipt").to_owned();
    three_ways(server.setup(), &format!("res.refund login {receipt}"), 0, "refunded");
    three_ways(server.setup(), &format!("res.refund login {receipt}"), 1, "it was before");
    three_ways(server.setup(), "res.reserve login 1/15m:source", 0, "reserved");
}

#[test]
fn windows_run_out_and_the_exit_code_says_so() {
    let server = start(&unconfigured());
    let hit = || tidegate(server.setup(), "call win.hit login:bob 2/50d");
    for _ in 0..2 {
        hit().assert(0, &["allowed"]);
    }
    hit().assert(1, &["denied; try again in", "50d"]);
}

#[test]
fn over_a_socket_and_to_a_url() {
    let server = start(&unconfigured().set("guard.socket", "guard.sock"));
    let setup = server.setup();
    tidegate(setup, "call kv.incr p c --ttl 1h --socket guard.sock").assert(0, &["1\n"]);
    let url = format!("call kv.incr p c --ttl 1h --url http://{}", server.guard);
    tidegate(setup, &url).assert(0, &["2\n"]);
    let curl = tidegate(setup, "call kv.incr p c --ttl 1h --socket guard.sock --curl");
    curl.assert(0, &["--unix-socket 'guard.sock'"]);
    let answer = bash(setup, &curl.out).json();
    assert_eq!(answer["steps"][0]["results"][0]["value"], 3, "{answer}");
}

#[test]
fn a_file_is_sent_as_it_stands() {
    let server = start(&unconfigured());
    let setup = server.setup();
    let request = message::one_step("file", serde_json::json!([message::incr("counter")]));
    write(setup, "request.json", &request.to_string());
    let first = tidegate(setup, "call --file request.json --json");
    first.assert(0, &[]);
    assert_eq!(first.json()["op"], request["op"]);
    tidegate(setup, "call --file request.json").assert(0, &["1\n", "as answered before"]);
    let curl = tidegate(setup, "call --file request.json --curl");
    assert_eq!(bash(setup, &curl.out).json()["steps"][0]["replayed"], true);

    let other = request.to_string().replace("\"by\":1", "\"by\":2");
    write(setup, "other.json", &other);
    tidegate(setup, "call --file other.json").assert(2, &["operation_conflict (409)"]);
    write(setup, "bad.json", "{\"op\":1}");
    tidegate(setup, "call --file bad.json").assert(2, &["bad_request (400)", "op"]);
    let code = tidegate(setup, "call --file bad.json --json");
    assert_eq!((code.code, &code.json()["error"]["code"]), (Some(2), &Value::from("bad_request")));
    tidegate(setup, "call --file missing.json").assert(2, &["reading missing.json"]);
}

#[test]
fn what_has_no_answer_exits_with_2() {
    let server = start(&unconfigured());
    let setup = server.setup().clone();
    for (line, said) in [
        ("call kv.get p k --family unknown", "bad_request (400)"),
        ("call kv.get p k --op short", "--op"),
        ("call win.hit p", "<WINDOW>"),
        ("call win.hit p 5/1month", "the unit must be"),
        ("call win.hit p 5/1ms", "out of bounds"),
        ("call", "say what to send"),
        ("call kv.get p k --url http://guard.example", "must be https"),
        ("call kv.get p k --socket nowhere.sock", "No such file"),
    ] {
        tidegate(&setup, line).assert(2, &[said]);
    }
    let stranger =
        setup.clone().variable("TIDEGATE_CLIENT_SECRET", "a-secret-that-this-server-does-not-know");
    tidegate(&stranger, "call kv.get p k").assert(2, &["unauthenticated (401)"]);
    server.terminate();
    tidegate(&setup, "call kv.get p k").assert(2, &["tidegate: "]);
    tidegate(&unconfigured(), "call kv.get p k").assert(2, &["no pepper", "tidegate serve"]);
}

/// The same operation for people, as JSON and by curl: one exit code, one result.
#[track_caller]
fn three_ways(setup: &Setup, line: &str, code: i32, said: &str) {
    let line = format!("call {line} --op {}", message::fresh_op());
    let people = tidegate(setup, &line);
    people.assert(code, &[said]);
    let json = tidegate(setup, &format!("{line} --json"));
    assert_eq!(json.code, Some(code), "{line}: {json:?}");
    let curl = tidegate(setup, &format!("{line} --curl"));
    curl.assert(0, &["curl -sS ", "tidegate-signature: t="]);
    let by_curl: Ran = bash(setup, &curl.out);
    by_curl.assert(0, &[]);
    assert_eq!(timeless(&by_curl.json()), timeless(&json.json()), "{line}");
}

/// An answer without what changes from one look to the next.
fn timeless(answer: &Value) -> Value {
    match answer {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "now_ms" && !name.ends_with("_ms"));
            kept.map(|(name, value)| (name.clone(), timeless(value))).collect()
        }
        Value::Array(items) => items.iter().map(timeless).collect(),
        other => other.clone(),
    }
}
