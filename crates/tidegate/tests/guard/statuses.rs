//! Every status there is, with its code and its headers.

use serde_json::json;

use crate::support::{
    message::{fresh_op, incr, one_step, signed},
    server::{SECRET, Server, Setup},
    wire::{self, Reply, Wire},
};

#[test]
fn every_status_has_its_code_and_is_json() {
    let server = Server::start();
    let mut known = one_step("statuses", json!([incr("k")]));
    server.ok(&known);
    known["steps"][0]["commands"][0]["by"] = json!(2);
    let fine = one_step("statuses", json!([incr("k")])).to_string();
    let table = [
        (200, "", signed(SECRET, fine.as_bytes())),
        (400, "bad_request", signed(SECRET, b"{}")),
        (401, "unauthenticated", wire::request("POST", "/v1/rpc", &[], fine.as_bytes())),
        (409, "operation_conflict", signed(SECRET, known.to_string().as_bytes())),
        (413, "body_too_large", signed(SECRET, &[b' '; 16 * 1024 + 1])),
    ];
    for (status, code, request) in table {
        let reply = exchange(&server, &request);
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{}", reply.text());
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert_eq!(reply.header("retry-after"), None, "waiting does not help against {status}");
        let message = reply.message();
        assert_eq!(message.is_empty(), status == 200, "{message}");
    }
}

#[test]
fn an_unavailable_guard_says_when_to_ask_again() {
    let server = Setup::new().set("guard.secrets", "short").even_if_not_ready().start();
    let body = one_step("unavailable", json!([incr("k")])).to_string();
    for request in [signed(SECRET, body.as_bytes()), wire::request("POST", "/v1/rpc", &[], b"")] {
        let reply = exchange(&server, &request);
        assert_eq!((reply.status, reply.code().as_str()), (503, "guard_unavailable"));
        let seconds = reply.header("retry-after").unwrap();
        assert!(!seconds.starts_with('0') && seconds.bytes().all(|byte| byte.is_ascii_digit()), "{seconds}");
        assert_eq!((seconds, &reply.json()["error"]["retry_after_ms"]), ("30", &json!(30_000)));
    }
}

#[test]
fn other_paths_and_methods() {
    let server = Server::start();
    let table = [
        ("GET", "/v1/rpc", 405, Some("POST")),
        ("PUT", "/v1/rpc", 405, Some("POST")),
        ("OPTIONS", "/v1/rpc", 405, Some("POST")),
        ("POST", "/healthz", 405, Some("GET, HEAD")),
        ("DELETE", "/readyz", 405, Some("GET, HEAD")),
        ("GET", "/", 404, None),
        ("GET", "/metrics", 404, None),
        ("POST", "/v1/rpcs", 404, None),
        ("GET", "/healthz/", 404, None),
        ("GET", "/healthz", 200, None),
        ("GET", "/readyz?verbose", 200, None),
    ];
    for (method, target, status, allow) in table {
        let reply = exchange(&server, &wire::request(method, target, &[], b""));
        assert_eq!((reply.status, reply.header("allow")), (status, allow), "{method} {target}");
        assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"), "{method} {target}");
    }
    assert_eq!(wire::get(server.guard, "/healthz").unwrap().body, b"ok\n");
    // An answer to HEAD has the length of a body that does not come.
    let mut wire = Wire::tcp(server.guard).unwrap();
    wire.send(b"HEAD /healthz HTTP/1.1\r\nhost: guard\r\nconnection: close\r\n\r\n").unwrap();
    let answer = String::from_utf8(wire.until_closed().unwrap()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n"), "{answer}");
}

#[test]
fn an_answer_carries_its_requests_id_and_the_stores_time() {
    let server = Server::start();
    let mut request = one_step("id", json!([incr("k")]));
    request["op"] = json!(fresh_op());
    let before_ms = tidegate_store::clock::wall_ms();
    let answer = server.ok(&request);
    assert_eq!(answer["op"], request["op"]);
    let now_ms = answer["now_ms"].as_u64().unwrap();
    // The store's clock never goes back, and may run a little ahead for it.
    assert!(now_ms.abs_diff(before_ms) < 30_000, "{now_ms} and {before_ms}");
}

fn exchange(server: &Server, request: &[u8]) -> Reply {
    Wire::tcp(server.guard).and_then(|mut wire| wire.exchange(request)).expect("an answer")
}
