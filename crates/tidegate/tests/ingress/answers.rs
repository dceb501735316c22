//! An app's answers: however they are framed they come through, and what can be read in two ways does not.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::{
    backend::Backend,
    rig::{HOST, Rig, chunk, get, post},
    support::{server::Setup, wire::Wire},
};

/// A server that answers the request for `/N` with the Nth of these bytes, and closes behind one that ends so.
struct Script {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

const CLOSES: &str = "<closes>";

impl Script {
    fn start(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (counted, answers) = (Arc::clone(&connections), Arc::new(answers));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                counted.fetch_add(1, Ordering::SeqCst);
                let answers = Arc::clone(&answers);
                thread::spawn(move || answer(stream, &answers));
            }
        });
        Self { address, connections }
    }

    fn rig(&self) -> Rig {
        let setup =
            Setup::new().set("apps.shop.domains", HOST).set("apps.shop.upstreams", self.address.to_string());
        Rig { server: setup.start(), backend: Backend::start() }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn answer(mut stream: TcpStream, answers: &[String]) -> Option<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).ok()?;
        let number: usize = head.split(' ').nth(1)?.trim_start_matches('/').parse().ok()?;
        let text = &answers[number];
        stream.write_all(text.trim_end_matches(CLOSES).as_bytes()).ok()?;
        if text.ends_with(CLOSES) {
            return None;
        }
    }
}

/// The answer to the request for `/N`, in whatever way it is framed.
fn ask(wire: &mut Wire<TcpStream>, number: usize, body: &str) -> String {
    wire.send(&get(&format!("/{number}"), &[])).unwrap();
    let mut answer = String::new();
    while !answer.contains("\r\n\r\n") {
        answer.push(wire.take(1).unwrap()[0].into());
    }
    let end = if answer.contains("\r\ntransfer-encoding: chunked\r\n") { "\r\n0\r\n\r\n" } else { body };
    while !answer.ends_with(end) {
        answer.push(wire.take(1).unwrap()[0].into());
    }
    answer
}

#[test]
fn they_come_through_however_they_are_framed() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let kept = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
        format!("{chunked}5\r\nhello\r\n0\r\n\r\n"),
        format!("{chunked}2;a=b\r\nhe\r\n003\r\nllo\r\n0\r\nx-check: 1\r\n\r\n"),
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello".to_owned(),
    ];
    let closed = [
        format!("HTTP/1.1 200 OK\r\n\r\nhello{CLOSES}"),
        format!("HTTP/1.0 200 OK\r\n\r\nhello{CLOSES}"),
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello{CLOSES}"),
        format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n{CLOSES}"
        ),
    ];
    let all = kept.len() + closed.len();
    let script = Script::start(kept.iter().chain(&closed).cloned().collect());
    let rig = script.rig();
    let mut wire = rig.wire();
    for number in 0..all {
        // In chunks it goes on in those that it came in.
        let answer = ask(&mut wire, number, "hello").replace("2\r\nhe\r\n3\r\nllo\r\n", "hello");
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("hello"), "{number}: {answer}");
        for gone in ["x-check", "link", "a=b", "connection"] {
            assert!(!answer.contains(gone), "{gone} belongs to one hop or to nobody: {answer}");
        }
    }
    assert_eq!(
        script.connections(),
        closed.len(),
        "an answer that needs no close needs no new connection either"
    );
}

#[test]
fn one_without_a_body_ends_with_its_head() {
    let answers = [
        "200 OK\r\nContent-Length: 5",
        "304 Not Modified\r\nETag: \"a\"",
        "200 OK\r\nTransfer-Encoding: chunked",
    ]
    .map(|head| format!("HTTP/1.1 {head}\r\n\r\n"));
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned();
    let script = Script::start(answers.into_iter().chain([whole]).collect());
    let rig = script.rig();
    let mut wire = rig.wire();
    for (method, number, expected) in [
        ("HEAD", 0, "content-length: 5\r\n"),
        ("GET", 1, "etag: \"a\"\r\n"),
        ("HEAD", 2, "HTTP/1.1 200 OK\r\n"),
    ] {
        wire.send(format!("{method} /{number} HTTP/1.1\r\nHost: {HOST}\r\n\r\n").as_bytes()).unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            head.push(wire.take(1).unwrap()[0].into());
        }
        assert!(head.contains(expected), "{head}");
        assert!(ask(&mut wire, 3, "hello").ends_with("\r\n\r\nhello"), "behind {method} /{number}");
    }
    assert_eq!(script.connections(), 1);
}

#[test]
fn one_that_can_be_read_in_two_ways_is_none() {
    let evil = "5\r\nhello\r\n0\r\n\r\n";
    let answers: Vec<_> = [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Content-Length: +5",
        "X: a\r\n folded: line",
    ]
    .iter()
    .map(|lines| format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n{evil}"))
    .chain(["no HTTP\r\n\r\n".to_owned(), CLOSES.to_owned()])
    .collect();
    let all = answers.len();
    let script = Script::start(answers);
    let rig = script.rig();
    for number in 0..all {
        let reply = rig.wire().exchange(&get(&format!("/{number}"), &[])).unwrap();
        assert_eq!((reply.status, &*reply.text()), (502, "the app broke off\n"), "{number}");
        assert_eq!(script.connections(), number + 1, "a connection that can't be read is not used again");
    }
}

#[test]
fn a_body_that_breaks_its_chunks_is_broken_off() {
    let answers = ["5\r\nhello world\r\n0\r\n\r\n", "\r\n\r\n", "5\r\nhel"]
        .map(|chunks| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}{CLOSES}"));
    let rig = Script::start(answers.to_vec()).rig();
    for number in 0..3 {
        let mut wire = rig.wire();
        wire.send(&get(&format!("/{number}"), &[])).unwrap();
        let all = String::from_utf8(wire.until_closed().unwrap()).unwrap();
        assert!(!all.contains("\r\n0\r\n"), "it looks whole: {all}");
    }
}

#[test]
fn what_follows_an_answer_unasked_is_nobodys() {
    let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let answers = vec![
        format!("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood{evil}"),
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother".to_owned(),
        format!("HTTP/1.1 204 No Content\r\n\r\n{evil}"),
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\n\r\n{evil}"),
    ];
    let rig = Script::start(answers).rig();
    let mut wire = rig.wire();
    for (number, expected) in [(0, "good"), (1, "other"), (2, ""), (1, "other"), (3, "good"), (1, "other")] {
        let answer = ask(&mut wire, number, expected);
        assert!(answer.contains(expected) && !answer.contains("evil"), "{number}: {answer}");
    }
}

#[test]
fn a_connection_that_took_a_whole_body_is_kept() {
    let rig = Rig::start();
    let mut wire = rig.wire();
    let body = vec![b'x'; 300_000];
    for _ in 0..3 {
        let sized = post("/length", &format!("Content-Length: {}\r\n", body.len()), &body);
        assert_eq!(wire.exchange(&sized).unwrap().text(), "300000");
    }
    let body = [chunk(&body), chunk(b"")].concat();
    let chunked = post("/length", "Transfer-Encoding: chunked\r\n", &body);
    assert_eq!(wire.exchange(&chunked).unwrap().text(), "300000");
    assert_eq!(rig.backend.connections(), 1);
}
