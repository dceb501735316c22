//! A draft on the traffic that has been.

use serde_json::json;
use tidegate_ingress::defense::{DefenseOptions, ReplayError, ReplayStep, Window};

use crate::support::{NOW_MS, Site, options};

/// A few numbers in a row that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

const SEEDS: [u64; 3] = [1, 2, 3];
const REQUESTS: usize = 34_000;

/// Together 100 000 requests: what was decided live and what a replay says are the same.
#[tokio::test]
async fn live_and_replay_say_the_same() {
    let policy = r#"{"mode":"enforce","rps":0.7,"burst":4,"deny_missing_user_agent":true,
        "deny_cidrs":["192.0.2.0/28",{"cidr":"192.0.2.16","expires_at_ms":1800000030000}],
        "allow_cidrs":["192.0.2.3"],"deny_user_agents":["evil","re:bot/[0-9]$"],
        "routes":[{"path_prefix":"/login","methods":["POST"],"rps":0.2,"burst":2}]}"#;
    for seed in SEEDS {
        let many =
            DefenseOptions { access_log_entries: 2 * REQUESTS, tracked_clients_max: 100_000, ..options() };
        let site = Site::with(many).await;
        site.put(policy).await;
        let mut numbers = Numbers(seed);
        for _ in 0..REQUESTS {
            site.clock.advance(numbers.below(4));
            let client = format!("192.0.2.{}", numbers.below(200));
            let method = ["GET", "POST", "HEAD", "OPTIONS"][numbers.below(4) as usize];
            let path = ["/", "/login", "//LOGIN/x?y", "/%6cogin"][numbers.below(4) as usize];
            let agent = ["curl", "Evil", "bot/7", ""][numbers.below(16).saturating_sub(12) as usize];
            site.request("shop", &client, method, path, &[("user-agent", agent)]);
        }
        let live = site.defense.view("shop", Window::Hour).unwrap().counters;
        let replay = site.defense.replay("shop", policy.as_bytes()).unwrap();
        assert_eq!(replay.requests, REQUESTS as u64, "seed {seed}");
        assert_eq!(replay.would_block.by_reason, live.blocked, "seed {seed}");
        assert_eq!(replay.series, series_of(&site, &replay.series), "seed {seed}");
        assert!(live.blocked.values().all(|count| *count > 100), "seed {seed}: {live:?}");
        assert_eq!(
            replay,
            site.defense.replay("shop", policy.as_bytes()).unwrap(),
            "a replay changes nothing"
        );
        assert_eq!(live, site.defense.view("shop", Window::Hour).unwrap().counters);
    }
}

/// What the log says was decided live, in the same parts of the time.
fn series_of(site: &Site, parts: &[ReplayStep]) -> Vec<ReplayStep> {
    let mut series: Vec<_> =
        parts.iter().map(|part| ReplayStep { at_ms: part.at_ms, allowed: 0, would_block: 0 }).collect();
    for entry in site.defense.access_log("shop", usize::MAX).unwrap() {
        let part = series.iter_mut().rfind(|part| part.at_ms <= entry.at_ms).expect("the first one's");
        match entry.outcome {
            "blocked" => part.would_block += 1,
            _ => part.allowed += 1,
        }
    }
    series
}

#[tokio::test]
async fn the_report() {
    let site = Site::new().await;
    for _ in 0..3 {
        site.pass("192.0.2.1", 4);
        site.pass("192.0.2.2", 1);
        site.pass("2001:db8::7", 2);
        site.pass("203.0.113.65", 1);
        site.clock.advance(1000);
    }
    let replay =
        site.defense.replay("shop", br#"{"mode":"enforce","rps":1,"burst":2,"deny_cidrs":["192.0.2.2"]}"#);
    let replay = serde_json::to_value(replay.unwrap()).unwrap();
    assert_eq!(replay["from_ms"], NOW_MS);
    assert_eq!(replay["to_ms"], NOW_MS + 2000);
    assert_eq!(replay["requests"], 21, "what the firewall refused never reached the policy");
    let by_reason = json!({"rate_limit": 10, "deny_cidr": 3, "deny_user_agent": 0, "missing_user_agent": 0});
    assert_eq!(replay["would_block"], json!({"total": 13, "by_reason": by_reason}));
    let top = json!([
        {"client": "192.0.2.1", "requests": 12, "would_block": 8},
        {"client": "192.0.2.2", "requests": 3, "would_block": 3},
        {"client": "2001:db8::/64", "requests": 6, "would_block": 2},
    ]);
    assert_eq!(replay["top_clients"], top);
    let series = replay["series"].as_array().unwrap();
    let sum = |field: &str| series.iter().map(|step| step[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("allowed"), sum("would_block")), (8, 13));
    assert!(replay.get("warning").is_none());
    let empty = site.defense.replay("blog", b"{}").unwrap();
    assert_eq!((empty.requests, empty.from_ms <= empty.to_ms), (0, true));
    assert!(matches!(site.defense.replay("other", b"{}"), Err(ReplayError::NoSuchApp)));
    assert!(matches!(site.defense.replay("shop", b"{\"rps\":-1}"), Err(ReplayError::Invalid(_))));
}

#[tokio::test]
async fn a_log_that_only_knows_the_proxy_is_warned_about() {
    let site = Site::new().await;
    site.pass("198.51.100.99", 50);
    let replay = site.defense.replay("shop", br#"{"rps":1,"burst":1}"#).unwrap();
    let warning = replay.warning.unwrap();
    assert!(warning.contains("198.51.100.99") && warning.contains("50 of 50"), "{warning}");
    assert_eq!(site.defense.view("shop", Window::Hour).unwrap().suggested_rps, None);
}
