//! Every bound of a request, at it and beyond it.

use serde_json::{Value, json};

use crate::support::{
    message::{digest, fresh_op, get, hit, incr, one_step, steps},
    server::Server,
    state::{KEY, Watched},
};

/// 2^53 - 1.
const INTEGER_MAX: i64 = 9_007_199_254_740_991;
/// 120 days.
const LIFE_MS_MAX: u64 = 120 * 24 * 3_600_000;

#[test]
fn at_the_bound() {
    let server = Server::start();
    let table = [
        ("16 steps", steps(many_steps(16, 1))),
        ("8 commands in a step", steps(many_steps(1, 8))),
        ("32 commands", steps(many_steps(4, 8))),
        ("4 windows", command(hit_windows(4))),
        ("4 budgets", command(reserve_budgets(4))),
        ("2 KiB", command(set("a".repeat(2048)))),
        ("2 KiB of two-byte characters", command(set("é".repeat(1024)))),
        ("no characters", command(set(String::new()))),
        ("a life of 1 s", command(with(set("v".into()), "/ttl_ms", json!(1000)))),
        ("a life of 120 days", command(with(set("v".into()), "/ttl_ms", json!(LIFE_MS_MAX)))),
        ("a sliding period of 60 days", command(window("sliding", json!(LIFE_MS_MAX / 2)))),
        ("a fixed period of 120 days", command(window("fixed", json!(LIFE_MS_MAX)))),
        ("a bucket's of 120 days", command(window("bucket", json!(LIFE_MS_MAX)))),
        ("a period of 1 s", command(window("fixed", json!(1000)))),
        ("a limit of 0", command(hit(KEY, 0))),
        ("the largest limit", command(hit("large", INTEGER_MAX.unsigned_abs()))),
        ("a cost of 0", command(with(hit("cost", 5), "/cost", json!(0)))),
        ("the largest cost", command(with(hit("cost", 5), "/cost", json!(INTEGER_MAX)))),
        ("the largest amount", command(with(incr("large"), "/by", json!(INTEGER_MAX)))),
        ("the smallest amount", command(with(incr("small"), "/by", json!(-INTEGER_MAX)))),
        ("an id of 22", with(command(get(KEY)), "/op", json!(fresh_op()[..22]))),
        ("an id of 64", with(command(get(KEY)), "/op", json!(format!("{}{}", fresh_op(), fresh_op())))),
        (
            "three networks",
            with(command(get(KEY)), "/fairness", json!({"networks": networks(&[24, 48, 56])})),
        ),
        ("empty fairness", with(command(get(KEY)), "/fairness", json!({}))),
        ("good", with(command(get(KEY)), "/good", json!(true))),
        ("independent", with(command(get(KEY)), "/mode", json!("independent"))),
        ("a target by index", command(with(reserve_budgets(2), "/target", json!(0)))),
        ("a target by key", command(with(reserve_budgets(2), "/target", json!(digest("key 1"))))),
    ];
    for (what, request) in table {
        let reply = server.rpc(&request);
        assert_eq!(reply.status, 200, "{what}: {}", reply.text());
    }
}

