//! Connections that get nowhere: each is closed in time, and everybody else is served.

use std::{io, net::TcpStream, time::Duration};

use serde_json::json;

use crate::{
    http2::Http2,
    support::{
        DEADLINE, eventually,
        message::{SIGNATURE, incr, one_step, signature, signed},
        now,
        server::{SECRET, Server, Setup},
        wire::{self, Wire},
    },
};

const HEADER_TIMEOUT_MS: u64 = 500;
/// What a busy machine may take beyond the configured time.
const LATE: Duration = Duration::from_secs(5);
const EACH: usize = 50;

fn start() -> Server {
    let timeout = HEADER_TIMEOUT_MS.to_string();
    Setup::new().set("guard.header_timeout_ms", &timeout).set("guard.body_timeout_ms", &timeout).start()
}

#[test]
fn silent_and_half_begun_connections_are_closed() {
    let server = start();
    let before = open_files(&server);
    let began = now();
    let table: [&[u8]; 7] = [
        b"",
        b"P",
        b"POST /v1/rpc HTTP/1.1\r\nhost: gu",
        b"PRI * HTTP/2.0\r\n\r\nSM",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        // The preface and the head of a settings frame that does not come.
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x06\x04",
        // And with all of an empty one.
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    ];
    let mut stuck = Vec::new();
    for begun in table {
        for _ in 0..EACH {
            let mut wire = Wire::tcp(server.guard).unwrap();
            wire.send(begun).unwrap();
            stuck.push(wire);
        }
    }
    for _ in 0..EACH {
        let mut idle = Wire::tcp(server.guard).unwrap();
        assert_eq!(idle.exchange(&wire::request("GET", "/healthz", &[], b"")).unwrap().status, 200);
        stuck.push(idle);
    }

    assert_honest_clients_are_served(&server);
    for wire in &mut stuck {
        let last = wire.until_closed().expect("closed in time");
        assert!(!last.starts_with(b"HTTP/1.1 2"), "{last:?}");
    }
    let took = began.elapsed();
    assert!(took < Duration::from_millis(HEADER_TIMEOUT_MS) * 2 + LATE, "{took:?}");
    drop(stuck);
    eventually("the descriptors are given back", || (open_files(&server) <= before + 2).then_some(()));
}

#[test]
fn an_http2_connection_that_idles_or_stops_inside_a_body_is_closed() {
    let server = start();
    let body = one_step("http2", json!([incr("k")])).to_string();
    let idle = Http2::connect(server.guard);
    assert_eq!(idle.post(body.as_bytes()).status, 200);
    let never_used = Http2::connect(server.guard);
    let stopped = Http2::connect(server.guard);
    let mut stream = stopped.begin(body.as_bytes());
    stopped.send(&mut stream, b"{", false).unwrap();
    assert_honest_clients_are_served(&server);
    idle.until_closed();
    never_used.until_closed();
    assert_eq!(stopped.answer(stream).unwrap().status, 408);
    stopped.until_closed();
}

#[test]
fn dribbling_a_body_gains_no_time() {
    let server = start();
    let began = now();
    let head = "POST /v1/rpc HTTP/1.1\r\nhost: guard\r\ncontent-length: 16000\r\n\r\n";
    let mut wire = Wire::tcp(server.guard).unwrap();
    wire.stream().set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    wire.send(head.as_bytes()).unwrap();
    let reply = loop {
        match wire.exchange(b" ") {
            Ok(reply) => break reply,
            Err(error) => assert!(is_waiting(&error) && began.elapsed() < DEADLINE, "{error}"),
        }
    };
    assert_eq!(reply.status, 408);
    let took = began.elapsed();
    assert!(took < Duration::from_millis(HEADER_TIMEOUT_MS) + LATE, "{took:?}");
}

#[test]
fn dribbling_a_head_gains_no_time() {
    let server = start();
    let began = now();
    for head in ["GET /healthz HTTP/1.1\r\nx-slow: ", "PRI * HTTP/2.0\r"] {
        let mut dribbling: Vec<_> = (0..20).map(|_| Some(Wire::tcp(server.guard).unwrap())).collect();
        for wire in dribbling.iter_mut().flatten() {
            wire.stream().set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            wire.send(&head.as_bytes()[..1]).unwrap();
        }
        let mut rest = head.bytes().skip(1).chain(std::iter::repeat(b'a'));
        while dribbling.iter().any(Option::is_some) {
            assert_honest_clients_are_served(&server);
            let byte = rest.next().unwrap();
            for place in &mut dribbling {
                let Some(wire) = place else { continue };
                // For a moment it listens; what comes then is the end.
                if wire.send(&[byte]).is_err() || is_closed(wire) {
                    *place = None;
                }
            }
            assert!(began.elapsed() < DEADLINE, "it was let to dribble on");
        }
    }
}

