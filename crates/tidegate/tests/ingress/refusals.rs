//! What a refused request is answered, and what a change of the policy keeps.

use serde_json::{Value, json};

use crate::{
    rig::{Rig, get},
    support::{eventually, wire::Reply},
};

fn start() -> Rig {
    Rig::with(|setup| setup.set("ingress.trusted_proxies", "127.0.0.1"))
}

fn ask(rig: &Rig, client: &str, path: &str, accept: &str) -> Reply {
    rig.get(path, &[("X-Forwarded-For", client), ("Accept", accept), ("User-Agent", "curl/8")])
}

#[test]
fn headers_and_bodies_by_what_is_accepted() {
    let rig = start();
    rig.put(
        r#"{"mode":"enforce","rps":0.01,"burst":2,"deny_cidrs":["203.0.113.0/24"],
        "routes":[{"path_prefix":"/login","rps":0.005,"burst":1}]}"#,
    );
    for status in [200, 200, 429] {
        assert_eq!(ask(&rig, "192.0.2.1", "/echo", "*/*").status, status);
    }
    let is_wait =
        |text: &str, most: u64| text.parse::<u64>().is_ok_and(|seconds| (1..=most).contains(&seconds));
    let json_types = [
        "application/json",
        "application/problem+json",
        "application/json;q=0.9, text/html",
        "*/*, application/json",
    ];
    for accept in json_types {
        let limited = ask(&rig, "192.0.2.1", "/echo", accept);
        let error = &limited.json()["error"];
        assert_eq!((limited.status, &error["code"]), (429, &json!("rate_limited")), "{accept}");
        assert!(is_wait(&error["retry_after_seconds"].to_string(), 100), "{accept}: {error}");
        let denied = ask(&rig, "203.0.113.1", "/echo", accept);
        assert_eq!((denied.status, denied.json()), (403, json!({"error": {"code": "denied"}})), "{accept}");
    }
    for accept in [
        "text/html",
        "*/*",
        "",
        "text/plain, application/json",
        "application/json;q=0",
        "application/json; q=0.000, text/plain",
        "image/png",
        "text/html,application/json;q=0.9",
    ] {
        let limited = ask(&rig, "192.0.2.1", "/echo", accept);
        assert!(
            limited.text().starts_with("Too many requests. Try again in "),
            "{accept}: {}",
            limited.text()
        );
        assert_eq!(limited.header("content-type"), Some("text/plain; charset=utf-8"), "{accept}");
        let wait = limited.header("retry-after").unwrap();
        assert!(is_wait(wait, 100), "{wait}");
        assert_eq!(limited.header("ratelimit"), Some(&*format!("\"client\";r=0;t={wait}")), "{accept}");
        assert_eq!(limited.header("ratelimit-policy"), Some("\"client\";q=2;w=200"), "{accept}");
        let denied = ask(&rig, "203.0.113.1", "/echo", accept);
        assert_eq!((denied.status, denied.text().as_str()), (403, "Forbidden.\n"), "{accept}");
        let limits = ["retry-after", "ratelimit", "ratelimit-policy"].map(|header| denied.header(header));
        assert_eq!(limits, [None; 3], "{accept}");
    }
    // The limit that waits longest is the one that is told.
    assert_eq!(ask(&rig, "192.0.2.2", "/login", "").status, 200);
    let limited = ask(&rig, "192.0.2.2", "/login", "");
    assert_eq!(limited.header("ratelimit-policy"), Some("\"route\";q=1;w=200"));
    assert!(is_wait(limited.header("retry-after").unwrap(), 200));
    assert_eq!(rig.backend.whole().len(), 3, "refused requests never reach the app");
}

