//! SIGHUP: what is new is taken over, what is the same goes on, and what is faulty changes nothing.

use std::{fs, thread};

use rustix::process::Signal;

use crate::{
    backend::Backend,
    rig::{HOST, Rig, get},
    support::{eventually, server::Setup},
};

fn write(setup: &Setup, backend: &Backend, more: &str) {
    let text = format!("[apps.shop]\ndomains = [\"{HOST}\"]\nupstreams = [\"{}\"]\n{more}", backend.address);
    fs::write(setup.folder().join("tidegate.toml"), text).unwrap();
}

#[test]
fn apps_and_lists_change_and_connections_stay() {
    let backend = Backend::start();
    let setup = Setup::new();
    write(&setup, &backend, "");
    let rig = Rig { server: setup.start(), backend };
    let mut kept = rig.wire();
    assert_eq!(kept.exchange(&get("/echo", &[])).unwrap().status, 200);

    write(&setup, &rig.backend, "stopped = true\n[apps.new]\ndomains = [\"new.example\"]\nroot = \".\"\n");
    rig.server.signal(Signal::HUP);
    eventually("the app is stopped", || (rig.get("/echo", &[]).status == 503).then_some(()));
    assert_eq!(kept.exchange(&get("/echo", &[])).unwrap().status, 503);

    write(&setup, &rig.backend, "[ingress]\ndeny_cidrs = [\"127.0.0.9\"]\n");
    rig.server.signal(Signal::HUP);
    eventually("it runs again", || (rig.get("/echo", &[]).status == 200).then_some(()));
    assert_eq!(kept.exchange(&get("/echo", &[])).unwrap().status, 200);
    assert_eq!(rig.wire_from("127.0.0.9").exchange(&get("/echo", &[])).unwrap().status, 403);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    assert!(rig.backend.connections() <= threads, "connections to an upstream that stays are kept");

    write(&setup, &rig.backend, "domain = [\"x\"]\n");
    rig.server.signal(Signal::HUP);
    rig.server.wait_for_log("reload-refused");
    assert_eq!(kept.exchange(&get("/echo", &[])).unwrap().status, 200);
}
