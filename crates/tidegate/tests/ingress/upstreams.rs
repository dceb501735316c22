//! An app's servers: in turn, and past those that are down.

use std::net::TcpListener;

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
    for _ in 0..20 {
        // The backend closes after this answer, and says nothing of it.
        assert_eq!(wire.exchange(&get("/unread", &[])).unwrap().status, 200);
        assert_eq!(wire.exchange(&get("/echo", &[])).unwrap().status, 200);
    }
}
