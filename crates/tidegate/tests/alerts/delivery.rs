//! What a receiver gets.

use serde_json::Value;

use crate::{
    raise::{NAME, STORED, begin_to_fill, fill},
    receiver::{Post, Receiver, SECRET, TARGET},
    support::{eventually, message::digest, server},
};

#[test]
fn each_alert_comes_signed_and_in_order_and_is_counted_whatever_is_logged() {
    let receiver = Receiver::answering(&["204 No Content"]);
    let server = receiver.of_alerts().set("log.level", "off").start();
    let zero = kinds().map(|kind| server.metric(&format!("tidegate_alerts_total{{kind=\"{kind}\"}}")));
    assert_eq!(zero.collect::<Vec<_>>(), [0; 8]);
    assert_eq!(
        server.metrics().matches("\ntidegate_alerts_total{").count(),
        8,
        "all are there from the start"
    );

    begin_to_fill(&server);
    let filling = receiver.next();
    fill(&server);
    let full = receiver.next();
    check(&filling, "limit-store-filling", &["at_ms", "entries", "entries_max", "kind", "message", "store"]);
    check(&full, "limit-store-full", &["at_ms", "entries_max", "kind", "message", "refused", "store"]);
    assert_eq!((&full.json()["store"], &full.json()["entries_max"]), (&"embedded".into(), &1000.into()));

    let delivered = r#"tidegate_webhook_deliveries_total{outcome="delivered"}"#;
    eventually("both delivered", || (server.metric(delivered) == 2).then_some(()));
    for kind in kinds() {
        let count = u64::from(kind.starts_with("limit-store"));
        assert_eq!(server.metric(&format!("tidegate_alerts_total{{kind=\"{kind}\"}}")), count, "{kind}");
    }
    assert_eq!(server.metric(r#"tidegate_webhook_deliveries_total{outcome="failed"}"#), 0);
    assert_eq!(server.metric("tidegate_webhook_dropped_total"), 0);
    assert!(receiver.has_no_more());
    assert_eq!(server.terminate().log, "", "nothing is logged");
}

fn kinds() -> impl Iterator<Item = &'static str> {
    tidegate::alerts::KINDS.into_iter()
}

#[track_caller]
fn check(post: &Post, kind: &str, names: &[&str]) {
    assert_eq!(post.line, format!("POST {TARGET} HTTP/1.1"));
    assert_eq!(post.header("content-type"), Some("application/json"));
    assert!(post.is_signed(SECRET, TARGET), "{post:?}");
    assert!(!post.is_signed(server::SECRET, TARGET), "another secret");
    assert!(!post.is_signed(SECRET, "/hooks/Zq7-only-for-us"), "another target");
    let changed = Post { body: [post.body.as_slice(), b" "].concat(), ..post.clone() };
    assert!(!changed.is_signed(SECRET, TARGET), "another body");

    let body = post.json();
    assert_eq!(body["kind"], kind);
    let found: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(found, names, "sorted");
    assert!(!body["message"].as_str().unwrap().is_empty() && body["at_ms"].is_u64(), "{body}");
    assert_names_nobody(&body);
}

fn assert_names_nobody(body: &Value) {
    let text = body.to_string();
    for hidden in [NAME, STORED, SECRET, server::SECRET, "127.0.0.1", &digest(NAME), &digest("0 0")] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
}
