//! Requests that can be cut from the stream in two ways: refused, and nothing of them reaches the app.

use crate::rig::{HOST, Rig, get, post};

#[test]
fn a_request_that_is_framed_in_two_ways_is_refused() {
    let rig = Rig::start();
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: shop.example\r\n\r\n";
    for (lines, body) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", "abcde"),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", "abcde"),
        ("Content-Length: 5, 6\r\n", "abcde"),
        ("Content-Length: 5, 5\r\n", "abcde"),
        ("Content-Length: +5\r\n", "abcde"),
        ("Content-Length: -1\r\n", ""),
        ("Content-Length: 0x5\r\n", "abcde"),
        ("Content-Length: \r\n", ""),
        ("Content-Length: 99999999999999999999999\r\n", ""),
        ("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
        ("Content-Length : 5\r\n", "abcde"),
        (" Transfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ("X: y\r\n Transfer-Encoding: chunked\r\n", "0\r\n\r\n"),
    ] {
        let mut wire = rig.wire();
        let bytes = [post("/echo", lines, body.as_bytes()), smuggled.as_bytes().to_vec()].concat();
        let _ = wire.send(&bytes);
        let answers = String::from_utf8_lossy(&wire.until_closed().unwrap()).into_owned();
        assert!(answers.starts_with("HTTP/1.1 400 "), "{lines:?}: {answers}");
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "one answer, then the end: {lines:?}: {answers}");
    }
    assert_eq!(rig.backend.whole(), Vec::<String>::new());
    // A head that frames twice is found behind others too.
    let mut wire = rig.wire();
    let twice = post("/echo", "Content-Length: 1\r\nContent-Length: 1\r\n", b"a");
    wire.send(&[get("/echo", &[]), post("/echo", "Content-Length: 3\r\n", b"abc"), twice].concat()).unwrap();
    let statuses = [wire.reply().unwrap().status, wire.reply().unwrap().status, wire.reply().unwrap().status];
    assert_eq!(statuses, [200, 200, 400]);
    assert_eq!(rig.backend.whole().len(), 2);
}

#[test]
fn bytes_behind_an_empty_body_are_another_request() {
    let rig = Rig::start();
    let mut wire = rig.wire();
    wire.send(&[post("/echo", "Content-Length: 0\r\n", b""), get("/second", &[])].concat()).unwrap();
    assert!(wire.reply().unwrap().text().starts_with("POST /echo "));
    assert!(wire.reply().unwrap().text().starts_with("GET /second "));
    let no_request = post("/echo", "Content-Length: 0\r\n", b"garbage\r\n\r\n");
    let mut wire = rig.wire();
    wire.send(&no_request).unwrap();
    assert_eq!(wire.reply().unwrap().status, 200);
    assert_eq!(wire.reply().unwrap().status, 400);
    assert_eq!(rig.backend.whole().len(), 3);
}

#[test]
fn a_chunked_request_is_its_connections_last() {
    let rig = Rig::start();
    let mut wire = rig.wire();
    wire.send(&post("/length", "Transfer-Encoding: chunked\r\n", b"3\r\nabc\r\n0\r\n\r\n")).unwrap();
    let reply = wire.reply().unwrap();
    assert_eq!((reply.text().as_str(), reply.header("connection")), ("3", Some("close")));
    assert_eq!(wire.until_closed().unwrap(), b"");
}

#[test]
fn old_clients_are_answered_and_closed() {
    let rig = Rig::start();
    let mut wire = rig.wire();
    wire.send(format!("GET /echo HTTP/1.0\r\nHost: {HOST}\r\n\r\n").as_bytes()).unwrap();
    let answer = String::from_utf8(wire.until_closed().unwrap()).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 ") && answer.contains("GET /echo HTTP/1.1"), "{answer}");
}
