//! Requests, one by one: order, answers, addresses, state over changes.

use http::HeaderMap;
use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::{Value, json};
use tidegate_core::forwarded::Source;
use tidegate_ingress::defense::{DefenseOptions, Window};

use crate::support::{NOW_MS, PROXY, Site, header_map, networks, options, setup};

const FIVE: &str = r#"{"mode":"enforce","rps":0.083333,"burst":5}"#;

#[tokio::test]
async fn a_refusal_and_its_headers() {
    let site = Site::new().await;
    site.put(r#"{"mode":"enforce","rps":0.5,"burst":1,"deny_cidrs":["203.0.113.0/29"]}"#).await;
    assert!(site.ask("192.0.2.1").refusal.is_none());
    let limited = site.ask("192.0.2.1").refusal.unwrap();
    let denied = site.ask("203.0.113.1").refusal.unwrap();
    let shown = |refusal: &tidegate_ingress::defense::Refusal, accept: &str| {
        let request = header_map(&[("accept", accept), ("cookie", "a=b")]);
        let body = refusal.body(request.get("accept"));
        let response = refusal.response_in(HeaderMap::new(), body.clone());
        let in_place = refusal.response_in(request, body);
        assert_eq!(
            (in_place.status(), in_place.headers(), in_place.body()),
            (response.status(), response.headers(), response.body())
        );
        let header =
            |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let body = String::from_utf8(response.body().to_vec()).unwrap();
        assert!(body.len() < 300);
        (response.status().as_u16(), ["retry-after", "ratelimit", "ratelimit-policy"].map(header), body)
    };
    let (status, headers, body) = shown(&limited, "text/html,application/json;q=0.9");
    assert_eq!((status, body.as_str()), (429, "Too many requests. Try again in 2 seconds.\n"));
    assert_eq!(
        headers.map(Option::unwrap),
        ["2".to_owned(), r#""client";r=0;t=2"#.to_owned(), r#""client";q=1;w=2"#.to_owned()]
    );
    for accept in ["application/json", "application/problem+json, text/html", "*/*, application/json"] {
        let body: Value = serde_json::from_str(&shown(&limited, accept).2).unwrap();
        assert_eq!(body, json!({"error": {"code": "rate_limited", "retry_after_seconds": 2}}), "{accept}");
    }
    let (status, headers, body) = shown(&denied, "*/*");
    assert_eq!((status, headers, body.as_str()), (403, [None, None, None], "Forbidden.\n"));
    let body: Value = serde_json::from_str(&shown(&denied, "application/json").2).unwrap();
    assert_eq!(body, json!({"error": {"code": "denied"}}));
}

#[tokio::test]
async fn the_firewall_comes_first_and_the_policy_of_its_own_app_next() {
    let site = Site::new().await;
    site.put(r#"{"mode":"enforce","deny_cidrs":["192.0.2.0/24"],"allow_cidrs":["203.0.113.70"]}"#).await;
    let reason = |app: &str, client: &str| {
        let judged = site.request(app, client, "GET", "/", &[("user-agent", "x")]);
        judged.refusal.map_or("", |refusal| refusal.reason())
    };
    let table = [
        ("shop", "203.0.113.70", "firewall"),
        ("blog", "203.0.113.70", "firewall"),
        ("shop", "203.0.113.66", ""),
        ("shop", "192.0.2.1", "deny_cidr"),
        ("blog", "192.0.2.1", ""),
        ("shop", "203.0.113.1", ""),
        ("shop", "::ffff:192.0.2.1", "deny_cidr"),
        ("shop", "64:ff9b::192.0.2.1", "deny_cidr"),
    ];
    for (app, client, expected) in table {
        assert_eq!(reason(app, client), expected, "{app} {client}");
    }
    let traffic = site.defense.traffic("shop", Window::Minute).unwrap();
    assert_eq!(
        (traffic.firewall, traffic.counters.allowed, traffic.counters.blocked["deny_cidr"]),
        (1, 2, 3)
    );
}

#[tokio::test]
async fn whose_request_it_is() {
    let site = Site::new().await;
    site.put(FIVE).await;
    let through = |peer: &str, n: usize, line: &str| {
        let line = line.replace("{i}", &n.to_string());
        site.request("shop", peer, "GET", "/", &[("x-forwarded-for", &line)]).refusal.is_none()
    };
    let count = |peer: &str, line: &str| (0..20).filter(|n| through(peer, *n, line)).count();
    assert_eq!(count(PROXY, "203.0.113.{i}, 192.0.2.7"), 5, "a forged left end buys nothing");
    assert!(through(PROXY, 0, "203.0.113.1"), "whose address was named has lost nothing");
    assert_eq!(count("203.0.113.9", "192.0.2.{i}"), 5, "a peer that is not trusted");
    assert_eq!(count(PROXY, "192.0.2.9:51{i}"), 5, "ports");
    assert_eq!(count(PROXY, "192.0.2.{i}, garbage-{i}"), 5, "garbage: the proxy's own bucket");
    assert_eq!(count(PROXY, "fe80::1%eth{i}"), 5, "zones");
    let mut registry = Registry::default();
    site.defense.register_metrics(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    assert!(text.contains("http_forwarded_unreadable_total 20"), "{text}");
}

#[tokio::test]
async fn only_the_configured_header_is_read() {
    let forwarded = DefenseOptions { forwarded: Source::Forwarded, ..options() };
    let headers = header_map(&[("x-forwarded-for", "192.0.2.1"), ("forwarded", "for=192.0.2.2")]);
    let proxy = PROXY.parse().unwrap();
    for (options, client) in [(options(), "192.0.2.1"), (forwarded, "192.0.2.2")] {
        let site = Site::with(options).await;
        assert_eq!(site.defense.caller(proxy, &headers).client().ip().to_string(), client);
        assert_eq!(site.defense.caller(proxy, &HeaderMap::new()).client().ip().to_string(), PROXY);
    }
    let lines = header_map(&[
        ("x-forwarded-for", "203.0.113.66"),
        ("x-forwarded-for", "192.0.2.7"),
        ("x-forwarded-for", "198.51.100.11"),
    ]);
    assert_eq!(Site::new().await.defense.caller(proxy, &lines).client().ip().to_string(), "192.0.2.7");
}

#[tokio::test]
async fn user_agents() {
    let site = Site::new().await;
    site.put(
        r#"{"mode":"enforce","deny_missing_user_agent":true,"deny_user_agents":["evil","re:^spbot"],
                 "allow_cidrs":["198.51.100.5"]}"#,
    )
    .await;
    let table: [(&[(&str, &str)], &str); 8] = [
        (&[], "missing_user_agent"),
        (&[("user-agent", "")], "missing_user_agent"),
        (&[("user-agent", "    ")], "missing_user_agent"),
        (&[("user-agent", "-")], ""),
        (&[("user-agent", "curl"), ("user-agent", "")], "missing_user_agent"),
        (&[("user-agent", "curl"), ("user-agent", "wget")], ""),
        (&[("user-agent", "curl"), ("user-agent", "Evil/1")], "deny_user_agent"),
        (&[("user-agent", "curl"), ("user-agent", "SPBOT/1")], "deny_user_agent"),
    ];
    for (headers, expected) in table {
        let judged = site.request("shop", "192.0.2.1", "GET", "/", headers);
        assert_eq!(judged.refusal.map_or("", |refusal| refusal.reason()), expected, "{headers:?}");
    }
    assert!(site.request("shop", "198.51.100.5", "GET", "/", &[]).refusal.is_none());
}

#[tokio::test]
async fn every_spelling_of_a_path_has_one_budget() {
    let targets = [
        "/login",
        "//login",
        "/./login",
        "/x/../login",
        "/login/",
        "/LOGIN",
        "/%6Cogin",
        "/%2e/login",
        "/login;v=1",
        "/login%2F",
        "/login%00",
        "/login?x=1",
        "/login#f",
        "\\\\login",
        "http://other.example/login",
    ];
    let site = Site::new().await;
    site.put(
        r#"{"mode":"enforce","routes":[{"path_prefix":"/login","methods":["POST"],"rps":0.05,"burst":3}]}"#,
    )
    .await;
    for (n, target) in targets.into_iter().enumerate() {
        let post = site.request("shop", "192.0.2.1", "POST", target, &[]);
        assert_eq!(post.refusal.is_none(), n < 3, "{target}");
    }
    assert!(site.request("shop", "192.0.2.1", "GET", "/login", &[]).refusal.is_none());
    assert!(site.request("shop", "192.0.2.1", "POST", "/", &[]).refusal.is_none());
}

#[tokio::test]
async fn state_outlives_changes() {
    let site = Site::new().await;
    let limit =
        |burst: u64, more: &str| format!(r#"{{"mode":"enforce","rps":0.166667,"burst":{burst}{more}}}"#);
    site.put(&limit(10, "")).await;
    assert_eq!(site.pass("192.0.2.1", 11), "..........x");
    for _ in 0..100 {
        site.defense.reconfigure(options());
    }
    site.put(&limit(10, r#","deny_cidrs":["203.0.113.9"]"#)).await;
    assert_eq!(site.pass("192.0.2.1", 1), "x", "after reloads and a new deny entry");
    site.put(&limit(20, "")).await;
    assert_eq!(site.pass("192.0.2.1", 11), "..........x", "raised");
    site.put(&limit(5, "")).await;
    let refusal = site.ask("192.0.2.1").refusal.unwrap();
    assert!(refusal.retry_after_s().unwrap() <= 60, "lowered");
    let counters = site.defense.view("shop", Window::Hour).unwrap().counters;
    assert_eq!((counters.allowed, counters.blocked["rate_limit"]), (20, 4));
    let invalid = site.defense.put_policy("shop", None, b"{\"rps\":-1}", "operator").await;
    assert!(invalid.is_err() && site.pass("192.0.2.1", 1) == "x", "an invalid policy changes nothing");

    let moved = DefenseOptions { apps: vec![setup("shop", false)], ..options() };
    site.defense.reconfigure(moved);
    assert!(site.defense.app("blog").is_none());
    let view = site.defense.view("shop", Window::Hour).unwrap();
    assert_eq!(view.status.condition.as_str(), "NoRoutes");
}

#[tokio::test]
async fn log_only_counts_what_enforcing_refuses() {
    let site = Site::new().await;
    let document =
        |mode: &str| format!(r#"{{"mode":"{mode}","rps":1,"burst":2,"deny_cidrs":["203.0.113.1"]}}"#);
    site.put(&document("log_only")).await;
    assert_eq!(site.pass("192.0.2.1", 5), ".....");
    assert_eq!(site.pass("203.0.113.1", 2), "..");
    site.put(&document("enforce")).await;
    assert_eq!(site.pass("192.0.2.1", 1), "x", "the tokens were real");
    site.put(&document("off")).await;
    assert_eq!(site.pass("192.0.2.1", 2), "..");
    let counters = site.defense.view("shop", Window::Minute).unwrap().counters;
    let shown = serde_json::to_value(&counters).unwrap();
    let expected = json!({
        "window": "minute", "allowed": 4, "fail_open": 0,
        "would_block": {"rate_limit": 3, "deny_cidr": 2, "deny_user_agent": 0, "missing_user_agent": 0},
        "blocked": {"rate_limit": 1, "deny_cidr": 0, "deny_user_agent": 0, "missing_user_agent": 0},
    });
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn windows_forget() {
    let site = Site::new().await;
    site.pass("192.0.2.1", 3);
    let allowed = |window| site.defense.view("shop", window).unwrap().counters.allowed;
    let table = [(0, [3, 3, 3]), (60_000, [0, 3, 3]), (3_600_000, [0, 0, 3]), (86_400_000, [0, 0, 0])];
    let mut since_ms = 0;
    for (at_ms, expected) in table {
        site.clock.advance(at_ms - since_ms);
        since_ms = at_ms;
        assert_eq!(Window::ALL.map(allowed), expected, "after {at_ms} ms");
    }
    for (window, steps) in [(Window::Minute, 60), (Window::Hour, 60), (Window::Day, 96)] {
        let traffic = site.defense.traffic("shop", window).unwrap();
        assert_eq!(traffic.series.len(), steps);
        assert!(traffic.series.windows(2).all(|two| two[1].at_ms - two[0].at_ms == traffic.step_ms));
        assert!(traffic.series.last().unwrap().at_ms <= NOW_MS + since_ms);
    }
}

#[tokio::test]
async fn metrics_have_as_many_series_however_many_clients_there_are() {
    let site = Site::new().await;
    site.put(FIVE).await;
    let mut registry = Registry::default();
    site.defense.register_metrics(&mut registry);
    let text = || {
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    };
    let before = text().lines().count();
    for n in 0..3000_u32 {
        let client = std::net::Ipv4Addr::from_bits(n * 7919).to_string();
        let (path, agent) = (format!("/{n}"), format!("agent-{n}"));
        site.request("shop", &client, "GET", &path, &[("user-agent", &agent)]);
    }
    let after = text();
    assert_eq!(after.lines().count(), before);
    assert!(before < 60, "{before}");
    assert!(
        after.contains(r#"http_abuse_requests_total{app="shop",outcome="allowed",reason=""} 3000"#),
        "{after}"
    );
    assert!(!after.contains("agent-"));
}

#[tokio::test]
async fn the_access_log_tells_no_client() {
    let site = Site::new().await;
    site.put(r#"{"mode":"enforce","rps":1,"burst":1}"#).await;
    let first = site.request("shop", "192.0.2.77", "GET", "/a?token=secret", &[("user-agent", "agent-77")]);
    first.record.finish(204);
    site.request("shop", "192.0.2.77", "POST", "/b", &[("user-agent", "agent-77")]);
    let log = site.defense.access_log("shop", 10).unwrap();
    let shown = serde_json::to_value(&log).unwrap();
    let expected = json!([
        {"at_ms": NOW_MS, "method": "POST", "path": "/b", "status": 429, "outcome": "blocked", "reason": "rate_limit"},
        {"at_ms": NOW_MS, "method": "GET", "path": "/a", "status": 204, "outcome": "allowed", "reason": null},
    ]);
    assert_eq!(shown, expected);
    assert_eq!(site.defense.access_log("shop", 1).unwrap().len(), 1);
    site.clock.advance(900_001);
    assert!(site.defense.access_log("shop", 10).unwrap().is_empty(), "after its minutes");
    let debug = format!("{:?} {first:?}", networks(&["192.0.2.77"]));
    assert!(!debug.contains("192.0.2.77"), "{debug}");
}

#[tokio::test]
async fn a_proxy_in_front_that_nobody_named() {
    let site = Site::with(DefenseOptions { trusted: networks(&[]), ..options() }).await;
    let condition = || site.defense.view("shop", Window::Hour).unwrap().status.condition.as_str();
    for n in 0..20 {
        assert_eq!(condition(), "LogOnly", "after {n}");
        site.request("shop", PROXY, "GET", "/", &[("x-forwarded-for", &format!("192.0.2.{n}"))]);
    }
    assert_eq!(condition(), "ClientIPHidden");
    assert_eq!(site.defense.view("shop", Window::Hour).unwrap().suggested_rps, None);
    site.defense.reconfigure(options());
    site.request("shop", PROXY, "GET", "/", &[("x-forwarded-for", "192.0.2.1")]);
    assert_eq!(condition(), "LogOnly", "now it is trusted");
}
