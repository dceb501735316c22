//! What operators are told: how everything stands, and what other operators did.

use serde_json::{Value, json};

use crate::support::{
    message::digest,
    spending::{DAY_MS, budgeted, carrying, looks, split},
};

#[test]
fn the_state_says_exactly_this() {
    let server = split(1_000, "password=100,proxy=900").start();
    server.ok(&looks("proxy", 32));
    server.ok(&carrying(looks("password", 5), "source", "it"));
    let state = server.state();
    let (now_ms, next_reset_ms) = (&state["now_ms"], &state["next_reset_ms"]);
    let expected = json!({
        "now_ms": now_ms,
        "next_reset_ms": next_reset_ms,
        "fence": {"stopped": false, "reason": null, "since_ms": null},
        "families": {
            "offline": family(0, 0, 0, 0, "stopped", false),
            "password": family(100, 5, 75, 20, "open", false),
            "proxy": family(900, 32, 868, 0, "open", false),
            "replay": family(0, 0, 0, 0, "stopped", false),
        },
    });
    assert_eq!(state, expected);
    let (now_ms, next_reset_ms) = (now_ms.as_u64().unwrap(), next_reset_ms.as_u64().unwrap());
    assert!((now_ms + next_reset_ms).is_multiple_of(DAY_MS) && next_reset_ms <= DAY_MS, "{state}");

    // Stop and resume answer the same.
    let stopped = server.order("/control/stop", r#"{"reason":"a drill"}"#);
    let since_ms = &stopped["fence"]["since_ms"];
    assert_eq!(stopped["fence"], json!({"stopped": true, "reason": "a drill", "since_ms": since_ms}));
    assert!(since_ms.as_u64().unwrap() >= now_ms);
    assert_eq!(without_times(&stopped)["families"], expected["families"]);
    assert_eq!(without_times(&server.state()), without_times(&stopped));
    let resumed = server.order("/control/resume", "");
    assert_eq!(resumed["fence"], json!({"stopped": false, "reason": null, "since_ms": null}));
    assert_eq!(resumed["families"]["proxy"], family(900, 0, 900, 0, "open", false));
    assert_eq!(without_times(&server.state()), without_times(&resumed));
}

#[test]
fn the_audit_is_newest_first_and_says_who_what_and_why() {
    let server = budgeted(100).start();
    let (it, key) = (digest("it"), digest("key"));
    server.order("/control/stop", r#"{"reason":"a drill"}"#);
    server.order("/control/resume", "");
    server.order("/control/resume", r#"{"families":["proxy","offline"]}"#);
    server.order("/control/fairness/reset", r#"{"family":"proxy"}"#);
    let identity = json!({"family": "proxy", "axis": "network/24", "identity": it});
    assert_eq!(server.order("/control/fairness/reset", &identity.to_string()), json!({"reset": true}));
    let forget = json!({"partition": it, "key": key});
    assert_eq!(server.order("/control/forget", &forget.to_string()), json!({"forgotten": 0}));
    let mut expected = [
        json!({"action": "stop", "reason": "a drill"}),
        json!({"action": "resume"}),
        json!({"action": "resume", "family": "proxy"}),
        json!({"action": "resume", "family": "offline"}),
        json!({"action": "fairness_reset", "family": "proxy"}),
        json!({"action": "fairness_reset", "family": "proxy", "axis": "network/24", "identity": it}),
        json!({"action": "forget", "identity": it, "key": key}),
    ];
    expected.reverse();
    let server = server.kill_and_restart();
    let entries = server.audit();
    let times: Vec<_> = entries.iter().map(|entry| entry["at_ms"].as_u64().unwrap()).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older), "{times:?}");
    for (entry, at_ms) in expected.iter_mut().zip(times) {
        entry["at_ms"] = json!(at_ms);
        entry["from"] = json!("127.0.0.1");
    }
    assert_eq!(entries, expected);

    for (query, count) in [("", 7), ("?", 7), ("?limit=1", 1), ("?limit=7", 7), ("?limit=1000", 7)] {
        let reply = server.control("GET", &format!("/control/audit{query}"), "");
        assert_eq!(reply.json()["entries"], json!(expected[..count]), "{query}");
    }
    for query in
        ["limit=0", "limit=1001", "limit=-1", "limit=", "limit=a", "limit=1&limit=2", "n=1", "limit=1&n=1"]
    {
        let reply = server.control("GET", &format!("/control/audit?{query}"), "");
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{query}");
        assert!(reply.message().contains("limit=N, with N from 1 to 1000"), "{}", reply.message());
    }
}

fn family(budget: u64, used: u64, open: u64, reserve: u64, state: &str, warned: bool) -> Value {
    json!({"budget": budget, "used": used, "open_remaining": open, "reserve_remaining": reserve,
           "state": state, "warned": warned})
}

fn without_times(state: &Value) -> Value {
    let mut state = state.clone();
    for name in ["now_ms", "next_reset_ms"] {
        state[name] = Value::Null;
    }
    state
}
