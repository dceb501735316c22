//! HTTP/1.1 and HTTP/2 on one cleartext port.

use serde_json::json;

use crate::{
    http2::Http2,
    support::{
        message::{incr, one_step, signed},
        server::{SECRET, Server},
        wire::{self, Wire},
    },
};

#[test]
fn one_connection_takes_many_requests_whatever_they_are_answered() {
    let server = Server::start();
    let mut wire = Wire::tcp(server.guard).unwrap();
    for round in 1..=3 {
        let body = one_step("keep-alive", json!([incr("k")])).to_string();
        let table = [
            (200, signed(SECRET, body.as_bytes())),
            (401, wire::request("POST", "/v1/rpc", &[], body.as_bytes())),
            (400, signed(SECRET, b"{}")),
            (404, wire::request("GET", "/nothing", &[], b"")),
            (405, wire::request("GET", "/v1/rpc", &[], b"")),
            (200, wire::request("GET", "/healthz", &[], b"")),
        ];
        for (status, request) in table {
            let reply = wire.exchange(&request).unwrap();
            assert_eq!(reply.status, status, "round {round}: {}", reply.text());
        }
    }
    assert_eq!(server.counter("keep-alive", "k"), json!("3"));
}

#[test]
fn a_client_may_ask_for_the_end_and_old_ones_get_it() {
    let server = Server::start();
    for head in
        ["GET /healthz HTTP/1.1\r\nhost: guard\r\nconnection: close\r\n\r\n", "GET /healthz HTTP/1.0\r\n\r\n"]
    {
        let mut wire = Wire::tcp(server.guard).unwrap();
        assert_eq!(wire.exchange(head.as_bytes()).unwrap().status, 200);
        assert_eq!(wire.until_closed().unwrap(), b"");
    }
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let server = Server::start();
    let requests: Vec<_> = (0..30).map(|_| one_step("pipeline", json!([incr("k")]))).collect();
    let bytes: Vec<u8> =
        requests.iter().flat_map(|request| signed(SECRET, request.to_string().as_bytes())).collect();
    let mut wire = Wire::tcp(server.guard).unwrap();
    wire.send(&bytes).unwrap();
    for (index, request) in requests.iter().enumerate() {
        let answer = wire.reply().unwrap().json();
        assert_eq!(answer["op"], request["op"]);
        assert_eq!(answer["steps"][0]["results"][0]["value"], index + 1);
    }
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let server = Server::start();
    let body = one_step("bytes", json!([incr("k")])).to_string();
    let mut wire = Wire::tcp(server.guard).unwrap();
    for byte in signed(SECRET, body.as_bytes()) {
        wire.send(&[byte]).unwrap();
    }
    assert_eq!(wire.reply().unwrap().status, 200);
}

#[test]
fn http2_has_the_same_answers() {
    let server = Server::start();
    let http2 = Http2::connect(server.guard);
    let request = one_step("http2", json!([incr("k")]));
    let reply = http2.post(request.to_string().as_bytes());
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    assert_eq!(reply.json()["steps"][0]["results"][0]["value"], 1);
    let again = server.ok(&request);
    assert_eq!(again["steps"][0]["replayed"], true, "one operation over both versions");

    for (method, target, headers, status) in [
        ("POST", "/v1/rpc", &[][..], 401),
        (
            "POST",
            "/v1/rpc",
            &[("tidegate-signature", "t=1,v1=0"), ("tidegate-signature", "t=1,v1=0")][..],
            401,
        ),
        ("GET", "/v1/rpc", &[][..], 405),
        ("GET", "/nothing", &[][..], 404),
        ("GET", "/healthz", &[][..], 200),
        ("GET", "/readyz", &[][..], 200),
    ] {
        let mut stream = http2.begin_with(method, target, headers);
        http2.send(&mut stream, b"", true).unwrap();
        assert_eq!(http2.answer(stream).unwrap().status, status, "{method} {target}");
    }
    assert_eq!(http2.post(b"{}").code(), "bad_request");
}
