//! Every command's answer, field by field.

use serde_json::{Value, json};

use crate::support::{
    message::{digest, get, hit, incr, one_step, set, steps},
    server::Server,
};

#[test]
fn records() {
    let server = Server::start();
    let key = digest("r");
    let xx_keep = json!({"cmd": "kv.set", "key": key, "value": "3", "mode": "xx", "keep_ttl": true});
    let nothing = json!({"value": null, "ttl_ms": null});
    let table = [
        (get("r"), nothing.clone()),
        (json!({"cmd": "kv.ttl", "key": key}), json!({"ttl_ms": null})),
        (json!({"cmd": "kv.del", "key": key}), json!({"deleted": false})),
        (json!({"cmd": "kv.expire", "key": key, "ttl_ms": 5000}), json!({"updated": false})),
        (set("r", "1", "xx"), json!({"written": false, "current": null})),
        (set("r", "1", "nx"), json!({"written": true, "current": null})),
        (set("r", "2", "nx"), json!({"written": false, "current": "1"})),
        (get("r"), json!({"value": "1", "ttl_ms": "up to 600000"})),
        (set("r", "2", "xx"), json!({"written": true, "current": null})),
        (json!({"cmd": "kv.expire", "key": key, "ttl_ms": 5000}), json!({"updated": true})),
        (json!({"cmd": "kv.ttl", "key": key}), json!({"ttl_ms": "up to 5000"})),
        (xx_keep, json!({"written": true, "current": null})),
        (json!({"cmd": "kv.ttl", "key": key}), json!({"ttl_ms": "up to 5000"})),
        (set("r", "0", "always"), json!({"written": true, "current": null})),
        (get("r"), json!({"value": "0", "ttl_ms": "up to 600000"})),
        (
            json!({"cmd": "kv.set", "key": key, "value": "", "ttl_ms": 9000}),
            json!({"written": true, "current": null}),
        ),
        (get("r"), json!({"value": "", "ttl_ms": "up to 9000"})),
        (set("r", "é\n\"\u{1f40b}\0", "always"), json!({"written": true, "current": null})),
        (get("r"), json!({"value": "é\n\"\u{1f40b}\0", "ttl_ms": "up to 600000"})),
        (json!({"cmd": "kv.del", "key": key}), json!({"deleted": true})),
        (get("r"), nothing),
    ];
    check(&server, "records", &table);
}

#[test]
fn counters() {
    let server = Server::start();
    let by = |by: i64, ttl_ms: u64| json!({"cmd": "kv.incr", "key": digest("c"), "by": by, "ttl_ms": ttl_ms});
    let table = [
        (by(5, 9000), json!({"value": 5, "ttl_ms": "up to 9000"})),
        // The life applies only when the counter is created.
        (by(-7, 600_000), json!({"value": -2, "ttl_ms": "up to 9000"})),
        (
            json!({"cmd": "kv.incr", "key": digest("c"), "ttl_ms": 1000}),
            json!({"value": -1, "ttl_ms": "up to 9000"}),
        ),
        (by(0, 1000), json!({"value": -1, "ttl_ms": "up to 9000"})),
        (get("c"), json!({"value": "-1", "ttl_ms": "up to 9000"})),
    ];
    check(&server, "counters", &table);
}

#[test]
fn windows() {
    let server = Server::start();
    let cost = |key: &str, limit: u64, cost: u64| {
        let mut hit = hit(key, limit);
        hit["cost"] = json!(cost);
        hit
    };
    let of = |allowed: bool, limit: u64, used: u64, retry: Value| {
        let window =
            json!({"limit": limit, "used": used, "remaining": limit - used, "reset_ms": "up to 8640000000"});
        json!({"allowed": allowed, "windows": [window], "retry_after_ms": retry})
    };
    let wait = json!("up to 8640000000");
    let table = [
        (cost("w", 5, 0), of(true, 5, 0, json!(0))),
        (hit("w", 5), of(true, 5, 1, json!(0))),
        (cost("w", 5, 4), of(true, 5, 5, json!(0))),
        (hit("w", 5), of(false, 5, 5, wait)),
        (cost("w", 5, 0), of(true, 5, 5, json!(0))),
        (cost("w", 5, 6), of(false, 5, 5, Value::Null)),
        (hit("none", 0), of(false, 0, 0, Value::Null)),
    ];
    check(&server, "windows", &table);
    for algorithm in ["sliding", "bucket", "fixed"] {
        let window =
            json!({"key": digest(algorithm), "limit": 2, "period_ms": 3_600_000, "algorithm": algorithm});
        let hit = json!({"cmd": "win.hit", "windows": [window]});
        let results = [(); 3].map(|()| server.run("algorithms", hit.clone()));
        assert_eq!(results.each_ref().map(|result| &result["allowed"]), [true, true, false], "{algorithm}");
        assert_eq!(results.each_ref().map(|result| &result["windows"][0]["used"]), [1, 2, 2], "{algorithm}");
        let wait = results[2]["retry_after_ms"].as_u64().unwrap();
        assert!((1..=7_200_000).contains(&wait), "{algorithm}: {wait}");
    }
}

