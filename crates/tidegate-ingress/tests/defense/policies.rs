//! Policies in the store: saved, shared, versioned, audited.

use serde_json::{Value, json};
use tidegate_ingress::defense::{AUDIT_ROWS_MAX, Defense, PutError, Window};
use tidegate_store::{Key, LimitStoreExt};

use crate::support::{NOW_MS, Site, options};

#[tokio::test]
async fn an_untouched_app_has_the_defaults() {
    let site = Site::new().await;
    let view = serde_json::to_value(site.defense.view("shop", Window::Hour).unwrap()).unwrap();
    let none = json!({"rate_limit": 0, "deny_cidr": 0, "deny_user_agent": 0, "missing_user_agent": 0});
    let expected = json!({
        "app": "shop", "version": 0,
        "policy": {
            "mode": "log_only", "rps": 0, "burst": 0, "deny_cidrs": [], "deny_user_agents": [],
            "deny_missing_user_agent": false, "allow_cidrs": [], "ipv6_prefix": 64, "routes": [],
        },
        "status": {"condition": "LogOnly", "message": "The policy counts what it would refuse, and refuses nothing."},
        "counters": {"window": "hour", "allowed": 0, "would_block": none, "blocked": none, "fail_open": 0},
        "suggested_rps": null,
    });
    assert_eq!(view, expected);
    assert!(site.defense.view("other", Window::Hour).is_none());
    let overview = serde_json::to_value(site.defense.overview()).unwrap();
    let names: Vec<_> = overview.as_array().unwrap().iter().map(|app| app["app"].clone()).collect();
    assert_eq!(names, ["blog", "shop"]);
    assert_eq!(overview[0]["sparkline"].as_array().unwrap().len(), 60);
}

#[tokio::test]
async fn two_operators_do_not_overwrite_each_other() {
    let site = Site::new().await;
    let put = |if_match, document: &'static str| {
        site.defense.put_policy("shop", if_match, document.as_bytes(), "ann")
    };
    assert_eq!(put(Some(0), r#"{"rps":1,"burst":1}"#).await.unwrap().version, 1);
    let stale = put(Some(0), r#"{"rps":2,"burst":2}"#).await;
    assert!(matches!(stale, Err(PutError::Stale { version: 1 })), "{stale:?}");
    assert_eq!(put(Some(1), r#"{"rps":3,"burst":3}"#).await.unwrap().version, 2);
    assert_eq!(put(None, r#"{"rps":4,"burst":4}"#).await.unwrap().version, 3);
    let view = site.defense.view("shop", Window::Hour).unwrap();
    assert_eq!((view.version, view.policy.unwrap().burst), (3, 4));
    let unknown = site.defense.put_policy("other", None, b"{}", "ann").await;
    assert!(matches!(unknown, Err(PutError::NoSuchApp)));
    let Err(PutError::Invalid(faults)) = put(None, r#"{"rps":-1,"mode":"on","x":1}"#).await else { panic!() };
    let fields: Vec<_> = faults.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(fields, ["rps", "mode", "x"]);
}

#[tokio::test]
async fn changes_are_in_the_audit() {
    let site = Site::new().await;
    site.put(r#"{"mode":"enforce","rps":2.5,"burst":5,"deny_cidrs":["203.0.113.0/24"],"deny_user_agents":["a","b","c","d"]}"#)
        .await;
    site.clock.advance(5);
    site.put(r#"{"mode":"off","deny_user_agents":["d"]}"#).await;
    site.defense.note_change("ann", "token_create", vec!["name: ci".to_owned()]).await.unwrap();
    let audit = serde_json::to_value(site.defense.audit(10).await.unwrap()).unwrap();
    let expected = json!([
        {"at_ms": NOW_MS + 5, "actor": "ann", "action": "token_create", "changes": ["name: ci"]},
        {"at_ms": NOW_MS + 5, "actor": "operator", "action": "policy", "app": "shop", "changes": [
            "mode: \"enforce\" -> \"off\"", "rps: 2.5 -> 0", "burst: 5 -> 0",
            "deny_cidrs: -203.0.113.0/24", "deny_user_agents: -a -b -c"]},
        {"at_ms": NOW_MS, "actor": "operator", "action": "policy", "app": "shop", "changes": [
            "mode: \"log_only\" -> \"enforce\"", "rps: 0 -> 2.5", "burst: 0 -> 5",
            "deny_cidrs: +203.0.113.0/24", "deny_user_agents: +4"]},
    ]);
    let unquoted: Value = serde_json::from_str(&expected.to_string().replace("\\\"", "")).unwrap();
    assert_eq!(audit, unquoted);
    assert_eq!(site.defense.audit(1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_audit_is_bounded() {
    let site = Site::new().await;
    for n in 0..AUDIT_ROWS_MAX + 10 {
        site.defense.note_change("ann", "note", vec![n.to_string()]).await.unwrap();
    }
    let all = site.defense.audit(usize::MAX).await.unwrap();
    assert_eq!(all.len() as u64, AUDIT_ROWS_MAX);
    assert_eq!((all[0].changes[0].as_str(), all.last().unwrap().changes[0].as_str()), ("2009", "10"));
}

#[tokio::test]
async fn instances_share_policies() {
    let site = Site::new().await;
    let other = Defense::open(site.store.clone(), site.clock.clone(), options()).await;
    site.put(r#"{"rps":1,"burst":1}"#).await;
    assert_eq!(other.view("shop", Window::Hour).unwrap().version, 0);
    other.refresh().await;
    assert_eq!(other.view("shop", Window::Hour).unwrap().version, 1);
    let later = Defense::open(site.store.clone(), site.clock.clone(), options()).await;
    assert_eq!(later.view("shop", Window::Hour).unwrap().version, 1, "and a restart finds them");
    let stale = other.put_policy("shop", Some(0), b"{}", "ann").await;
    assert!(matches!(stale, Err(PutError::Stale { version: 1 })));
}

#[tokio::test]
async fn large_documents_are_kept_in_pieces() {
    let site = Site::new().await;
    let entry =
        |n: usize| json!({"cidr": format!("10.{}.{}.0/24", n / 256, n % 256), "note": "n".repeat(30)});
    let large = json!({"deny_cidrs": (0..900).map(entry).collect::<Vec<_>>()}).to_string();
    assert!(large.len() > 50_000);
    site.put(&large).await;
    site.put(r#"{"rps":1,"burst":1}"#).await;
    site.put(&large).await;
    let reopened = Defense::open(site.store.clone(), site.clock.clone(), options()).await;
    let view = reopened.view("shop", Window::Hour).unwrap();
    assert_eq!((view.version, view.policy.unwrap().deny_cidrs.len()), (3, 900));
    let small = site.put("{}").await;
    assert_eq!(small, 4);
    let rows = site.store.read(vec![Key::of(&[b"defense", b"policy", b"shop", &1_u64.to_le_bytes()])]).await;
    assert!(rows.unwrap()[0].is_none(), "pieces that are not needed any more are gone");
    let _ = site.store.update(vec![], |_| ()).await;
}
