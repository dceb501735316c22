//! A policy of one app on two instances: saved at one, in force at both, and pending as long as that may not be so.

use serde_json::{Value, json};
use tidegate_test_servers::RedisServer;

use crate::support::{
    eventually,
    server::{Server, Setup},
    wire::{self, Reply, Wire},
};

const TOKEN: &str = "Bearer e2e-admin-token-0123456789abcdef-01";
const PATH: &str = "/api/v1/apps/docs/abuse";

fn call(server: &Server, method: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let headers = [&[("authorization", TOKEN)][..], headers].concat();
    let request = wire::request(method, PATH, &headers, body.as_bytes());
    Wire::tcp(server.admin).and_then(|mut wire| wire.exchange(&request)).expect("an answer")
}

fn view(server: &Server) -> Value {
    call(server, "GET", &[], "").json()
}

fn asks(server: &Server, count: usize) -> Vec<u16> {
    let request = b"GET /none HTTP/1.1\r\nHost: docs.example\r\n\r\n";
    let ask =
        |_| Wire::tcp(server.apps).and_then(|mut wire| wire.exchange(request)).expect("an answer").status;
    (0..count).map(ask).collect()
}

#[test]
fn a_saved_policy_is_pending_until_all_have_it() {
    let mut redis = RedisServer::start(&[]).expect("Redis starts");
    let token = TOKEN.trim_start_matches("Bearer ");
    let instance = || {
        Setup::new()
            .set("store.kind", "redis")
            .set("store.url", redis.url())
            .set("apps.docs.domains", "docs.example")
            .set("apps.docs.root", ".")
            .set(
                "admin.tokens",
                format!(r#"[{{ name = "ann", token = "{token}", abilities = ["read", "write"] }}]"#),
            )
            .unset("store.durability")
    };
    let setups = [instance(), instance()];
    let [one, other] = setups.each_ref().map(Setup::start);
    let saved = call(&one, "PUT", &[("if-match", "0")], r#"{"mode":"enforce","rps":0.001,"burst":1}"#).json();
    assert_eq!(saved["status"]["condition"], "Pending", "{saved}");
    eventually("the other one has it", || (view(&other)["version"] == 1).then_some(()));
    for server in [&one, &other] {
        eventually("nobody can be without it", || {
            (view(server)["status"]["condition"] == "Enforcing").then_some(())
        });
        // Each has its own buckets.
        assert_eq!(asks(server, 2), [404, 429]);
    }
    let stale = call(&other, "PUT", &[("if-match", "0")], "{}");
    assert_eq!((stale.status, &stale.json()["error"]["version"]), (412, &json!(1)));

    // What is known stays in force while the store is away; an instance that starts then serves unchecked.
    redis.kill();
    assert_eq!(asks(&one, 2), [429, 429]);
    assert_eq!(call(&one, "PUT", &[], "{}").status, 503);
    assert_eq!(other.terminate().status.code(), Some(0));
    let late = setups[1].clone().even_if_not_ready().start();
    assert_eq!(asks(&late, 3), [404; 3]);
    let now = view(&late);
    assert_eq!(
        (&now["status"]["condition"], &now["counters"]["fail_open"]),
        (&json!("Pending"), &json!(3)),
        "{now}"
    );
    assert!(now["status"]["message"].as_str().unwrap().contains("opening the limit store"), "{now}");
    redis.restart().expect("it starts");
    eventually("it is open", || (view(&late)["status"]["condition"] != "Pending").then_some(()));
    assert_eq!(wire::get(late.guard, "/readyz").unwrap().status, 200);
}
