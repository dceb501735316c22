//! The operator's calls: who may make them, and what they take.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    eventually,
    message::digest,
    operator::call,
    server::{SECRET, Server, Setup},
    wire::{self, Reply, Wire},
};

/// Every call with its method and a body that it takes.
fn calls() -> [(&'static str, &'static str, String); 6] {
    let forget = json!({"partition": digest("nobody")}).to_string();
    [
        ("GET", "/control/state", String::new()),
        ("GET", "/control/audit", String::new()),
        ("POST", "/control/stop", String::new()),
        ("POST", "/control/resume", String::new()),
        ("POST", "/control/fairness/reset", r#"{"family":"proxy"}"#.to_owned()),
        ("POST", "/control/forget", forget),
    ]
}

#[test]
fn only_who_has_the_operators_token_gets_through() {
    let server = Setup::new().set("guard.auth_failures_per_second", "50").start();
    let token = server.made_secret("operator_token");
    let admin = server.made_secret("admin_token");
    let table = [
        ("no header", vec![]),
        ("an empty one", vec![String::new()]),
        ("no scheme", vec![token.clone()]),
        ("another scheme", vec![format!("Basic {token}")]),
        ("no token", vec!["Bearer ".to_owned()]),
        ("a part of it", vec![format!("Bearer {}", &token[1..])]),
        ("more than it", vec![format!("Bearer {token}0")]),
        ("two spaces", vec![format!("Bearer  {token}")]),
        ("the signing secret", vec![format!("Bearer {SECRET}")]),
        ("the admin token", vec![format!("Bearer {admin}")]),
        ("twice", vec![format!("Bearer {token}"), format!("Bearer {token}")]),
        ("a wrong one as well", vec![format!("Bearer {token}"), format!("Bearer {admin}")]),
    ];
    for (method, target, body) in calls() {
        for (what, values) in &table {
            let reply = with_authorization(&server, method, target, &body, values);
            assert_eq!((reply.status, reply.code().as_str()), (401, "unauthenticated"), "{what}: {target}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{what}: {target}");
            assert!(!reply.text().contains(&token), "{what}");
        }
    }
    // Before the path and the method, so that a stranger learns nothing of either.
    for (method, target) in [("DELETE", "/control/stop"), ("GET", "/control/"), ("POST", "/control/nothing")]
    {
        let stranger = with_authorization(&server, method, target, "", &[]);
        assert_eq!(stranger.status, 401, "{method} {target}");
    }
    assert_eq!(server.state()["fence"], json!({"stopped": false, "reason": null, "since_ms": null}));
    assert_eq!(server.audit(), [] as [Value; 0], "who is not let in leaves no entry");

    // Seventy-five failures later the operator gets through from the same address, in any case of the scheme.
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let reply = with_authorization(&server, "GET", "/control/state", "", &[format!("{scheme} {token}")]);
        assert_eq!(reply.status, 200, "{scheme}");
    }
    for (method, target, body) in calls() {
        assert_eq!(server.control(method, target, &body).status, 200, "{target}");
    }
    let log = server.log();
    assert!(!log.contains(&token) && !log.contains(&admin), "{log}");
}

#[test]
fn a_configured_token_takes_the_place_of_the_made_one() {
    let token = "configured-operator-token-0123456789abcdef";
    let server = Setup::new().set("guard.operator_token", token).start();
    let with =
        |token: &str| with_authorization(&server, "GET", "/control/state", "", &[format!("Bearer {token}")]);
    assert_eq!(with(token).status, 200);
    assert_eq!(with(&server.made_secret("operator_token")).status, 401);
}

#[test]
fn a_reload_changes_the_token() {
    let [first, second] = ["first", "second"].map(|name| format!("{name}-operator-token-0123456789abcdef"));
    let setup = Setup::new().set("guard.operator_token_file", "token");
    let file = setup.folder().join("token");
    fs::write(&file, &first).unwrap();
    let server = setup.start();
    let statuses = || {
        [&first, &second].map(|token| {
            with_authorization(&server, "GET", "/control/state", "", &[format!("Bearer {token}")]).status
        })
    };
    assert_eq!(statuses(), [200, 401]);
    fs::write(&file, format!("{second}\n")).unwrap();
    server.signal(Signal::HUP);
    eventually("the second token", || (statuses() == [401, 200]).then_some(()));
}

