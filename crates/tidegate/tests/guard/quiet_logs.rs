//! The log of a busy server, at its most talkative: no secret, no digest, no name.

use rustix::process::Signal;
use serde_json::json;

use crate::{
    http2::Http2,
    support::{
        message::{SIGNATURE, digest, incr, one_step, post_with, set, signature, steps},
        server::{SECRET, Setup},
        wire::{self, Wire},
    },
};

#[test]
fn a_busy_run_at_debug_level_tells_nothing_about_anybody() {
    for format in ["text", "json"] {
        let server =
            Setup::new().set("log.level", "debug").set("log.format", format).set("guard.socket", "s").start();
        let value = "a value that somebody stored";
        let request = one_step("alice@example.com", json!([incr("k"), set("v", value, "always")]));
        let body = request.to_string();
        let name = "bob@example.com";
        let raw = steps(json!([{"partition": name, "commands": [incr("k")]}])).to_string();
        let header = signature(SECRET, body.as_bytes());
        let http2 = Http2::connect(server.guard);
        for _ in 0..3 {
            for body in [&body, &raw, &body.replace("\"by\":1", "\"by\":\"carol@example.com\"")] {
                server.post(body.as_bytes());
                http2.post(body.as_bytes());
            }
            let changed = post_with(&[(SIGNATURE, &header)], raw.as_bytes());
            assert_eq!(Wire::tcp(server.guard).unwrap().exchange(&changed).unwrap().status, 401);
            let mut unix = Wire::unix(&server.setup().folder().join("s")).unwrap();
            unix.exchange(&post_with(&[], body.as_bytes())).unwrap();
            server.metrics();
        }
        let _ = Wire::tcp(server.guard).unwrap().exchange(b"nonsense with alice@example.com\r\n\r\n");
        let _ = wire::get(server.guard, "/alice@example.com");
        let made =
            ["guard_secret", "operator_token", "pepper", "admin_token"].map(|name| server.made_secret(name));
        server.signal(Signal::HUP);
        server.wait_for_log("reloaded");
        let ended = server.terminate();
        assert_eq!(ended.status.code(), Some(0), "{}", ended.log);

        let log = ended.log;
        assert!(log.contains("DEBUG"), "it was talkative: {log}");
        let mut hidden = vec![
            SECRET.to_owned(),
            header.split_once("v1=").unwrap().1.to_owned(),
            digest("alice@example.com"),
            digest("k"),
            digest("v"),
            value.to_owned(),
            request["op"].as_str().unwrap().to_owned(),
            "e2e-pepper".to_owned(),
        ];
        hidden.extend(["alice", "bob", "carol"].map(|name| format!("{name}@example.com")));
        hidden.extend(made);
        for text in hidden {
            assert!(!log.contains(&text), "{format}: {text:?} in the log:\n{log}");
        }
    }
}