#[test]
fn all_windows_or_none() {
    let server = Server::start();
    let window = |key: &str, limit: u64| json!({"key": digest(key), "limit": limit, "period_ms": 8_640_000_000_u64, "algorithm": "fixed"});
    let both = json!({"cmd": "win.hit", "windows": [window("wide", 10), window("narrow", 1)]});
    assert_eq!(server.run("both", both.clone())["allowed"], true);
    let denied = server.run("both", both);
    assert_eq!(denied["allowed"], false);
    let used = [&denied["windows"][0]["used"], &denied["windows"][1]["used"]];
    assert_eq!(used, [1, 1], "a denial charges nothing");
}

#[test]
fn reservations() {
    let server = Server::start();
    let reserve = |cost: u64| {
        let budget =
            |key: &str, limit: u64| json!({"key": digest(key), "limit": limit, "period_ms": 3_600_000});
        json!({"cmd": "res.reserve", "budgets": [budget("day", 100), budget("hour", 5)], "target": 0, "cost": cost})
    };
    let budgets = |used: u64| {
        let budget = |limit: u64| json!({"limit": limit, "used": used, "remaining": limit - used, "reset_ms": "up to 3600000"});
        json!([budget(100), budget(5)])
    };
    let reserved = server.run("reservations", reserve(3));
    let receipt = reserved["receipt"].as_str().unwrap().to_owned();
    assert!(
        receipt.len() == 22
            && receipt.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    );
    assert_like(&reserved, &json!({"reserved": true, "receipt": receipt, "budgets": budgets(3)}));

    let refund = json!({"cmd": "res.refund", "receipt": receipt});
    let unknown = json!({"cmd": "res.refund", "receipt": "AAAAAAAAAAAAAAAAAAAAAA"});
    let wait = json!("up to 3600000");
    let table = [
        (
            reserve(3),
            json!({"reserved": false, "denied_by": [1], "retry_after_ms": wait, "budgets": budgets(3)}),
        ),
        (
            reserve(6),
            json!({"reserved": false, "denied_by": [1], "retry_after_ms": null, "budgets": budgets(3)}),
        ),
        (
            reserve(101),
            json!({"reserved": false, "denied_by": [0, 1], "retry_after_ms": null, "budgets": budgets(3)}),
        ),
        (reserve(0), json!({"reserved": true, "budgets": budgets(3)})),
        (refund.clone(), json!({"refunded": true})),
        (reserve(0), json!({"reserved": true, "budgets": budgets(0)})),
        (refund, json!({"refunded": false, "reason": "already_refunded"})),
        (unknown, json!({"refunded": false, "reason": "unknown_or_expired"})),
    ];
    check(&server, "reservations", &table);
}

#[test]
fn a_whole_response_with_every_status_of_a_step() {
    let server = Server::start();
    server.run("response", set("text", "abc", "always"));
    let step = |commands: Value| json!({"partition": digest("response"), "commands": commands});
    let mut request = steps(json!([
        step(json!([incr("k"), get("k")])),
        step(json!([hit("none", 0), incr("beside")])),
        step(json!([incr("k"), incr("text")])),
        step(json!([get("k")])),
    ]));
    request["mode"] = json!("independent");
    let answer = server.ok(&request);
    let failed = &answer["steps"][2]["error"];
    assert!(failed["message"].as_str().is_some_and(|message| !message.is_empty()), "{failed}");
    let none = json!({"limit": 0, "used": 0, "remaining": 0, "reset_ms": "up to 8640000000"});
    let expected = json!({
        "op": request["op"],
        "now_ms": "up to 9999999999999",
        "denied": true,
        "steps": [
            {"status": "ok", "replayed": false, "results": [
                {"value": 1, "ttl_ms": "up to 600000"}, {"value": "1", "ttl_ms": "up to 600000"},
            ]},
            // All commands of a denied step run.
            {"status": "denied", "replayed": false, "results": [
                {"allowed": false, "windows": [none], "retry_after_ms": null}, {"value": 1, "ttl_ms": "up to 600000"},
            ]},
            // Nothing of a failed step is written.
            {"status": "failed", "replayed": false, "results": [],
             "error": {"code": "not_an_integer", "message": failed["message"], "command": 1}},
            {"status": "ok", "replayed": false, "results": [{"value": "1", "ttl_ms": "up to 600000"}]},
        ],
    });
    assert_like(&answer, &expected);
}

