use prometheus_client::{encoding::text, registry::Registry};
use serde_json::{Value, json};
use tracing::{error, info, subscriber::with_default, warn};
use tracing_subscriber::layer::SubscriberExt;

use super::super::{Alerts, KINDS, WAITING_MAX, channel};

/// What came of the alerts that `work` raised.
fn raised(work: impl FnOnce()) -> Alerts {
    let (layer, alerts) = channel();
    with_default(tracing_subscriber::registry().with(layer.filtered()), work);
    alerts
}

/// The bodies of those that wait, without their time.
fn bodies(mut alerts: Alerts) -> Vec<Value> {
    let waiting = std::iter::from_fn(|| alerts.queue.try_recv().ok());
    let body = |alert: super::Alert| {
        let mut body: Value = serde_json::from_slice(&alert.to_json()).unwrap();
        let at_ms = body.as_object_mut().unwrap().remove("at_ms").unwrap();
        assert!(at_ms.as_u64().unwrap() > 1_700_000_000_000, "{at_ms}");
        body
    };
    waiting.map(body).collect()
}

fn metrics(alerts: &Alerts) -> String {
    let mut registry = Registry::default();
    alerts.register(&mut registry);
    let mut page = String::new();
    text::encode(&mut page, &registry).unwrap();
    page
}

#[test]
fn an_alert_tells_its_message_and_the_fields_that_are_allowed() {
    let alerts = raised(|| {
        warn!(kind = "budget-warning", family = "password", used = 80_u64, budget = 100_u64, "most is used");
        let (axis, store) = ("network/24", "embedded");
        warn!(kind = "fairness-denied", family = %"proxy", axis, store, "an identity's quota is spent");
        info!(kind = "fence-changed", stopped = true, "the fence has changed");
    });
    let expected = json!([
        {"kind": "budget-warning", "message": "most is used", "family": "password", "used": 80, "budget": 100},
        {"kind": "fairness-denied", "message": "an identity's quota is spent", "family": "proxy",
         "axis": "network/24", "store": "embedded"},
        {"kind": "fence-changed", "message": "the fence has changed", "stopped": true},
    ]);
    assert_eq!(Value::from(bodies(alerts)), expected);
}

#[test]
fn an_alert_tells_nothing_else() {
    let alerts = raised(|| {
        let identity = "F4f1twiMao4FqvivfP-Yu4To8zodLnFjPMuixtk42xA";
        error!(
            kind = "sweep-failing",
            identity, source = identity, principal = %identity, key = ?identity, partition = identity,
            reason = identity, error = identity, at_ms = 1, address = 3_221_225_991_u64,
            used = identity, "it rests"
        );
    });
    let expected = json!([{"kind": "sweep-failing", "message": "it rests"}]);
    assert_eq!(Value::from(bodies(alerts)), expected);
}

#[test]
fn only_events_of_these_kinds_are_alerts() {
    let alerts = raised(|| {
        warn!("no kind");
        warn!(kind = "reloaded", "another kind");
        warn!(kind = "limit-store-full ", "nearly the kind");
        warn!(kind = 3, "a number");
        warn!(target: "hyper", kind = "limit-store-full", "of another project");
        tracing::debug!(kind = "limit-store-full", "too quiet");
        let _span = tracing::warn_span!("a span", kind = "limit-store-full").entered();
        error!(kind = "limit-store-full", "full");
    });
    let page = metrics(&alerts);
    assert_eq!(bodies(alerts).len(), 1);
    for kind in KINDS {
        let line =
            format!("tidegate_alerts_total{{kind=\"{kind}\"}} {}\n", u8::from(kind == "limit-store-full"));
        assert!(page.contains(&line), "{line} {page}");
    }
}

#[test]
fn what_does_not_fit_is_dropped_and_counted() {
    let alerts = raised(|| {
        for used in 0..WAITING_MAX as u64 + 3 {
            warn!(kind = "budget-warning", used, "");
        }
    });
    let page = metrics(&alerts);
    let counts = ["tidegate_webhook_dropped_total 3\n", "kind=\"budget-warning\"} 259\n"];
    assert!(counts.iter().all(|count| page.contains(count)), "{page}");
    let bodies = bodies(alerts);
    let used: Vec<_> = bodies.iter().map(|body| body["used"].as_u64().unwrap()).collect();
    assert_eq!(used, (0..WAITING_MAX as u64).collect::<Vec<_>>(), "the earliest, in their order");
}
