//! The condition of a policy, in each of its cases.

use std::{
    fs,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};

use rustix::process::Signal;
use serde_json::json;

use crate::{
    backend::Backend,
    rig::{Rig, get, setup},
    support::{eventually, server::Setup, wire::Wire},
};

#[test]
fn modes_and_routes() {
    let backend = Backend::start();
    let unreached = Backend::start();
    let server = setup(&backend)
        .set("apps.off.domains", "off.example")
        .set("apps.off.upstreams", unreached.address.to_string())
        .set("apps.off.stopped", "true")
        .set("apps.nowhere.upstreams", unreached.address.to_string())
        .start();
    let rig = Rig { server, backend };
    let condition = |app: &str| {
        let status = rig.told(&format!("/apps/{app}/abuse"))["status"].clone();
        assert!(status["message"].as_str().unwrap().ends_with('.'), "{status}");
        status["condition"].as_str().unwrap().to_owned()
    };
    assert_eq!(condition("shop"), "LogOnly", "where nothing was saved");
    for (mode, expected) in [("enforce", "Enforcing"), ("off", "Off"), ("log_only", "LogOnly")] {
        assert_eq!(rig.put(&format!(r#"{{"mode":"{mode}"}}"#))["status"]["condition"], expected);
        assert_eq!(condition("shop"), expected);
        let list = rig.told("/apps");
        let listed = list["apps"].as_array().unwrap().iter().find(|app| app["app"] == "shop").unwrap();
        assert_eq!((&listed["status"]["condition"], &listed["mode"]), (&json!(expected), &json!(mode)));
    }
    for app in ["off", "nowhere"] {
        rig.api("PUT", &format!("/apps/{app}/abuse"), r#"{"mode":"enforce"}"#);
        assert_eq!(condition(app), "NoRoutes", "{app}");
    }
}

/// A proxy stands in front, and nobody has named it: seen from the first twenty requests on, gone once it is named.
#[test]
fn a_proxy_that_hides_its_clients() {
    let backend = Backend::start();
    let setup = Setup::new();
    let write = |more: &str| {
        let text = format!(
            "[apps.shop]\ndomains = [\"shop.example\"]\nupstreams = [\"{}\"]\n{more}",
            backend.address
        );
        fs::write(setup.folder().join("tidegate.toml"), text).unwrap();
    };
    write("");
    let rig = Rig { server: setup.start(), backend: backend.clone() };
    for number in 0..19 {
        rig.get("/echo", &[("X-Forwarded-For", &format!("192.0.2.{number}"))]);
    }
    assert_eq!(rig.status().0, "LogOnly", "19 requests say nothing");
    rig.get("/echo", &[("Forwarded", "for=192.0.2.77")]);
    let (condition, message) = rig.status();
    assert_eq!(condition, "ClientIPHidden");
    assert!(message.contains("ingress.trusted_proxies"), "{message}");
    rig.put(r#"{"mode":"enforce","rps":1000,"burst":1000}"#);
    assert_eq!((rig.status().0.as_str(), &rig.view()["suggested_rps"]), ("ClientIPHidden", &json!(null)));
    rig.put(r#"{"mode":"off"}"#);
    assert_eq!(rig.status().0, "Off");
    rig.put(r#"{"mode":"enforce","rps":1000,"burst":1000}"#);

    write("[ingress]\ntrusted_proxies = [\"127.0.0.1\"]\n");
    rig.server.signal(Signal::HUP);
    rig.server.wait_for_log("configuration reloaded");
    eventually("it is trusted", || {
        rig.get("/echo", &[("X-Forwarded-For", "192.0.2.1")]);
        (rig.status().0 == "Enforcing").then_some(())
    });
}

/// Visitors who write the header themselves are no proxy: they are many, or few among many without one.
#[test]
fn visitors_are_no_proxy() {
    let rig = Rig::start();
    for number in 2..32 {
        let mut wire = rig.wire_from(&format!("127.0.0.{number}"));
        wire.exchange(&get("/echo", &[("X-Forwarded-For", "192.0.2.1")])).unwrap();
    }
    assert_eq!(rig.status().0, "LogOnly", "from thirty peers");
    let rig = Rig::start();
    for number in 0..40 {
        let forwarded = [("X-Forwarded-For", "192.0.2.1")];
        rig.get("/echo", if number % 4 == 0 { &forwarded } else { &[] });
    }
    assert_eq!(rig.status().0, "LogOnly", "on a quarter of them");
}

/// One socket for both families: who comes over IPv4 is the same client, trusted and denied as such.
#[test]
fn a_dual_stack_listener_knows_ipv4() {
    let mut rig = Rig::with(|setup| {
        setup
            .set("ingress.listen", "[::]:0")
            .set("ingress.trusted_proxies", "127.0.0.2")
            .set("ingress.deny_cidrs", "127.0.0.3,0.0.0.0/8")
    });
    let v6 = rig.server.apps;
    rig.server.apps = SocketAddr::from((Ipv4Addr::LOCALHOST, v6.port()));
    rig.put(r#"{"mode":"enforce","rps":0.001,"burst":2,"deny_cidrs":["127.0.0.4/32"],"allow_cidrs":["127.0.0.5"]}"#);
    let ask = |peer: &str, forwarded: &[(&str, &str)]| {
        rig.wire_from(peer).exchange(&get("/echo", forwarded)).unwrap().status
    };
    let client = [("X-Forwarded-For", "::ffff:192.0.2.1")];
    assert_eq!([(); 3].map(|()| ask("127.0.0.1", &[])), [200, 200, 429]);
    assert_eq!([(); 3].map(|()| ask("127.0.0.6", &[])), [200, 200, 429], "not all of IPv4 is one client");
    assert_eq!((ask("127.0.0.3", &[]), ask("127.0.0.4", &[])), (403, 403), "denied by either list");
    assert_eq!([(); 5].map(|()| ask("127.0.0.5", &[])), [200; 5], "allowed");
    assert_eq!([(); 3].map(|()| ask("127.0.0.2", &client)), [200, 200, 429], "a trusted peer's word");
    assert_eq!(ask("127.0.0.2", &[("X-Forwarded-For", "192.0.2.1")]), 429);
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, v6.port()));
    let mut loopback = Wire::tcp(v6).unwrap();
    assert_eq!(loopback.exchange(&get("/echo", &[])).unwrap().status, 200, "::1 is not 0.0.0.1");
}
