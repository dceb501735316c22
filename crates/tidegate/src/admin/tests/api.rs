use http::{Method, StatusCode, header};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{Bench, Reply, TOKENS};
use crate::admin::shapes::{Abuse, AccessLog, Apps, ErrorBody, Replay, Traffic};

const GET: Method = Method::GET;
const PUT: Method = Method::PUT;
const POST: Method = Method::POST;

#[tokio::test]
async fn every_call_needs_its_ability_and_names_it() {
    let bench = Bench::new().await;
    let calls: [(Method, &str, &str, &str, u16); 10] = [
        (GET, "/apps", "", "read", 200),
        (GET, "/apps/shop/abuse", "", "read", 200),
        (GET, "/apps/shop/traffic?window=minute", "", "read", 200),
        (GET, "/apps/shop/access-log", "", "read", 200),
        (GET, "/audit", "", "read", 200),
        (GET, "/tokens", "", "read", 200),
        (PUT, "/apps/shop/abuse", "{}", "write", 200),
        (POST, "/apps/shop/abuse/replay", "{}", "read:sensitive", 200),
        (POST, "/tokens", r#"{"name": "x", "abilities": ["write"]}"#, "write", 201),
        (Method::DELETE, "/tokens/x", "", "write", 200),
    ];
    for (method, path, body, needs, status) in calls {
        let reply = bench.call("", method.clone(), path, body).await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(reply.header(header::WWW_AUTHENTICATE), "Bearer", "{path}");
        for (name, abilities) in TOKENS.iter().rev() {
            let reply = bench.call(name, method.clone(), path, body).await;
            if abilities.contains(&format!("{needs:?}")) {
                assert!(
                    reply.status.as_u16() == status || reply.status == 409 || reply.status == 404,
                    "{name} {path}: {}",
                    reply.text
                );
            } else {
                assert_eq!(reply.status, StatusCode::FORBIDDEN, "{name} {method} {path}");
                assert_eq!(reply.json()["error"]["missing_ability"], needs, "{}", reply.text);
            }
        }
    }
}

#[tokio::test]
async fn every_refusal_has_the_documented_form() {
    let bench = Bench::new().await;
    let large = " ".repeat(64 * 1024 + 1);
    let delete = Method::DELETE;
    let table: [(&Method, &str, &str, u16, &str); 18] = [
        (&GET, "/nothing", "", 404, "not_found"),
        (&GET, "", "", 404, "not_found"),
        (&GET, "/../v2/apps", "", 404, "not_found"),
        (&POST, "/apps", "", 405, "method_not_allowed"),
        (&POST, "/apps/shop/abuse", "{}", 405, "method_not_allowed"),
        (&PUT, "/tokens", "{}", 405, "method_not_allowed"),
        (&GET, "/apps/nobody/abuse", "", 404, "no_such_app"),
        (&GET, "/apps/%ff/abuse", "", 400, "bad_request"),
        (&PUT, "/apps/shop/abuse", &large, 413, "body_too_large"),
        (&POST, "/apps/shop/abuse/replay", &large, 413, "body_too_large"),
        (&POST, "/tokens", &large, 413, "body_too_large"),
        (&POST, "/tokens", "{", 400, "bad_request"),
        (&POST, "/tokens", r#"["x", ["read"]]"#, 400, "bad_request"),
        (&POST, "/tokens", r#"{"name": "x", "name": "y", "abilities": ["read"]}"#, 400, "bad_request"),
        (&PUT, "/apps/shop/abuse", r#"{"rps": 1, "burst": 1, "rps": 2}"#, 422, "invalid_policy"),
        (&POST, "/apps/shop/abuse/replay", r#"{"rps": 1, "burst": 1, "rps": 2}"#, 422, "invalid_policy"),
        (&GET, "/audit?limit=x", "", 400, "bad_request"),
        (&delete, "/tokens/nobody", "", 404, "no_such_token"),
    ];
    for (method, path, body, status, code) in table {
        let reply = bench.call("everything", method.clone(), path, body).await;
        let error = &reply.json()["error"];
        assert_eq!((reply.status.as_u16(), &error["code"]), (status, &json!(code)), "{method} {path}");
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{method} {path}");
        assert_eq!(reply.header(header::CONTENT_TYPE), "application/json", "{method} {path}");
        assert_eq!(reply.header(header::ALLOW).is_empty(), status != 405, "{method} {path}");
    }
    let reply = bench.call("everything", POST, "/tokens", r#"{"name": "x", "name": "y"}"#).await;
    assert_eq!(reply.json()["error"]["message"], "name: is there twice");
    let page = bench.page(GET, "/nothing", "", "").await;
    assert_eq!((page.status.as_u16(), page.text.as_str()), (404, "there is nothing here\n"));
    let metrics = bench.page(GET, "/metrics", "", "").await;
    assert_eq!((metrics.status.as_u16(), metrics.header(header::WWW_AUTHENTICATE)), (401, "Bearer"));
}

#[tokio::test]
async fn answers_have_exactly_the_documented_shapes() {
    let bench = Bench::new().await;
    bench.traffic("192.0.2.7", 300);
    let policy = r#"{"mode": "enforce", "rps": 0.5, "burst": 3, "deny_user_agents": ["re:^curl/"],
        "deny_cidrs": ["203.0.113.0/24", {"cidr": "2001:db8::/32", "note": "x", "expires_at_ms": 1}],
        "routes": [{"path_prefix": "/login", "methods": ["POST"], "rps": 1, "burst": 2}]}"#;
    let put = bench.call("everything", PUT, "/apps/shop/abuse", policy).await;
    bench.traffic("192.0.2.7", 20);
    let answers = async |method, path| bench.call("everything", method, path, policy).await;
    fits::<Abuse>(&put);
    fits::<Apps>(&answers(GET, "/apps").await);
    fits::<Abuse>(&answers(GET, "/apps/shop/abuse?window=day").await);
    fits::<Traffic>(&answers(GET, "/apps/shop/traffic").await);
    fits::<AccessLog>(&answers(GET, "/apps/shop/access-log?limit=3").await);
    fits::<Replay>(&answers(POST, "/apps/shop/abuse/replay").await);
    fits::<ErrorBody>(&bench.call("read", PUT, "/apps/shop/abuse", "{}").await);
    fits::<ErrorBody>(&bench.call("everything", PUT, "/apps/shop/abuse", r#"{"rps": -1}"#).await);
    fits::<ErrorBody>(&bench.call_if("everything", PUT, "/apps/shop/abuse", "{}", Some("\"9\"")).await);

    let reply = bench.call("everything", POST, "/apps/shop/abuse/replay", policy).await.json();
    assert!(reply["would_block"]["total"].as_u64().unwrap() > 100, "{reply}");
    assert_eq!(reply["top_clients"][0]["client"], "192.0.2.7", "{reply}");
}

/// The shape takes all of the answer and adds nothing to it.
#[track_caller]
fn fits<T: DeserializeOwned + Serialize>(reply: &Reply) {
    let told = reply.json();
    let read: T = serde_json::from_value(told.clone()).unwrap_or_else(|error| panic!("{error}: {told}"));
    assert_eq!(plain(serde_json::to_value(read).unwrap()), plain(told));
}

/// 5 and 5.0 are one number.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, |number| json!(number)),
        Value::Array(list) => list.into_iter().map(plain).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, plain(value))).collect(),
        other => other,
    }
}

#[tokio::test]
async fn a_policy_is_replaced_by_who_has_seen_it() {
    let bench = Bench::new().await;
    let first = bench.call("read", GET, "/apps/shop/abuse", "").await;
    assert_eq!((first.header(header::ETAG), &first.json()["version"]), ("\"0\"", &json!(0)));
    let put = async |tag, body| bench.call_if("write", PUT, "/apps/shop/abuse", body, tag).await;
    let saved = put(Some("\"0\""), r#"{"rps": 5, "burst": 10}"#).await;
    assert_eq!((saved.status, saved.header(header::ETAG)), (StatusCode::OK, "\"1\""), "{}", saved.text);
    assert_eq!(saved.json()["policy"]["mode"], "log_only", "what is left out has its default");

    let stale = put(Some("\"0\""), "{}").await;
    assert_eq!(
        (stale.status, &stale.json()["error"]["version"]),
        (StatusCode::PRECONDITION_FAILED, &json!(1))
    );
    let faulty = put(Some("\"1\""), r#"{"rps": -1, "deny_cidrs": ["x"], "colour": 1}"#).await;
    assert_eq!(faulty.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(faulty.json()["error"]["code"], "invalid_policy");
    assert!(faulty.json()["error"]["faults"].as_array().unwrap().len() >= 3, "{}", faulty.text);
    assert_eq!(put(Some("one"), "{}").await.status, StatusCode::BAD_REQUEST);
    let large = format!("{{\"deny_user_agents\": [{:?}]}}", "x".repeat(70 * 1024));
    assert_eq!(put(None, &large).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(bench.call("write", PUT, "/apps/nobody/abuse", "{}").await.status, StatusCode::NOT_FOUND);

    let now = bench.call("read", GET, "/apps/shop/abuse", "").await.json();
    assert_eq!((&now["version"], &now["policy"]["rps"]), (&json!(1), &json!(5)), "refusals change nothing");
    let audit = bench.call("read", GET, "/audit", "").await.json();
    let entry = &audit["entries"][0];
    assert_eq!((&entry["actor"], &entry["action"]), (&json!("write"), &json!("policy_changed")), "{audit}");
    assert!(entry["details"].as_str().unwrap().contains("rps: 0 -> 5"), "{audit}");
}

#[tokio::test]
async fn a_replay_changes_nothing_and_the_log_tells_nobody() {
    let bench = Bench::new().await;
    bench.traffic("192.0.2.7", 50);
    let before = bench.call("read", GET, "/apps/shop/abuse", "").await.json();
    for _ in 0..2 {
        let draft = r#"{"rps": 1, "burst": 1, "mode": "enforce"}"#;
        assert_eq!(
            bench.call("sensitive", POST, "/apps/shop/abuse/replay", draft).await.status,
            StatusCode::OK
        );
    }
    assert_eq!(bench.call("read", GET, "/apps/shop/abuse", "").await.json(), before);
    for path in
        ["/apps/shop/access-log?limit=100", "/apps/shop/traffic", "/apps", "/apps/shop/abuse", "/audit"]
    {
        let reply = bench.call("everything", GET, path, "").await;
        for secret in ["192.0.2.7", "SecretBrowser", "secret=1"] {
            assert!(!reply.text.contains(secret), "{path}: {}", reply.text);
        }
    }
    let log = bench.call("read", GET, "/apps/shop/access-log?limit=7", "").await.json();
    assert_eq!(log["entries"].as_array().unwrap().len(), 7);
    for query in ["limit=0", "limit=10001", "limit=x", "window=hour"] {
        let reply = bench.call("read", GET, &format!("/apps/shop/access-log?{query}"), "").await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(reply.json()["error"]["code"], "bad_request", "{query}");
    }
}

#[tokio::test]
async fn the_document_names_every_call() {
    let bench = Bench::new().await;
    let document = bench.call("", GET, "/openapi.json", "").await.json();
    let paths = document["paths"].as_object().unwrap();
    let mut calls: Vec<String> = paths
        .iter()
        .flat_map(|(path, calls)| {
            calls.as_object().unwrap().keys().map(move |method| format!("{method} {path}"))
        })
        .collect();
    calls.sort();
    let expected = [
        "delete /api/v1/tokens/{name}",
        "get /api/v1/apps",
        "get /api/v1/apps/{app}/abuse",
        "get /api/v1/apps/{app}/access-log",
        "get /api/v1/apps/{app}/traffic",
        "get /api/v1/audit",
        "get /api/v1/tokens",
        "post /api/v1/apps/{app}/abuse/replay",
        "post /api/v1/tokens",
        "put /api/v1/apps/{app}/abuse",
    ];
    assert_eq!(calls, expected);
    for name in ["Abuse", "Apps", "Traffic", "AccessLog", "Replay", "Policy", "ErrorBody", "Audit"] {
        assert!(document["components"]["schemas"][name].is_object(), "{name}");
    }
    let fields = document["components"]["schemas"]["Abuse"]["properties"].as_object().unwrap();
    let names: Vec<&String> = fields.keys().collect();
    assert_eq!(names, ["app", "counters", "policy", "status", "suggested_rps", "version"]);
}
