//! Heads that are too long, or have too many lines.

use std::fs;

use crate::rig::{HOST, Rig, get};

#[test]
fn floods_of_headers_are_refused_within_a_bound() {
    let rig = Rig::start();
    let before = resident_kib(&rig);
    let many: String = (0..1_000).map(|index| format!("X-{index}: y\r\n")).collect();
    let long = "x".repeat(70 * 1024);
    for (request, statuses) in [
        (format!("GET / HTTP/1.1\r\nHost: {HOST}\r\nX: {long}\r\n\r\n"), &[431][..]),
        (format!("GET / HTTP/1.1\r\nHost: {HOST}\r\n{many}\r\n"), &[431]),
        (format!("GET /{long} HTTP/1.1\r\nHost: {HOST}\r\n\r\n"), &[414, 431]),
        (format!("GET / HTTP/1.1\r\nHost: {HOST}\r\nX: {}", long.repeat(20)), &[431]),
    ] {
        let mut wire = rig.wire();
        let _ = wire.send(request.as_bytes());
        let answer = String::from_utf8_lossy(&wire.until_closed().unwrap()).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        assert!(status.is_none_or(|status: u16| statuses.contains(&status)), "{statuses:?}: {answer}");
    }
    assert_eq!(rig.backend.whole().len(), 0);
    assert!(resident_kib(&rig) < before + 8 * 1024, "from {before} to {} KiB", resident_kib(&rig));
    // Within the bounds all is well.
    let within: Vec<(String, String)> =
        (0..60).map(|index| (format!("x-{index}"), "y".repeat(200))).collect();
    let headers: Vec<_> = within.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(rig.wire().exchange(&get("/echo", &headers)).unwrap().status, 200);
}

#[test]
fn a_head_says_for_whom_it_is() {
    let rig = Rig::start();
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n".to_owned(), "400"),
        (format!("GET / HTTP/1.1\r\nHost: {HOST}\r\nHost: {HOST}\r\n\r\n"), "400"),
        (format!("GET * HTTP/1.1\r\nHost: {HOST}\r\n\r\n"), "400"),
        ("GET / HTTP/1.0\r\n\r\n".to_owned(), "404"),
    ] {
        let mut wire = rig.wire();
        wire.send(request.as_bytes()).unwrap();
        let answer = String::from_utf8_lossy(&wire.until_closed().unwrap()).into_owned();
        assert_eq!(answer.split(' ').nth(1), Some(status), "{request:?}: {answer}");
    }
    assert_eq!(rig.backend.whole().len(), 0);
}

fn resident_kib(rig: &Rig) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", rig.server.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line of it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
