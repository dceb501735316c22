//! A body's size: 16 KiB passes, one byte more does not, however it is sent.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{
    http2::Http2,
    support::{
        message::{SIGNATURE, incr, one_step, post_with, signature},
        server::{SECRET, Server},
        state::{KEY, Watched},
        wire::{Reply, Wire},
    },
};

const BOUND: usize = 16 * 1024;

#[test]
fn the_bound_exactly_and_one_more() {
    let server = Server::start();
    let watched = Watched::new(&server, "bound");
    type Send = fn(&Server, &[u8]) -> Reply;
    let ways: [(&str, Send); 4] = [
        ("Content-Length", |server, body| server.post(body)),
        ("one chunk", |server, body| exchange(server, &chunked(body, BOUND * 2))),
        ("chunks of 100", |server, body| exchange(server, &chunked(body, 100))),
        ("HTTP/2", |server, body| Http2::connect(server.guard).post(body)),
    ];
    for (way, send) in ways {
        let reply = send(&server, &padded("passes", BOUND));
        assert_eq!(reply.status, 200, "{way}: {}", reply.text());
        let reply = send(&server, &padded("bound", BOUND + 1));
        assert_too_large(way, &reply);
    }
    assert_eq!(server.counter("passes", KEY), json!("4"));
    watched.assert_unchanged("bodies over the bound");
}

#[test]
fn what_is_declared_too_large_is_not_read() {
    let server = Server::start();
    for length in ["16385", "1000000", "99999999999999"] {
        let head = format!("POST /v1/rpc HTTP/1.1\r\nhost: guard\r\ncontent-length: {length}\r\n\r\n");
        let mut wire = Wire::tcp(server.guard).unwrap();
        assert_too_large(length, &wire.exchange(head.as_bytes()).unwrap());
        assert_eq!(wire.until_closed().unwrap(), b"", "{length}: nothing more comes");
    }
    let http2 = Http2::connect(server.guard);
    let declared = http2.begin_with("POST", "/v1/rpc", &[("content-length", "99999999999999")]);
    assert_too_large("HTTP/2", &http2.answer(declared).unwrap());
    assert_eq!(http2.post(&padded("after", 1000)).status, 200, "the connection goes on");
}

#[test]
fn a_client_that_waits_for_a_continue_is_told_before_it_sends() {
    let server = Server::start();
    let head =
        "POST /v1/rpc HTTP/1.1\r\nhost: guard\r\nexpect: 100-continue\r\ncontent-length: 50000\r\n\r\n";
    let reply = Wire::tcp(server.guard).unwrap().exchange(head.as_bytes()).unwrap();
    assert_too_large("expect", &reply);
}

#[test]
fn a_body_without_an_end_is_cut() {
    let server = Server::start();
    let mut wire = Wire::tcp(server.guard).unwrap();
    let head = "POST /v1/rpc HTTP/1.1\r\nhost: guard\r\ntransfer-encoding: chunked\r\n\r\n";
    wire.send(head.as_bytes()).unwrap();
    let chunk = [b"1000\r\n".as_slice(), &[b' '; 0x1000], b"\r\n"].concat();
    for _ in 0..5 {
        wire.send(&chunk).unwrap();
    }
    assert_too_large("endless", &wire.reply().unwrap());
    let more = (0..4096).take_while(|_| wire.send(&chunk).is_ok()).count();
    assert!(more < 4096, "16 MiB were taken");
}

#[test]
fn chunk_extensions_are_bounded_too() {
    let server = Server::start();
    let watched = Watched::new(&server, "extensions");
    let body = one_step("extensions", json!([incr(KEY)])).to_string();
    let header = signature(SECRET, body.as_bytes());
    let mut request = format!(
        "POST /v1/rpc HTTP/1.1\r\nhost: guard\r\n{SIGNATURE}: {header}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    for byte in body.chars() {
        let _ = write!(request, "1;{}\r\n{byte}\r\n", "x".repeat(1000));
    }
    request.push_str("0\r\n\r\n");
    let reply = Wire::tcp(server.guard).unwrap().exchange(request.as_bytes());
    assert!(reply.as_ref().map_or(true, |reply| (400..500).contains(&reply.status)), "{reply:?}");
    watched.assert_unchanged("200 KiB of chunk extensions");
}

#[test]
fn a_compressed_body_is_bytes_like_any_other() {
    let server = Server::start();
    let body = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03";
    let headers = [(SIGNATURE, &*signature(SECRET, body)), ("content-encoding", "gzip")];
    let reply = exchange(&server, &post_with(&headers, body));
    assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"));
}

fn exchange(server: &Server, request: &[u8]) -> Reply {
    Wire::tcp(server.guard).and_then(|mut wire| wire.exchange(request)).expect("an answer")
}

#[track_caller]
fn assert_too_large(what: &str, reply: &Reply) {
    let expected = json!({"error": {"code": "body_too_large", "message": "the body is larger than 16 KiB"}});
    assert_eq!((reply.status, reply.json()), (413, expected), "{what}");
}

/// A request of just so many bytes that counts the watched key.
fn padded(partition: &str, bytes: usize) -> Vec<u8> {
    let request: Value = one_step(partition, json!([incr(KEY)]));
    let mut body = request.to_string().into_bytes();
    body.resize(bytes, b' ');
    body
}

/// A signed POST of `body` in chunks of up to `size` bytes.
fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let header = signature(SECRET, body);
    let head = format!(
        "POST /v1/rpc HTTP/1.1\r\nhost: guard\r\n{SIGNATURE}: {header}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let mut request = head.into_bytes();
    for chunk in body.chunks(size) {
        request.extend(format!("{:x}\r\n", chunk.len()).bytes());
        request.extend(chunk);
        request.extend(b"\r\n");
    }
    request.extend(b"0\r\n\r\n");
    request
}