#[test]
fn beyond_the_bound() {
    let server = Server::start();
    let watched = Watched::new(&server, "bounds");
    let same_key = |list: &str| {
        let mut twice = if list == "windows" { hit_windows(2) } else { reserve_budgets(2) };
        twice[list][1]["key"] = twice[list][0]["key"].clone();
        twice
    };
    let table = [
        ("steps", steps(json!([]))),
        ("steps", steps(many_steps(17, 1))),
        ("steps", steps(many_steps(5, 7))),
        ("steps[0].commands", steps(many_steps(1, 9))),
        ("steps[0].commands", command_list(json!([]))),
        ("windows", changing(hit_windows(0))),
        ("windows", changing(hit_windows(5))),
        ("windows[1].key", changing(same_key("windows"))),
        ("budgets", changing(reserve_budgets(0))),
        ("budgets", changing(reserve_budgets(5))),
        ("budgets[1].key", changing(same_key("budgets"))),
        ("target", changing(with(reserve_budgets(2), "/target", json!(2)))),
        ("target", changing(with(reserve_budgets(2), "/target", json!(-1)))),
        ("", changing(with(reserve_budgets(2), "/target", json!(digest("no budget"))))),
        ("value", changing(set("a".repeat(2049)))),
        ("value", changing(set(format!("{}a", "é".repeat(1024))))),
        ("ttl_ms", changing(with(set("v".into()), "/ttl_ms", json!(999)))),
        ("ttl_ms", changing(with(set("v".into()), "/ttl_ms", json!(0)))),
        ("ttl_ms", changing(with(set("v".into()), "/ttl_ms", json!(LIFE_MS_MAX + 1)))),
        ("ttl_ms", changing(with(set("v".into()), "/ttl_ms", json!(i64::MAX)))),
        ("ttl_ms", changing(with(set("v".into()), "/ttl_ms", json!(-1)))),
        ("ttl_ms", changing(with(incr(KEY), "/ttl_ms", json!(999)))),
        ("ttl_ms", changing(json!({"cmd": "kv.expire", "key": digest(KEY), "ttl_ms": 999}))),
        ("windows[0].period_ms", changing(window("sliding", json!(LIFE_MS_MAX / 2 + 1)))),
        ("windows[0].period_ms", changing(window("fixed", json!(LIFE_MS_MAX + 1)))),
        ("windows[0].period_ms", changing(window("bucket", json!(LIFE_MS_MAX + 1)))),
        ("windows[0].period_ms", changing(window("fixed", json!(999)))),
        ("windows[0].period_ms", changing(window("fixed", json!(0)))),
        (
            "windows[0].limit",
            changing(with(window("fixed", json!(1000)), "/windows/0/limit", json!(INTEGER_MAX + 1))),
        ),
        ("windows[0].limit", changing(with(window("fixed", json!(1000)), "/windows/0/limit", json!(-1)))),
        (
            "budgets[0].period_ms",
            changing(with(reserve_budgets(1), "/budgets/0/period_ms", json!(LIFE_MS_MAX + 1))),
        ),
        ("budgets[0].limit", changing(with(reserve_budgets(1), "/budgets/0/limit", json!(-1)))),
        ("cost", changing(with(hit(KEY, 5), "/cost", json!(-1)))),
        ("cost", changing(with(hit(KEY, 5), "/cost", json!(INTEGER_MAX + 1)))),
        ("cost", changing(with(hit(KEY, 5), "/cost", json!(i64::MIN)))),
        ("cost", changing(with(reserve_budgets(1), "/cost", json!(-1)))),
        ("by", changing(with(incr(KEY), "/by", json!(INTEGER_MAX + 1)))),
        ("by", changing(with(incr(KEY), "/by", json!(-INTEGER_MAX - 1)))),
        ("by", changing(with(incr(KEY), "/by", json!(9_223_372_036_854_775_808_u64)))),
        ("op", with(changing(incr(KEY)), "/op", json!(fresh_op()[..21]))),
        ("op", with(changing(incr(KEY)), "/op", json!("a".repeat(65)))),
        ("op", with(changing(incr(KEY)), "/op", json!(format!("{}.", &fresh_op()[..21])))),
        ("op", with(changing(incr(KEY)), "/op", json!(""))),
        ("family", with(changing(incr(KEY)), "/family", json!("unknown"))),
        ("family", with(changing(incr(KEY)), "/family", json!("Proxy"))),
        ("family", with(changing(incr(KEY)), "/family", json!(""))),
        ("family", with(changing(incr(KEY)), "/family", json!("a".repeat(65)))),
        ("mode", with(changing(incr(KEY)), "/mode", json!("parallel"))),
        (
            "fairness.networks",
            with(changing(incr(KEY)), "/fairness", json!({"networks": networks(&[24, 48, 56, 24])})),
        ),
        (
            "fairness.networks[1].prefix",
            with(changing(incr(KEY)), "/fairness", json!({"networks": networks(&[24, 24])})),
        ),
        (
            "fairness.networks[0].prefix",
            with(changing(incr(KEY)), "/fairness", json!({"networks": networks(&[64])})),
        ),
        (
            "fairness.networks[0].prefix",
            with(changing(incr(KEY)), "/fairness", json!({"networks": networks(&[304])})),
        ),
        ("keep_ttl", changing(keep_ttl("always"))),
        ("keep_ttl", changing(keep_ttl("nx"))),
    ];
    for (place, request) in table {
        let reply = server.rpc(&request);
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{place}: {request}");
        let message = reply.message();
        assert!(message.contains(place) && message.len() < 300, "{place}: {message}");
    }
    watched.assert_unchanged("requests out of bounds");
}

