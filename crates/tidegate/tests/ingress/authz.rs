//! Other proxies ask at a listener of their own.

use std::net::SocketAddr;

use crate::{rig::Rig, support::wire};

fn address(rig: &Rig) -> SocketAddr {
    let banner = rig.server.banner();
    let line = banner.lines().find(|line| line.starts_with("  authz ")).expect("it is served");
    line.split("://").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap().parse().unwrap()
}

#[test]
fn a_proxy_is_told_what_the_firewall_says() {
    let rig = Rig::with(|setup| {
        setup
            .set("ingress.authz_listen", "127.0.0.1:0")
            .set("ingress.trusted_proxies", "127.0.0.1")
            .set("ingress.deny_cidrs", "203.0.113.0/24")
    });
    for (client, status) in [("192.0.2.1", 200), ("203.0.113.1", 403)] {
        let headers = [
            ("x-forwarded-for", client),
            ("x-forwarded-host", "shop.example"),
            ("x-forwarded-method", "GET"),
            ("x-forwarded-uri", "/"),
        ];
        for target in ["/authz?app=shop", "/authz", "/authz?app=no-such-app"] {
            let reply = wire::get_with(address(&rig), target, &headers).unwrap();
            assert_eq!(reply.status, status, "{client} {target}: {}", reply.text());
        }
    }
    assert_eq!(rig.backend.connections(), 0);
}

#[test]
fn the_firewall_comes_before_the_question_which_app_it_is() {
    let rig = Rig::with(|setup| {
        setup.set("ingress.trusted_proxies", "127.0.0.1").set("ingress.deny_cidrs", "203.0.113.0/24")
    });
    for (client, status) in [("192.0.2.1", 404), ("203.0.113.1", 403)] {
        let request =
            format!("GET / HTTP/1.1\r\nHost: no-such-app.example\r\nX-Forwarded-For: {client}\r\n\r\n");
        let reply = rig.wire().exchange(request.as_bytes()).unwrap();
        assert_eq!(reply.status, status, "{client}: {}", reply.text());
    }
}
