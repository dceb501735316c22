//! Whatever is wrong, the app is served.

use std::panic;

use tidegate_ingress::defense::{Defense, Window};
use tidegate_store::{Key, LimitStoreExt, testing::Disturbance};

use crate::support::{Site, options};

const STRICT: &str = r#"{"mode":"enforce","rps":0.001,"burst":1}"#;

fn condition(defense: &Defense) -> (&'static str, u64) {
    let view = defense.view("shop", Window::Hour).unwrap();
    (view.status.condition.as_str(), view.counters.fail_open)
}

#[tokio::test]
async fn a_store_that_cannot_be_read() {
    let site = Site::new().await;
    site.put(STRICT).await;
    site.disturbance.set(Disturbance::Fail);
    assert_eq!(site.pass("192.0.2.1", 2), ".x", "what is known stays in force");
    let failing =
        Site { defense: Defense::open(site.store.clone(), site.clock.clone(), options()).await, ..site };
    assert_eq!(failing.pass("192.0.2.1", 5), ".....");
    assert_eq!(condition(&failing.defense), ("Pending", 5));
    let saved = failing.defense.put_policy("shop", None, b"{}", "ann").await;
    assert!(saved.is_err());
    failing.disturbance.set(Disturbance::None);
    failing.defense.refresh().await;
    assert_eq!(failing.pass("192.0.2.1", 3), ".xx");
    assert_eq!(condition(&failing.defense), ("Enforcing", 5));
}

#[tokio::test]
async fn a_damaged_row() {
    let damage: [(&str, Vec<u8>); 3] = [("", vec![0xff]), ("", Vec::new()), ("piece", b"{}".to_vec())];
    for (row, bytes) in damage {
        let site = Site::new().await;
        site.put(STRICT).await;
        assert_eq!(site.pass("192.0.2.1", 2), ".x");
        let key = match row {
            "" => Key::of(&[b"defense", b"policy", b"shop"]),
            _ => Key::of(&[b"defense", b"policy", b"shop", &0_u64.to_le_bytes()]),
        };
        let damaged = bytes.clone();
        site.store.update(vec![key], move |view| view.put_lasting(0, damaged.as_slice())).await.unwrap();
        let reopened =
            Site { defense: Defense::open(site.store.clone(), site.clock.clone(), options()).await, ..site };
        assert_eq!(reopened.pass("192.0.2.1", 3), "...", "{bytes:?}");
        assert_eq!(condition(&reopened.defense), ("InvalidPolicy", 3), "{bytes:?}");
        assert!(reopened.defense.view("shop", Window::Hour).unwrap().policy.is_none());
        // Whoever saves a policy writes over it.
        reopened.put(STRICT).await;
        assert_eq!(reopened.pass("192.0.2.1", 2), ".x");
    }
}

#[tokio::test]
async fn a_decision_that_panics() {
    let site = Site::new().await;
    site.put(STRICT).await;
    site.defense.interpose(|facts| assert_ne!(facts.path.as_bytes(), b"/boom", "as the test says"));
    let quiet = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let boom = |_| site.request("shop", "192.0.2.1", "GET", "/boom", &[]).refusal.is_none();
    assert!((0..10).all(boom));
    panic::set_hook(quiet);
    assert_eq!(site.pass("192.0.2.1", 3), ".xx", "others are decided about as before");
    assert_eq!(condition(&site.defense), ("Enforcing", 10));
    let log = site.defense.access_log("shop", 100).unwrap();
    assert_eq!(log.iter().filter(|entry| entry.outcome == "fail_open").count(), 10);
}
