//! Bodies: counted as they come, in time, both ways at once.

use std::io::{Read as _, Write as _};

use crate::{
    rig::{Rig, chunk, get, post},
    support::eventually,
};

const CAP: usize = 64 * 1024;

fn capped() -> Rig {
    Rig::with(|setup| {
        setup
            .set("apps.shop.shield.max_body_bytes", CAP.to_string())
            .set("ingress.body_idle_timeout_ms", "500")
            .set("ingress.body_timeout_ms", "1500")
    })
}

#[test]
fn a_chunked_body_is_counted_as_it_comes() {
    let rig = capped();
    let piece = vec![b'a'; 4096];
    let chunked = |bytes: usize| {
        let mut body: Vec<u8> = (0..bytes / 4096).flat_map(|_| chunk(&piece)).collect();
        if !bytes.is_multiple_of(4096) {
            body.extend(chunk(&piece[..bytes % 4096]));
        }
        body.extend(b"0\r\n\r\n");
        body
    };
    let lines = "Transfer-Encoding: chunked\r\n";
    let exact = rig.wire().exchange(&post("/length", lines, &chunked(CAP))).unwrap();
    assert_eq!((exact.status, exact.text()), (200, CAP.to_string()));
    for over in [CAP + 1, CAP * 4] {
        let (whole, came) = (rig.backend.whole().len(), rig.backend.body_bytes());
        let reply = rig.wire().exchange(&post("/length", lines, &chunked(over))).unwrap();
        assert_eq!((reply.status, reply.header("connection")), (413, Some("close")), "{over}");
        assert_eq!(rig.backend.whole().len(), whole, "never a complete request");
        assert!(rig.backend.body_bytes() - came <= CAP + 64 * 1024, "at most the cap and a buffer");
    }
}

#[test]
fn a_declared_body_over_the_cap_is_refused_unread() {
    let rig = capped();
    for length in [CAP as u64 + 1, 99_999_999_999_999] {
        let lines = format!("Content-Length: {length}\r\nExpect: 100-continue\r\n");
        let mut wire = rig.wire();
        wire.send(&post("/length", &lines, b"")).unwrap();
        let answer = String::from_utf8(wire.until_closed().unwrap()).unwrap();
        assert!(answer.starts_with("HTTP/1.1 413 "), "no 100 before it: {answer}");
    }
    assert_eq!((rig.backend.connections(), rig.backend.body_bytes()), (0, 0));
    // A body that is taken is asked for.
    let mut wire = rig.wire();
    wire.send(&post("/length", "Content-Length: 3\r\nExpect: 100-continue\r\n", b"")).unwrap();
    assert_eq!(wire.reply().unwrap().status, 100);
    wire.send(b"abc").unwrap();
    assert_eq!(wire.reply().unwrap().text(), "3");
}

#[test]
fn extensions_of_chunks_are_bounded() {
    let rig = capped();
    let mut wire = rig.wire();
    wire.send(&post("/length", "Transfer-Encoding: chunked\r\n", b"")).unwrap();
    let extended = [b"1;", vec![b'x'; 1000].as_slice(), b"\r\na\r\n"].concat();
    // The server ends the connection before all of it is sent.
    let sent = (0..10_000).take_while(|_| wire.send(&extended).is_ok()).count();
    assert!(sent < 10_000, "10 MB of extensions were taken");
    assert_eq!(rig.backend.whole().len(), 0);
}

#[test]
fn a_body_that_stops_or_never_ends_is_answered_408() {
    let rig = capped();
    let mut stopped = rig.wire();
    stopped.send(&post("/length", "Content-Length: 10\r\n", b"short")).unwrap();
    let mut endless = rig.wire();
    endless.send(&post("/length", "Transfer-Encoding: chunked\r\n", b"")).unwrap();
    let reply = stopped.reply().unwrap();
    assert_eq!((reply.status, reply.header("connection")), (408, Some("close")));
    let mut stream = endless.stream().try_clone().unwrap();
    // Never silent for long enough to be cut over that: the bound on the whole ends it.
    let answer = eventually("an answer to an endless body", || {
        let _ = stream.write_all(&chunk(b"a"));
        stream.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
        let mut scratch = [0; 512];
        stream.read(&mut scratch).ok().map(|length| String::from_utf8_lossy(&scratch[..length]).into_owned())
    });
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert_eq!(rig.backend.whole().len(), 0);
}

#[test]
fn an_app_that_answers_early_is_heard() {
    let rig = capped();
    let reply =
        rig.wire().exchange(&post("/unread", "Transfer-Encoding: chunked\r\n", &chunk(b"abc"))).unwrap();
    assert_eq!(reply.text(), "unread");
}

#[test]
fn large_answers_come_whole_and_wait_for_their_client() {
    let rig = Rig::start();
    let reply = rig.get("/big", &[]);
    assert_eq!((reply.status, reply.body.len()), (200, 8 << 20));
    assert!(reply.body.iter().all(|byte| *byte == b'x'));
    // An answer that the app breaks off is broken off here too, so that nobody takes half of it for the whole.
    let cut = rig.wire().exchange(&get("/cut", &[]));
    assert!(cut.is_err(), "{cut:?}");
}

#[test]
fn a_client_that_takes_no_answer_is_cut() {
    let rig = Rig::with(|setup| {
        setup.set("ingress.body_idle_timeout_ms", "500").set("ingress.header_timeout_ms", "1000")
    });
    let mut wire = crate::support::wire::Wire::tcp_with_little_room(rig.server.apps).unwrap();
    wire.send(&get("/big", &[])).unwrap();
    eventually("its connection is gone", || (established(&rig) == 0).then_some(()));
}

/// Clients' connections to the apps.
fn established(rig: &Rig) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{}/net/tcp", rig.server.pid())).unwrap();
    let port = format!(":{:04X}", rig.server.apps.port());
    let is_one = |line: &&str| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|local| local.ends_with(&port)) && fields.nth(1) == Some("01")
    };
    text.lines().filter(is_one).count()
}
