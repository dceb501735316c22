//! A server that is told to reload or to stop, and what stops it from starting.

use std::cell::Cell;

use rustix::process::Signal;
use serde_json::json;

use crate::{
    shell::{bash, start, tidegate, unconfigured, write},
    support::{
        eventually,
        message::{self, incr, one_step},
        server::{Ended, Setup},
        wire,
    },
};

const OLD: &str = "the-signing-secret-before-the-rotation-01";
const NEW: &str = "the-signing-secret-after-the-rotation-002";

#[test]
fn a_reload_applies_secrets_and_log_level_and_refuses_faults_as_a_whole() {
    let setup = unconfigured();
    let configure = |level: &str, secrets: &str| {
        write(&setup, "tidegate.toml", &format!("log.level = \"{level}\"\nguard.secrets = [{secrets}]\n"));
    };
    let (old, new) = (format!("{OLD:?}"), format!("{NEW:?}"));
    configure("warn", &old);
    let server = start(&setup);
    let counted = Cell::new(0);
    let status = |secret: &str| {
        let body = one_step("reload", json!([incr("counter")])).to_string();
        let status = message::post_to(server.guard, secret, body.as_bytes()).expect("an answer").status;
        counted.set(counted.get() + u32::from(status == 200));
        status
    };
    assert_eq!([status(OLD), status(NEW)], [200, 401]);

    configure("info", &format!("{new}, {old}"));
    server.signal(Signal::HUP);
    eventually("the new secret", || (status(NEW) == 200).then_some(()));
    assert_eq!(status(OLD), 200, "the previous one is accepted during the rotation");
    // At the level before, this could not be seen.
    server.wait_for_log("configuration reloaded");
    assert!(server.log().contains("guard.secrets, log.level"), "{}", server.log());

    configure("debug", "\"short\"");
    server.signal(Signal::HUP);
    server.wait_for_log("reload-refused");
    assert_eq!([status(OLD), status(NEW)], [200, 200], "the configuration in force stays");

    configure("info", &new);
    server.signal(Signal::HUP);
    eventually("the old secret is refused", || (status(OLD) == 401).then_some(()));
    let body = one_step("reload", json!([message::get("counter")])).to_string();
    let answer = message::post_to(server.guard, NEW, body.as_bytes()).expect("an answer").json();
    let value = &answer["steps"][0]["results"][0]["value"];
    assert_eq!(*value, counted.get().to_string(), "counts live through every reload");
    for secret in [OLD, NEW] {
        assert!(!server.log().contains(secret), "a secret was logged");
    }
}

#[test]
fn both_signals_end_it_in_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Setup::new().start();
        server.signal(signal);
        let ended = server.wait();
        assert_eq!(ended.status.code(), Some(0), "{signal:?}: {}", ended.log);
        assert!(ended.log.contains("stopping") && ended.log.contains("good bye"), "{}", ended.log);
    }
}

#[test]
fn a_fault_of_the_guard_alone_keeps_the_process_up() {
    let server = Setup::new().set("guard.secrets", "short").set("guard.daily_budget", "0");
    let server = server.even_if_not_ready().start();
    assert!(server.banner().contains("every RPC is answered 503"), "{}", server.banner());
    for key in ["guard.secrets[0]", "guard.daily_budget"] {
        server.wait_for_log(key);
    }
    let reply = server.rpc(&one_step("shut", json!([incr("counter")])));
    assert_eq!((reply.status, reply.code().as_str()), (503, "guard_unavailable"));
    assert_eq!(reply.header("retry-after"), Some("30"));
    let statuses =
        ["/healthz", "/readyz"].map(|path| wire::get(server.guard, path).expect("an answer").status);
    assert_eq!(statuses, [200, 503]);
    assert!(server.metrics().contains("tidegate_guard_rpcs"), "the metrics are served");
    assert_eq!(server.terminate().status.code(), Some(0));
}

#[test]
fn what_stops_a_start_is_said_at_once_and_in_full() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken.local_addr().expect("it is bound").to_string();
    let listener = std::net::TcpListener::bind(&taken).ok();
    let table: [(&str, &str, &[&str]); 5] = [
        ("guard.listen", "not an address", &["environment TIDEGATE_GUARD__LISTEN", "guard.listen: must be"]),
        ("guard.listen", &taken, &[&taken, "guard.listen", "in use"]),
        ("guard.listen", "0.0.0.0:0", &["guard.listen", "allow_cleartext"]),
        ("store.kind", "postgres", &["store.url", "is missing", "postgres://"]),
        ("store.path", "/proc/nothing/here", &["/proc/nothing/here"]),
    ];
    for (key, value, said) in table {
        let Err(Ended { status, log }) = Setup::new().set(key, value).try_start() else {
            panic!("{key} = {value} was served")
        };
        assert_eq!(status.code(), Some(78), "{key} = {value}: {log}");
        for part in said {
            assert!(log.contains(part), "{key} = {value}: {log}\nlacks {part}");
        }
    }
    drop(listener);
    let setup = Setup::new().set("guard.listen", "x").set("admin.listen", "y").set("store.max_calls", "0");
    tidegate(&setup, "serve").assert(78, &["guard.listen: ", "admin.listen: ", "store.max_calls: "]);
}

#[test]
fn whoever_reads_the_output_may_go() {
    let setup = Setup::new();
    let ran = bash(&setup, "tidegate config --reference | head -n 1");
    ran.assert(0, &["Every key of Tidegate"]);
    assert_eq!(ran.err, "", "no panic, no complaint");
}
