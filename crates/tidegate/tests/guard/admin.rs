//! The admin listener: who may read the metrics, and what is never in them.

use serde_json::json;

use crate::support::{
    message::{digest, fresh_op, hit, incr, one_step},
    server::{SECRET, Server, Setup},
    wire::{self, Reply},
};

#[test]
fn metrics_are_for_those_who_have_the_token() {
    let server = Server::start();
    let token = server.made_secret("admin_token");
    let operator = server.made_secret("operator_token");
    let right = format!("Bearer {token}");
    let table = [
        (None, 401),
        (Some(String::new()), 401),
        (Some("Bearer ".to_owned()), 401),
        (Some(token.clone()), 401),
        (Some(format!("Basic {token}")), 401),
        (Some(format!("Bearer {}", &token[1..])), 401),
        (Some(format!("Bearer {token}0")), 401),
        (Some(format!("Bearer {operator}")), 401),
        (Some(format!("Bearer {SECRET}")), 401),
        (Some(right.clone()), 200),
    ];
    for (value, status) in table {
        let reply = metrics(&server, value.as_deref());
        assert_eq!(reply.status, status, "{value:?}");
        assert_eq!(reply.text().contains("tidegate_"), status == 200, "{value:?}");
    }
    let page = metrics(&server, Some(&right));
    let kind = page.header("content-type").unwrap();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    assert!(page.text().ends_with("# EOF\n"));
}

#[test]
fn metrics_are_public_where_the_configuration_says_so() {
    let server = Setup::new().set("admin.metrics_public", "true").start();
    assert_eq!(metrics(&server, None).status, 200);
}

#[test]
fn a_configured_token_takes_the_place_of_the_made_one() {
    let token = "configured-admin-token-0123456789abcdef";
    let tokens = format!(r#"[{{ name = "reader", token = "{token}", abilities = ["read"] }}]"#);
    let server = Setup::new().set("admin.tokens", tokens).start();
    assert_eq!(metrics(&server, Some(&format!("Bearer {token}"))).status, 200);
    let made = server.made_secret("admin_token");
    assert_eq!(metrics(&server, Some(&format!("Bearer {made}"))).status, 401);
}

#[test]
fn the_other_paths() {
    let server = Server::start();
    let table = [
        ("GET", "/healthz", 200),
        ("GET", "/readyz", 200),
        ("POST", "/healthz", 405),
        ("POST", "/metrics", 405),
        ("POST", "/v1/rpc", 404),
        ("GET", "/", 303),
        ("GET", "/sign-in", 200),
        ("GET", "/apps/demo", 303),
        ("GET", "/api/v1/apps", 401),
        ("GET", "/nothing", 404),
    ];
    for (method, target, status) in table {
        let reply = wire::Wire::tcp(server.admin).unwrap().exchange(&wire::request(method, target, &[], b""));
        assert_eq!(reply.unwrap().status, status, "{method} {target}");
    }
}

#[test]
fn the_metrics_name_nobody() {
    let server = Server::start();
    let mut request = one_step("alice@example.com", json!([incr("secret key"), hit("secret key", 1)]));
    request["fairness"] = json!({"source": digest("192.0.2.7/32"), "principal": digest("alice")});
    server.ok(&request);
    let other = json!({"op": fresh_op(), "family": "mallory-family", "steps": []});
    assert_eq!(server.rpc(&other).status, 400);
    let page = server.metrics();
    for text in ["alice@example.com", "secret key", "192.0.2.7/32", "alice"] {
        assert!(!page.contains(text) && !page.contains(&digest(text)), "{text}");
    }
    for text in [request["op"].as_str().unwrap(), "mallory", SECRET, "127.0.0.1"] {
        assert!(!page.contains(text), "{text}");
    }
    for (name, least) in [
        (r#"tidegate_guard_rpcs_total{ending="allowed"}"#, 1),
        (r#"tidegate_guard_rpcs_total{ending="bad_request"}"#, 1),
        ("tidegate_guard_commands_total", 2),
        ("tidegate_store_entries", 2),
    ] {
        assert!(server.metric(name) >= least, "{name} in {page}");
    }
}

fn metrics(server: &Server, authorization: Option<&str>) -> Reply {
    let headers: Vec<_> = authorization.iter().map(|value| ("authorization", *value)).collect();
    wire::get_with(server.admin, "/metrics", &headers).unwrap()
}
