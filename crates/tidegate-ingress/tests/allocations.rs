//! What a decision allocates in the steady state, counted by the allocator.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test fails so; shared helpers")]

#[path = "defense/support.rs"]
mod support;

use std::net::IpAddr;

use http::HeaderMap;
use support::{PROXY, Site, header_map, options};
use tidegate_ingress::defense::DefenseOptions;

/// Of the access log: its segments are filled several times over before anything is counted.
const ENTRIES: usize = 16_000;
const REQUESTS: u32 = 4_000;
/// A segment of the log that is full is set aside as one that readers may share, and its texts may need a little
/// more room than those before: some allocations for a thousand requests.
const ALLOCATIONS_MAX: u64 = REQUESTS as u64 / 100;

const POLICY: &str = r#"{"mode":"enforce","rps":1000,"burst":1000,"deny_user_agents":["evilbot","re:\\bnutch\\b"],
    "deny_cidrs":["203.0.113.0/28"],"allow_cidrs":["203.0.113.1"],"deny_missing_user_agent":true,
    "routes":[{"path_prefix":"/login","rps":0.001,"burst":1}]}"#;

/// Asks for `REQUESTS` requests of some clients, and answers how many were let through.
fn ask(site: &Site, peer: &str, path: &str, headers: &HeaderMap) -> usize {
    let peer: IpAddr = peer.parse().unwrap();
    let app = site.defense.app("shop").unwrap();
    let request = |_: &u32| {
        let judged = site.defense.judge(&app, &site.defense.caller(peer, headers), "GET", path);
        judged.record.finish(200);
        judged.refusal.is_none()
    };
    (0..REQUESTS).filter(request).count()
}

#[tokio::test]
async fn a_decision_allocates_nothing() {
    let site = Site::with(DefenseOptions { access_log_entries: ENTRIES, ..options() }).await;
    site.put(POLICY).await;
    let agent = ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0");
    let long = format!("/{}?{}", "x".repeat(2000), "y".repeat(2000));
    let chain = vec!["198.51.100.7"; 70].join(", ");
    let agents = ["a".repeat(900), "b".repeat(900)];
    let agents = agents.each_ref().map(|agent| ("user-agent", agent.as_str()));
    type Headers<'a> = Vec<(&'a str, &'a str)>;
    let table: [(&str, &str, &str, Headers<'_>); 11] = [
        ("a request", "192.0.2.1", "/products/7", vec![agent]),
        ("with a query", "192.0.2.1", "/products/7?page=2", vec![agent]),
        ("no normal path", "192.0.2.1", "/a/../b//%63?x", vec![agent]),
        ("a long path", "192.0.2.1", &long, vec![agent]),
        ("two User-Agents", "192.0.2.1", "/", vec![agent, ("user-agent", "curl/8.5.0")]),
        ("two long ones", "192.0.2.1", "/", agents.into()),
        ("behind a proxy", PROXY, "/", vec![agent, ("x-forwarded-for", "192.0.2.9, 198.51.100.7")]),
        ("behind many", PROXY, "/", vec![agent, ("x-forwarded-for", &chain)]),
        ("limited", "192.0.2.1", "/login", vec![agent]),
        ("denied", "203.0.113.2", "/", vec![agent]),
        ("an evil one", "192.0.2.1", "/", vec![("user-agent", "EvilBot/1.0")]),
    ];
    let prepared = table.map(|(what, peer, path, headers)| (what, peer, path, header_map(&headers)));
    for _ in 0..2 {
        for (_, peer, path, headers) in &prepared {
            ask(&site, peer, path, headers);
        }
    }
    for (what, peer, path, headers) in &prepared {
        let counted = allocation_counter::measure(|| {
            ask(&site, peer, path, headers);
        });
        assert!(counted.count_total <= ALLOCATIONS_MAX, "{what}: {counted:?}");
    }
}

/// Negative control: the counter counts.
#[test]
fn an_allocation_is_counted() {
    assert_eq!(allocation_counter::measure(|| drop(Box::new(7))).count_total, 1);
}
