use http::{Method, StatusCode};

use super::Bench;
use crate::admin::tokens::StoredTokens;

#[tokio::test]
async fn nobody_makes_or_revokes_more_than_they_are() {
    let bench = Bench::new().await;
    let create = async |who: &str, abilities: &str| {
        let body = format!(r#"{{"name": "new-{who}", "abilities": {abilities}}}"#);
        bench.call(who, Method::POST, "/tokens", &body).await
    };
    let escalated = create("write", r#"["write", "operator"]"#).await;
    assert_eq!(escalated.status, StatusCode::FORBIDDEN);
    assert_eq!(escalated.json()["error"]["missing_ability"], "operator");
    for abilities in [r#"[]"#, r#"["root"]"#, r#""read""#] {
        assert_eq!(create("everything", abilities).await.status, StatusCode::BAD_REQUEST, "{abilities}");
    }
    let made = create("everything", r#"["read", "operator"]"#).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let made_token = made.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(create("everything", r#"["read"]"#).await.status, StatusCode::CONFLICT, "the name is taken");
    let configured = r#"{"name": "read", "abilities": ["read"]}"#;
    let taken = bench.call("everything", Method::POST, "/tokens", configured).await;
    assert_eq!(
        (taken.status, &taken.json()["error"]["code"]),
        (StatusCode::CONFLICT, &"token_refused".into())
    );

    let delete = async |who: &str, name: &str| {
        bench.call(who, Method::DELETE, &format!("/tokens/{name}"), "").await.status
    };
    assert_eq!(delete("write", "new-everything").await, StatusCode::FORBIDDEN);
    assert_eq!(delete("everything", "read").await, StatusCode::NOT_FOUND, "a configured one stays");
    let list = bench.call("read", Method::GET, "/tokens", "").await;
    assert!(list.text.contains("new-everything") && !list.text.contains(&made_token), "{}", list.text);
    let kept = std::fs::read_to_string(bench.directory().join("tokens.json")).unwrap();
    assert!(!kept.contains(&made_token));

    assert_eq!(delete("everything", "new-everything").await, StatusCode::OK);
    assert!(StoredTokens::open(Some(bench.directory())).unwrap().list().is_empty());
    let audit = bench.call("read", Method::GET, "/audit", "").await;
    assert!(audit.text.contains("token_created") && audit.text.contains("token_revoked"), "{}", audit.text);
    assert!(!audit.text.contains(&made_token));
}