/// A good step before the bad one does not run either.
#[test]
fn one_place_out_of_bounds_refuses_the_whole_request() {
    let server = Server::start();
    let watched = Watched::new(&server, "whole");
    let last = json!({"partition": digest("whole"), "commands": [incr("other"), hit_windows(0)]});
    let first = json!({"partition": digest("whole"), "commands": [incr(KEY)]});
    let reply = server.rpc(&steps(json!([first, first, last])));
    assert_eq!(reply.status, 400, "{}", reply.text());
    assert!(reply.message().starts_with("steps[2].commands[1].windows: "), "{}", reply.message());
    watched.assert_unchanged("a fault in the third step");
    assert_eq!(server.counter("whole", "other"), Value::Null);
}

fn command(command: Value) -> Value {
    one_step("at the bound", json!([command]))
}

/// A request that would change the watched rows if it ran.
fn changing(command: Value) -> Value {
    command_list(json!([incr(KEY), command]))
}

fn command_list(commands: Value) -> Value {
    one_step("bounds", commands)
}

fn many_steps(count: usize, commands: usize) -> Value {
    let commands: Vec<_> = (0..commands).map(|index| get(&format!("key {index}"))).collect();
    (0..count).map(|_| json!({"partition": digest("many"), "commands": commands})).collect()
}

fn hit_windows(count: usize) -> Value {
    let window = |index| json!({"key": digest(&format!("key {index}")), "limit": 5, "period_ms": 60_000});
    json!({"cmd": "win.hit", "windows": (0..count).map(window).collect::<Vec<_>>()})
}

fn reserve_budgets(count: usize) -> Value {
    let budget = |index| json!({"key": digest(&format!("key {index}")), "limit": 5, "period_ms": 60_000});
    json!({"cmd": "res.reserve", "budgets": (0..count).map(budget).collect::<Vec<_>>()})
}

fn window(algorithm: &str, period_ms: Value) -> Value {
    let key = digest(&format!("{algorithm} {period_ms}"));
    json!({"cmd": "win.hit", "windows": [
        {"key": key, "limit": 5, "period_ms": period_ms, "algorithm": algorithm},
    ]})
}

fn set(value: String) -> Value {
    json!({"cmd": "kv.set", "key": digest("set"), "value": value, "ttl_ms": 60_000})
}

fn keep_ttl(mode: &str) -> Value {
    json!({"cmd": "kv.set", "key": digest(KEY), "value": "v", "mode": mode, "keep_ttl": true})
}

fn networks(prefixes: &[u64]) -> Value {
    prefixes.iter().map(|prefix| json!({"prefix": prefix, "digest": digest("network")})).collect()
}

/// `request` with another value at a JSON pointer, whose last part may be new.
fn with(mut request: Value, pointer: &str, value: Value) -> Value {
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer begins with a slash");
    let parent = request.pointer_mut(parent).expect("the request has it");
    parent[field] = value;
    request
}
