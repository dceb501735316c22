//! SIGTERM: what was accepted is answered, nothing new is, and the process ends well.

use std::{net::TcpStream, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    http2::Http2,
    support::{
        eventually,
        message::{incr, one_step, signed},
        now,
        server::{SECRET, Server, Setup},
        wire::{self, Wire},
    },
};

#[test]
fn requests_in_flight_are_answered() {
    let mut server = Server::start();
    let bodies: Vec<_> =
        (0..10).map(|_| one_step("flight", json!([incr("k")])).to_string().into_bytes()).collect();
    let mut begun: Vec<_> = bodies
        .iter()
        .map(|body| {
            let request = signed(SECRET, body);
            let (most, last) = request.split_at(request.len() - 20);
            let mut wire = Wire::tcp(server.guard).unwrap();
            wire.send(most).unwrap();
            (wire, last.to_vec())
        })
        .collect();
    let http2 = Http2::connect(server.guard);
    let body = one_step("flight", json!([incr("k")])).to_string();
    let mut stream = http2.begin(body.as_bytes());
    http2.send(&mut stream, &body.as_bytes()[..20], false).unwrap();
    let mut idle = Wire::tcp(server.guard).unwrap();
    idle.exchange(&wire::request("GET", "/healthz", &[], b"")).unwrap();
    // All heads have been read once a later connection has been answered.
    wire::get(server.guard, "/readyz").unwrap();

    server.signal(Signal::TERM);
    server.wait_for_log("stopping");
    eventually("no new connections", || TcpStream::connect(server.guard).err());
    assert_eq!(idle.until_closed().unwrap(), b"", "an idle connection has nothing to wait for");
    for (wire, last) in &mut begun {
        let reply = wire.exchange(last).unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(wire.until_closed().unwrap(), b"");
    }
    http2.send(&mut stream, &body.as_bytes()[20..], true).unwrap();
    assert_eq!(http2.answer(stream).unwrap().status, 200);

    let setup = server.setup().clone();
    let ended = server.wait();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
    assert!(ended.log.contains("stopped"), "{}", ended.log);
    assert_eq!(setup.start().counter("flight", "k"), json!("11"));
}

#[test]
fn a_request_that_never_ends_does_not_keep_the_process() {
    let server = Setup::new().set("guard.shutdown_timeout_ms", "300").start();
    let request = signed(SECRET, one_step("never", json!([incr("k")])).to_string().as_bytes());
    let mut wire = Wire::tcp(server.guard).unwrap();
    wire.send(&request[..request.len() - 1]).unwrap();
    wire::get(server.guard, "/readyz").unwrap();
    let began = now();
    let ended = server.terminate();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[test]
fn an_interrupt_ends_it_as_well() {
    let mut server = Server::start();
    server.signal(Signal::INT);
    let ended = server.wait();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
}

/// The first thing that others see of a process that starts is a port; a signal may come right then.
#[test]
fn a_signal_during_the_start_is_not_missed() {
    for signals in [&[Signal::TERM][..], &[Signal::INT], &[Signal::HUP, Signal::TERM]] {
        let setup = Setup::new();
        let mut command = setup.command(&["serve"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        while !listens(pid) {
            assert_eq!(child.try_wait().unwrap(), None, "it ended before it listened");
            std::thread::yield_now();
        }
        signals.iter().for_each(|signal| kill_process(pid, *signal).unwrap());
        let status = eventually("the process's end", || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0), "{signals:?}: {status}");
    }
}

/// Whether the process has a TCP socket that listens.
fn listens(pid: Pid) -> bool {
    let process = format!("/proc/{}", pid.as_raw_nonzero());
    let files = std::fs::read_dir(format!("{process}/fd")).into_iter().flatten();
    let open: Vec<_> = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok()).collect();
    let sockets = std::fs::read_to_string(format!("{process}/net/tcp")).unwrap_or_default();
    sockets.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_ours =
            |inode: &&str| open.iter().any(|file| file.as_os_str() == format!("socket:[{inode}]").as_str());
        fields.get(3) == Some(&LISTENING) && fields.get(9).is_some_and(is_ours)
    })
}

/// The state of a listening socket in the system's table.
const LISTENING: &str = "0A";