#[test]
fn log_only_spends_real_tokens_and_refuses_nothing() {
    let rig = start();
    let policy = |mode: &str| format!(r#"{{"mode":"{mode}","rps":0.001,"burst":3}}"#);
    rig.put(&policy("log_only"));
    let statuses = |count| (0..count).map(|_| ask(&rig, "192.0.2.1", "/echo", "").status).collect::<Vec<_>>();
    assert_eq!(statuses(5), [200; 5]);
    assert_eq!((rig.counted("allowed"), rig.counted("would_block")), (json!(3), json!({"rate_limit": 2})));
    assert_eq!(
        rig.server
            .metric(r#"http_abuse_requests_total{app="shop",outcome="would_block",reason="rate_limit"}"#),
        2
    );
    rig.put(&policy("enforce"));
    assert_eq!(statuses(1), [429], "what was spent stays spent");
    rig.put(&policy("off"));
    assert_eq!(statuses(2), [200; 2]);
}

#[test]
fn what_was_spent_outlives_changes() {
    let rig = start();
    let statuses = |client: &str, path: &str, count: usize| -> Vec<u16> {
        (0..count).map(|_| ask(&rig, client, path, "").status).collect()
    };
    let policy = |burst: u32, more: &str| {
        format!(
            r#"{{"mode":"enforce","rps":0.001,"burst":{burst},"routes":[{{"path_prefix":"/login","rps":0.001,"burst":1}}]{more}}}"#
        )
    };
    rig.put(&policy(3, ""));
    assert_eq!(statuses("192.0.2.1", "/login", 2), [200, 429]);
    assert_eq!(statuses("192.0.2.1", "/", 3), [200, 200, 429]);
    // Another field, another entry of a list, a reload: nothing is refilled.
    rig.put(&policy(3, r#","deny_cidrs":["203.0.113.1"],"deny_user_agents":["evil"]"#));
    rig.server.signal(rustix::process::Signal::HUP);
    rig.server.wait_for_log("configuration reloaded");
    assert_eq!(statuses("192.0.2.1", "/", 2), [429, 429]);
    // Two more tokens are two more requests; fewer leave an empty bucket.
    rig.put(&policy(5, ""));
    assert_eq!(statuses("192.0.2.1", "/", 3), [200, 200, 429]);
    assert_eq!(statuses("192.0.2.1", "/login", 1), [429]);
    rig.put(&policy(1, ""));
    assert_eq!(statuses("192.0.2.1", "/", 1), [429]);
    rig.put(r#"{"mode":"enforce","rps":1000,"burst":1}"#);
    eventually("it refills at the new rate", || (statuses("192.0.2.1", "/", 1) == [200]).then_some(()));
}

/// One line a second for each app and reason, with a count, whatever the flood.
#[test]
fn refusals_are_logged_with_a_count() {
    let rig = start();
    rig.put(r#"{"mode":"enforce","rps":0.001,"burst":1,"deny_cidrs":["203.0.113.0/24"]}"#);
    let mut wire = rig.wire();
    let mut flood = |client: &str, count: u64| {
        for _ in 0..count {
            wire.exchange(&get("/echo", &[("X-Forwarded-For", client)])).unwrap();
        }
    };
    flood("192.0.2.1", 501);
    flood("203.0.113.1", 300);
    let counts = |reason: &str| -> Vec<u64> {
        let log = rig.server.log();
        let lines = log.lines().filter(|line| line.contains("requests refused") && line.contains(reason));
        lines.map(|line| number_after(line, "count")).collect()
    };
    for (reason, refused) in [("rate_limit", 500), ("deny_cidr", 300)] {
        eventually(reason, || (counts(reason).iter().sum::<u64>() == refused).then_some(()));
        assert!(counts(reason).len() <= 30, "{reason}: a line a second, not one each: {:?}", counts(reason));
    }
    assert!(!rig.server.log().contains("203.0.113.1"), "no address in a log");
}

/// The number of a field, in a line of text or of JSON.
fn number_after(line: &str, field: &str) -> u64 {
    let (_, rest) = line.split_once(field).unwrap_or_else(|| panic!("{line}"));
    let digits: String =
        rest.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn a_proxy_that_nobody_named_is_told_in_the_replay() {
    let rig = start();
    for number in 0..150 {
        let chain = format!("203.0.113.{number}, 198.51.100.99");
        assert_eq!(rig.get("/echo", &[("X-Forwarded-For", &chain)]).status, 200);
    }
    let replay = rig.api("POST", "/apps/shop/abuse/replay", r#"{"rps":1,"burst":100}"#).json();
    let warning = replay["warning"].as_str().unwrap();
    assert!(warning.contains("198.51.100.99") && warning.contains("150 of 150"), "{warning}");
    assert_eq!(replay["top_clients"][0]["client"], "198.51.100.99");
    assert_eq!(rig.view()["suggested_rps"], Value::Null);
}