#[test]
fn a_body_that_stops_half_way_is_answered_408_and_closed() {
    let server = start();
    let body = one_step("half", json!([incr("k")])).to_string();
    let header = signature(SECRET, body.as_bytes());
    let began = now();
    for framing in [format!("content-length: {}", body.len()), "transfer-encoding: chunked".to_owned()] {
        let head =
            format!("POST /v1/rpc HTTP/1.1\r\nhost: guard\r\n{SIGNATURE}: {header}\r\n{framing}\r\n\r\n");
        let begun = if framing.starts_with('t') { "5\r\n{\"op\"\r\n" } else { "{\"op\"" };
        let mut wire = Wire::tcp(server.guard).unwrap();
        wire.send(format!("{head}{begun}").as_bytes()).unwrap();
        assert_honest_clients_are_served(&server);
        let reply = wire.reply().unwrap();
        assert_eq!((reply.status, reply.code().as_str()), (408, "bad_request"), "{framing}");
        assert_eq!(wire.until_closed().unwrap(), b"");
    }
    let took = began.elapsed();
    assert!(took < Duration::from_millis(HEADER_TIMEOUT_MS) * 2 + LATE * 2, "{took:?}");

    // One that says that it has ended is answered at once, or just closed.
    let head = format!(
        "POST /v1/rpc HTTP/1.1\r\nhost: guard\r\n{SIGNATURE}: {header}\r\ncontent-length: 500\r\n\r\n"
    );
    let mut wire = Wire::tcp(server.guard).unwrap();
    wire.send(format!("{head}{body}").as_bytes()).unwrap();
    wire.finish_sending().unwrap();
    let answer = String::from_utf8(wire.until_closed().unwrap()).unwrap();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    assert_eq!(server.counter("half", "k"), json!(null));
}

#[test]
fn a_client_that_does_not_read_its_answers_is_cut() {
    let server = start();
    let mut wire = Wire::tcp_with_little_room(server.guard).unwrap();
    wire.stream().set_write_timeout(Some(Duration::from_millis(50))).unwrap();
    let began = now();
    let requests = wire::request("GET", "/healthz", &[], b"").repeat(100);
    // Until the server takes no more, since its answers are not taken; and then until it has had enough.
    loop {
        match wire.send(&requests) {
            Ok(()) => {}
            Err(error) if is_waiting(&error) => assert_honest_clients_are_served(&server),
            Err(_closed) => break,
        }
        assert!(began.elapsed() < DEADLINE * 2, "it was let to stay");
    }
}

#[test]
fn connections_over_the_bound_are_closed_at_once() {
    let server = Setup::new().set("guard.max_connections", "5").start();
    let healthz = wire::request("GET", "/healthz", &[], b"");
    let mut held: Vec<Wire<TcpStream>> = Vec::new();
    eventually("five places", || {
        let mut wire = Wire::tcp(server.guard).ok()?;
        wire.exchange(&healthz).ok()?;
        held.push(wire);
        (held.len() == 5).then_some(())
    });
    for _ in 0..3 {
        let mut over = Wire::tcp(server.guard).unwrap();
        let _ = over.send(&healthz);
        assert_eq!(over.until_closed().unwrap(), b"");
    }
    assert!(
        server.metric("tidegate_guard_connections_refused_total") >= 3,
        "the admin port has its own places"
    );
    for wire in &mut held {
        assert_eq!(wire.exchange(&healthz).unwrap().status, 200, "those within it go on");
    }
    held.pop();
    eventually("the freed place", || wire::get(server.guard, "/healthz").ok());
}

#[track_caller]
fn assert_honest_clients_are_served(server: &Server) {
    let body = one_step("honest", json!([incr("k")])).to_string();
    let reply = Wire::tcp(server.guard).unwrap().exchange(&signed(SECRET, body.as_bytes())).unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
}

fn is_closed(wire: &mut Wire<TcpStream>) -> bool {
    !matches!(wire.until_closed(), Err(error) if is_waiting(&error))
}

fn is_waiting(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn open_files(server: &Server) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("it lives").count()
}
