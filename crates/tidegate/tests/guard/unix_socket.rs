//! The Unix socket: whoever may open it is trusted, and nobody else may.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::ExitStatusExt},
};

use serde_json::json;

use crate::support::{
    message::{incr, one_step, post_with},
    server::{Server, Setup},
    wire::{self, Wire},
};

fn setup() -> Setup {
    Setup::new().set("guard.socket", "guard.sock")
}

#[test]
fn rpc_without_a_signature_and_nothing_else() {
    let server = setup().start();
    let path = server.setup().folder().join("guard.sock");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    let mut wire = Wire::unix(&path).unwrap();
    for count in 1..=2 {
        let body = one_step("unix", json!([incr("k")])).to_string();
        let reply = wire.exchange(&post_with(&[], body.as_bytes())).unwrap();
        assert_eq!(reply.json()["steps"][0]["results"][0]["value"], count);
    }
    assert_eq!(server.counter("unix", "k"), json!("2"), "the same store as over TCP");
    for (method, target, status) in [
        ("GET", "/healthz", 404),
        ("GET", "/readyz", 404),
        ("GET", "/metrics", 404),
        ("POST", "/control/stop", 404),
        ("GET", "/v1/rpc", 405),
    ] {
        let reply = wire.exchange(&wire::request(method, target, &[], b"")).unwrap();
        assert_eq!(reply.status, status, "{method} {target}");
    }
    assert_eq!(wire.exchange(&post_with(&[], b"{}")).unwrap().code(), "bad_request");
    let large = wire.exchange(&post_with(&[], &[b' '; 16 * 1024 + 1])).unwrap();
    assert_eq!((large.status, large.code().as_str()), (413, "body_too_large"));

    let ended = server.terminate();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
    assert!(!path.exists(), "the socket's file goes with its server");
}

#[test]
fn the_file_of_a_dead_process_is_replaced() {
    let server = setup().start();
    let setup = server.setup().clone();
    let path = setup.folder().join("guard.sock");
    let ended = server.kill();
    assert!(ended.status.signal().is_some() && path.exists(), "{ended:?}");
    let _server = setup.start();
    let body = one_step("again", json!([incr("k")])).to_string();
    let reply = Wire::unix(&path).unwrap().exchange(&post_with(&[], body.as_bytes())).unwrap();
    assert_eq!(reply.status, 200);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_socket_of_a_living_process_is_left_alone() {
    let first = setup().start();
    let path = first.setup().folder().join("guard.sock");
    let ended = Setup::new().set("guard.socket", &path).try_start().expect_err("it is taken");
    assert_eq!(ended.status.code(), Some(78), "{}", ended.log);
    assert!(ended.log.contains("guard.socket") && ended.log.contains("guard.sock"), "{}", ended.log);
    assert_still_served(&first, &path);
}

#[test]
fn a_file_that_is_no_socket_is_not_removed() {
    let setup = setup();
    let path = setup.folder().join("guard.sock");
    fs::write(&path, "somebody's notes").unwrap();
    let ended = setup.try_start().expect_err("there is a file");
    assert_eq!(ended.status.code(), Some(78), "{}", ended.log);
    assert!(ended.log.contains("guard.socket"), "{}", ended.log);
    assert_eq!(fs::read_to_string(&path).unwrap(), "somebody's notes");
}

fn assert_still_served(server: &Server, path: &std::path::Path) {
    let body = one_step("first", json!([incr("k")])).to_string();
    let reply = Wire::unix(path).unwrap().exchange(&post_with(&[], body.as_bytes())).unwrap();
    assert_eq!(reply.status, 200);
    assert_eq!(server.counter("first", "k"), json!("1"));
}
