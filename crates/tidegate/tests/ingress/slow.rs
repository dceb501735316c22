//! Connections that get nowhere: each is closed in time, and everybody else is served.

use std::{fs, time::Duration};

use crate::{
    rig::{HOST, Rig, get, ms},
    support::{eventually, now, wire::Wire},
};

const HEADER_TIMEOUT: Duration = Duration::from_secs(2);
/// What a busy machine may take beyond the configured time.
const LATE: Duration = Duration::from_secs(15);

fn start() -> Rig {
    Rig::with(|setup| {
        setup
            .set("ingress.header_timeout_ms", ms(HEADER_TIMEOUT))
            .set("ingress.idle_timeout_ms", ms(HEADER_TIMEOUT))
    })
}

#[test]
fn thousands_of_half_open_requests_are_closed_in_time() {
    let rig = start();
    let before = descriptors(&rig);
    let began = now();
    let table: [&[u8]; 5] = [
        b"",
        b"G",
        b"GET / HTTP/1.1\r\nHost: sh",
        b"PRI * HTTP/2.0\r\n\r\nSM",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x06\x04",
    ];
    let mut stuck = Vec::new();
    for begun in table.iter().cycle().take(2_000) {
        let mut wire = rig.wire();
        wire.send(begun).unwrap();
        stuck.push(wire);
        if stuck.len() % 200 == 0 {
            assert_eq!(rig.get("/echo", &[]).status, 200);
        }
    }
    // The app has no place taken by any of them.
    assert_eq!(rig.backend.whole().len(), 10);
    for wire in &mut stuck {
        wire.until_closed().expect("closed in time");
    }
    assert!(began.elapsed() < HEADER_TIMEOUT + LATE, "{:?}", began.elapsed());
    eventually("the descriptors are back", || (descriptors(&rig) <= before + 16).then_some(()));
    assert_eq!(rig.get("/echo", &[]).status, 200);
}

#[test]
fn idle_and_dribbling_connections_are_closed() {
    let rig = start();
    let mut idle = rig.wire();
    assert_eq!(idle.exchange(&get("/echo", &[])).unwrap().status, 200);
    assert_eq!(idle.until_closed().unwrap(), b"");
    let mut second = rig.wire();
    assert_eq!(second.exchange(&get("/echo", &[])).unwrap().status, 200);
    dribble(&mut second);
    dribble(&mut rig.wire());
}

/// Sends a byte of a head now and then, until the server closes.
fn dribble(wire: &mut Wire<std::net::TcpStream>) {
    let head = format!("GET / HTTP/1.1\r\nHost: {HOST}\r\nX: {}", "x".repeat(10_000));
    let mut bytes = head.as_bytes().chunks(1);
    wire.stream().set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    eventually("a dribbling connection is closed", || {
        let sent = wire.send(bytes.next().expect("more than it takes"));
        let closed = !matches!(wire.reply(), Err(error) if is_silence(&error));
        (closed || sent.is_err()).then_some(())
    });
}

fn is_silence(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

fn descriptors(rig: &Rig) -> usize {
    fs::read_dir(format!("/proc/{}/fd", rig.server.pid())).expect("it runs").count()
}
