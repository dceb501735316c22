//! Lengths that lie: an error of the framing ends the connection, and no byte is taken for what it is not.

use serde_json::json;

use crate::support::{
    message::{SIGNATURE, incr, one_step, signature},
    server::{SECRET, Server},
    state::{KEY, Watched},
    wire::Wire,
};

#[test]
fn lengths_that_are_no_length() {
    let server = Server::start();
    let watched = Watched::new(&server, "lengths");
    let body = one_step("lengths", json!([incr(KEY)])).to_string();
    let length = body.len();
    let table = [
        format!("content-length: +{length}"),
        "content-length: -1".to_owned(),
        format!("content-length: {length}, {}", length + 1),
        format!("content-length: {length}\r\ncontent-length: {}", length + 1),
        format!("content-length: {}\r\ncontent-length: {length}", length - 1),
        format!("content-length: 0x{length:x}"),
        format!("content-length: {length}.0"),
        "content-length: ".to_owned(),
        "content-length: 184467440737095516160".to_owned(),
        format!("content-length : {length}"),
        "transfer-encoding: gzip".to_owned(),
        "transfer-encoding: chunked, gzip".to_owned(),
        "transfer-encoding: xchunked".to_owned(),
    ];
    for lines in table {
        let header = signature(SECRET, body.as_bytes());
        let request =
            format!("POST /v1/rpc HTTP/1.1\r\nhost: guard\r\n{SIGNATURE}: {header}\r\n{lines}\r\n\r\n{body}");
        let mut wire = Wire::tcp(server.guard).unwrap();
        // The server may close before it has read all of it.
        let _ = wire.send(request.as_bytes());
        let answered = String::from_utf8_lossy(&wire.until_closed().unwrap()).into_owned();
        assert!(answered.is_empty() || answered.starts_with("HTTP/1.1 400 "), "{lines}: {answered}");
        assert!(answered.matches("HTTP/1.1").count() <= 1, "{lines}: {answered}");
    }
    watched.assert_unchanged("lengths that lie");
}

#[test]
fn a_length_of_0_leaves_the_bytes_to_the_next_request() {
    let server = Server::start();
    let watched = Watched::new(&server, "zero");
    let body = one_step("zero", json!([incr(KEY)])).to_string();
    let header = signature(SECRET, body.as_bytes());
    let request = format!(
        "POST /v1/rpc HTTP/1.1\r\nhost: guard\r\n{SIGNATURE}: {header}\r\ncontent-length: 0\r\n\r\n{body}\r\n\r\n"
    );
    let mut wire = Wire::tcp(server.guard).unwrap();
    wire.send(request.as_bytes()).unwrap();
    assert_eq!(wire.reply().unwrap().status, 401, "the signature is not one over no bytes");
    assert_eq!(wire.reply().unwrap().status, 400, "JSON is no request line");
    assert_eq!(wire.until_closed().unwrap(), b"");
    watched.assert_unchanged("bytes behind a length of 0");
}

#[test]
fn the_same_length_twice_is_one_length_or_an_error() {
    let server = Server::start();
    let body = one_step("twice", json!([incr("k")])).to_string();
    let (header, length) = (signature(SECRET, body.as_bytes()), body.len());
    let request = format!(
        "POST /v1/rpc HTTP/1.1\r\nhost: guard\r\n{SIGNATURE}: {header}\r\n\
         content-length: {length}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let status = Wire::tcp(server.guard).unwrap().exchange(request.as_bytes()).unwrap().status;
    assert!(matches!(status, 200 | 400), "{status}");
}

/// Chunked wins, or the request is refused; never does the length cut it so that the rest is another request.
#[test]
fn a_length_beside_chunks_hides_no_second_request() {
    let server = Server::start();
    let watched = Watched::new(&server, "smuggled");
    let body = one_step("smuggled", json!([incr(KEY)])).to_string();
    let inner = String::from_utf8(crate::support::message::signed(SECRET, body.as_bytes())).unwrap();
    let request = format!(
        "POST /v1/rpc HTTP/1.1\r\nhost: guard\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n\
         {:x}\r\n{inner}\r\n0\r\n\r\n",
        inner.len()
    );
    let mut wire = Wire::tcp(server.guard).unwrap();
    let reply = wire.exchange(request.as_bytes()).unwrap();
    assert!(matches!(reply.status, 400 | 401), "{reply:?}");
    watched.assert_unchanged("a request inside a body");
}

#[test]
fn heads_are_bounded() {
    let server = Server::start();
    let long = format!("x-long: {}", "a".repeat(100_000));
    let many: String = (0..200).map(|index| format!("x-{index}: 1\r\n")).collect();
    let long_target = format!("GET /{} HTTP/1.1\r\nhost: guard\r\n\r\n", "a".repeat(70_000));
    for request in [
        format!("GET /healthz HTTP/1.1\r\nhost: guard\r\n{long}\r\n\r\n"),
        format!("GET /healthz HTTP/1.1\r\nhost: guard\r\n{many}\r\n"),
        long_target,
        "\0\0\0\0\r\n\r\n".to_owned(),
        "GET /healthz HTTP/9.9\r\n\r\n".to_owned(),
        "GET  /healthz\r\n\r\n".to_owned(),
    ] {
        let mut wire = Wire::tcp(server.guard).unwrap();
        let _ = wire.send(request.as_bytes());
        let answered = String::from_utf8_lossy(&wire.until_closed().unwrap()).into_owned();
        assert!(answered.is_empty() || answered.starts_with("HTTP/1.1 4"), "{answered}");
    }
    assert_eq!(server.run("heads", incr("k"))["value"], 1);
}
