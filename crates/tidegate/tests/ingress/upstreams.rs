//! An app's servers: in turn, and past those that are down.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use crate::{
    backend::Backend,
    rig::{HOST, Rig, get},
    support::server::Setup,
};

/// An address where nobody listens.
fn nowhere() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn before(upstreams: &[String], backend: Backend) -> Rig {
    let setup = Setup::new()
        .set("apps.shop.domains", HOST)
        .set("apps.shop.upstreams", upstreams.join(","))
        .set("ingress.unhealthy_ms", "600000")
        .set("ingress.upstream_timeout_ms", "500");
    Rig { server: setup.start(), backend }
}

fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
}

#[test]
fn each_has_its_turn_over_kept_connections() {
    let (first, second) = (Backend::start(), Backend::start());
    let rig = before(&[first.address.to_string(), second.address.to_string()], first.clone());
    let mut wire = rig.wire();
    for _ in 0..20 {
        assert_eq!(wire.exchange(&get("/echo", &[])).unwrap().status, 200);
    }
    assert_eq!([first.whole().len(), second.whole().len()], [10, 10]);
    assert_eq!([first.connections(), second.connections()], [1, 1]);
}

#[test]
fn one_that_is_down_is_passed_over() {
    let backend = Backend::start();
    let rig = before(&[nowhere(), backend.address.to_string()], backend);
    for _ in 0..10 {
        assert_eq!(rig.get("/echo", &[]).status, 200);
    }
    let log = rig.server.log();
    assert_eq!(log.matches("upstream-down").count(), 1, "{log}");
}

#[test]
fn all_down_is_said() {
    let rig = before(&[nowhere(), nowhere()], Backend::start());
    let first = rig.get("/echo", &[]);
    assert!(matches!(first.status, 502 | 503), "{}", first.status);
    for _ in 0..5 {
        assert_eq!(rig.get("/echo", &[]).status, 503);
    }
    let rig = before(&[nowhere()], Backend::start());
    let statuses = [rig.get("/echo", &[]).status, rig.get("/echo", &[]).status];
    assert_eq!(statuses, [502, 503]);
}

#[test]
fn a_silent_server_is_answered_for() {
    let backend = Backend::start();
    let rig = before(&[backend.address.to_string()], backend);
    assert_eq!(rig.get("/silent", &[]).status, 504);
    assert_eq!(rig.backend.whole().len(), 1, "it is not asked twice");
    assert_eq!(rig.get("/echo", &[]).status, 200);
}

#[test]
fn a_kept_connection_that_was_closed_costs_no_answer() {
    let backend = Backend::start();
    let rig = before(&[backend.address.to_string()], backend);
    let mut wire = rig.wire();
    for closed in 1..=20 {
        // The backend closes after this answer, and says nothing of it.
        assert_eq!(wire.exchange(&get("/unread", &[])).unwrap().status, 200);
        rig.backend.await_closed(closed);
        assert_eq!(wire.exchange(&get("/echo", &[])).unwrap().status, 200);
    }
}

#[test]
fn any_number_of_kept_connections_may_be_closed() {
    const KEPT: usize = 24;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let rig = before(&[address.to_string()], Backend::start());
    let all_at_once = thread::spawn(move || {
        let mut streams: Vec<_> = (0..KEPT).map(|_| listener.accept().unwrap().0).collect();
        streams.iter_mut().for_each(read_head);
        for stream in &mut streams {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        }
        (listener, streams)
    });
    let mut wires: Vec<_> = (0..KEPT).map(|_| rig.wire()).collect();
    for wire in &mut wires {
        wire.send(&get("/", &[])).unwrap();
    }
    for wire in &mut wires {
        assert_eq!(wire.reply().unwrap().status, 200);
    }
    // The app restarts: all of them are closed, and one request finds that out.
    let (listener, streams) = all_at_once.join().unwrap();
    drop(streams);
    let anew = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        read_head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nnew").unwrap();
    });
    assert_eq!(wires[0].exchange(&get("/", &[])).unwrap().text(), "new");
    anew.join().unwrap();
}