#[test]
fn after_a_denied_or_failed_step_the_rest_is_skipped() {
    let server = Server::start();
    server.run("skipped", set("text", "abc", "always"));
    let step = |commands: Value| json!({"partition": digest("skipped"), "commands": commands});
    for stopping in [hit("none", 0), incr("text")] {
        let answer = server.ok(&steps(json!([step(json!([stopping])), step(json!([incr("k")]))])));
        let skipped = json!({"status": "skipped", "replayed": false, "results": []});
        assert_eq!(answer["steps"][1], skipped);
    }
    assert_eq!(server.counter("skipped", "k"), Value::Null);
}

#[test]
fn counters_at_the_edge_of_the_integers() {
    let server = Server::start();
    let max: i64 = 9_007_199_254_740_991;
    let by = |key: &str, by: i64| json!({"cmd": "kv.incr", "key": digest(key), "by": by, "ttl_ms": 60_000});
    assert_eq!(server.run("edge", by("up", max))["value"], max);
    assert_eq!(server.run("edge", by("down", -max))["value"], -max);
    server.run("edge", set("huge", "9223372036854775807", "always"));
    server.run("edge", set("fraction", "1.5", "always"));
    server.run("edge", set("plus", "+1", "always"));
    server.run("edge", set("empty", "", "always"));
    let table = [
        (by("up", 1), "overflow"),
        (by("down", -1), "overflow"),
        (by("fraction", 1), "not_an_integer"),
        (by("plus", 1), "not_an_integer"),
        (by("empty", 1), "not_an_integer"),
    ];
    for (command, code) in table {
        let step = server.ok(&one_step("edge", json!([incr("beside"), command])))["steps"][0].clone();
        assert_eq!((&step["status"], &step["error"]["code"]), (&json!("failed"), &json!(code)), "{command}");
        assert_eq!(step["error"]["command"], 1, "{command}");
    }
    let huge = server.ok(&one_step("edge", json!([by("huge", 1)])))["steps"][0]["status"].clone();
    assert_eq!(huge, "failed", "a value outside the bound is never counted on");
    assert_eq!(server.counter("edge", "beside"), Value::Null, "nothing of the steps was written");
    assert_eq!(server.counter("edge", "up"), json!(max.to_string()));
}

#[test]
fn rows_of_different_kinds_never_collide() {
    let server = Server::start();
    let budget = json!({"key": digest("k"), "limit": 5, "period_ms": 3_600_000});
    let reserve = json!({"cmd": "res.reserve", "budgets": [budget]});
    let answer = server.ok(&one_step("kinds", json!([hit("k", 5), incr("k"), reserve, hit("k", 5)])));
    let results = &answer["steps"][0]["results"];
    let seen = json!([
        results[0]["windows"][0]["used"],
        results[1]["value"],
        results[2]["budgets"][0]["used"],
        results[3]["windows"][0]["used"]
    ]);
    assert_eq!(seen, json!([1, 1, 1, 2]));
}

/// Runs the commands one after the other.
#[track_caller]
fn check(server: &Server, partition: &str, table: &[(Value, Value)]) {
    for (command, expected) in table {
        let result = server.run(partition, command.clone());
        assert!(is_like(&result, expected), "{command}\n  gave     {result}\n  expected {expected}");
    }
}

#[track_caller]
fn assert_like(value: &Value, expected: &Value) {
    assert!(is_like(value, expected), "\n  gave     {value}\n  expected {expected}");
}

/// Whether it is the same; "up to N" stands for a number from 1 to N.
fn is_like(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Number(number), Value::String(text)) => {
            let max = text.strip_prefix("up to ").and_then(|max| max.parse::<u64>().ok());
            max.is_some_and(|max| number.as_u64().is_some_and(|number| (1..=max).contains(&number)))
        }
        (Value::Array(values), Value::Array(expected)) => {
            values.len() == expected.len()
                && values.iter().zip(expected).all(|(one, other)| is_like(one, other))
        }
        (Value::Object(fields), Value::Object(expected)) => {
            let same = |(name, one)| expected.get(name).is_some_and(|other| is_like(one, other));
            fields.len() == expected.len() && fields.iter().all(same)
        }
        _ => value == expected,
    }
}

#[test]
fn likeness_tells_a_field_more_a_field_less_and_a_number_beyond() {
    let value = json!({"used": 1, "reset_ms": 7});
    assert!(is_like(&value, &json!({"used": 1, "reset_ms": "up to 7"})));
    for other in [
        json!({"used": 1}),
        json!({"used": 1, "reset_ms": "up to 6"}),
        json!({"used": 1, "reset_ms": 7, "more": 1}),
    ] {
        assert!(!is_like(&value, &other), "{other}");
    }
}