#[test]
fn what_a_call_takes() {
    let server = Server::start();
    let digest = digest("it");
    let (reason, umlauts) = ("r".repeat(256), "ä".repeat(128));
    let good = [
        ("stop", String::new()),
        ("stop", "{}".to_owned()),
        ("stop", json!({"reason": reason}).to_string()),
        ("stop", json!({"reason": umlauts}).to_string()),
        ("resume", String::new()),
        ("resume", "{}".to_owned()),
        ("resume", r#"{"families":[]}"#.to_owned()),
        ("resume", r#"{"families":["proxy","password"]}"#.to_owned()),
        ("resume", r#"{"families":["proxy","proxy"]}"#.to_owned()),
        ("fairness/reset", r#"{"family":"proxy","axis":"network/24"}"#.to_owned()),
        ("fairness/reset", json!({"family": "proxy", "identity": digest}).to_string()),
        ("forget", json!({"partition": digest, "key": digest}).to_string()),
    ];
    for (target, body) in &good {
        server.order(&format!("/control/{target}"), body);
    }
    let entries = server.audit().len();
    let bad = [
        ("stop", json!({"reason": "r".repeat(257)}).to_string(), "reason"),
        ("stop", json!({"reason": format!("{umlauts}r")}).to_string(), "reason"),
        ("stop", r#"{"reason":""}"#.to_owned(), "reason"),
        ("stop", r#"{"reason":null}"#.to_owned(), "reason"),
        ("stop", r#"{"reason":"two\nlines"}"#.to_owned(), "reason"),
        ("stop", r#"{"reason":"a","reason":"b"}"#.to_owned(), ""),
        ("stop", r#"{"why":"drill"}"#.to_owned(), "why"),
        ("stop", "[]".to_owned(), ""),
        ("stop", "null".to_owned(), ""),
        ("stop", "{} {}".to_owned(), ""),
        ("stop", r#"{"reason":"#.to_owned(), ""),
        ("resume", r#"{"families":"proxy"}"#.to_owned(), "families"),
        ("resume", r#"{"families":["nobody"]}"#.to_owned(), "families[0]"),
        ("resume", r#"{"families":null}"#.to_owned(), "families"),
        ("resume", r#"{"family":"proxy"}"#.to_owned(), "family"),
        ("fairness/reset", String::new(), ""),
        ("fairness/reset", r#"{"family":"nobody"}"#.to_owned(), "family"),
        ("fairness/reset", r#"{"axis":"source"}"#.to_owned(), ""),
        ("fairness/reset", r#"{"family":"proxy","axis":"network"}"#.to_owned(), "axis"),
        ("fairness/reset", r#"{"family":"proxy","identity":"192.0.2.7/32"}"#.to_owned(), "identity"),
        ("forget", "{}".to_owned(), ""),
        ("forget", r#"{"partition":"login:alice"}"#.to_owned(), "partition"),
        ("forget", json!({"partition": digest, "key": "15m"}).to_string(), "key"),
        ("forget", json!({"partition": digest, "keys": [digest]}).to_string(), "keys"),
    ];
    for (target, body, place) in &bad {
        let reply = server.control("POST", &format!("/control/{target}"), body);
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{target} {body}");
        let named = if place.is_empty() { String::new() } else { format!("{place}: ") };
        assert!(reply.message().starts_with(&named), "{target} {body}: {}", reply.message());
    }
    let large = server.control("POST", "/control/stop", &" ".repeat(16 * 1024 + 1));
    assert_eq!((large.status, large.code().as_str()), (413, "body_too_large"));
    assert_eq!(server.audit().len(), entries, "what is refused leaves no entry");
    assert_eq!(server.state()["fence"]["stopped"], false, "and stops nobody");
}

#[test]
fn other_paths_and_methods() {
    let setup = Setup::new().set("guard.socket", "guard.sock");
    let server = setup.start();
    for (method, target, body) in calls() {
        let other = if method == "GET" { "POST" } else { "GET" };
        let reply = server.control(other, target, &body);
        assert_eq!((reply.status, reply.header("allow")), (405, Some(method)), "{other} {target}");
    }
    for target in ["/control/", "/control/stop/", "/control/States", "/control/stop/now", "/control/fairness"]
    {
        assert_eq!(server.control("POST", target, "").status, 404, "{target}");
    }
    // Neither whoever may open the socket nor who may read the metrics is an operator.
    let token = server.made_secret("operator_token");
    let mut socket = Wire::unix(&setup.folder().join("guard.sock")).unwrap();
    let mut admin = Wire::tcp(server.admin).unwrap();
    for (method, target, body) in calls() {
        let request = call(&token, method, target, &body);
        assert_eq!(socket.exchange(&request).unwrap().status, 404, "{target} on the socket");
        assert_eq!(admin.exchange(&request).unwrap().status, 404, "{target} on admin.listen");
    }
    assert_eq!(server.audit(), [] as [Value; 0]);
}

fn with_authorization(server: &Server, method: &str, target: &str, body: &str, values: &[String]) -> Reply {
    let headers: Vec<_> = values.iter().map(|value| ("authorization", value.as_str())).collect();
    let request = wire::request(method, target, &headers, body.as_bytes());
    Wire::tcp(server.guard).and_then(|mut wire| wire.exchange(&request)).expect("an answer")
}
