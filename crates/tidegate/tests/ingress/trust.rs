//! The list of trusted proxies: all of it holds, or nothing starts.

use crate::{
    backend::{Backend, value},
    rig::{Rig, get, setup},
};

#[track_caller]
fn refused(list: &str, says: &str) {
    let setup = setup(&Backend::start()).set("ingress.trusted_proxies", list);
    let ended = setup.try_start().expect_err(list);
    assert_eq!(ended.status.code(), Some(78), "{list:?}: {}", ended.log);
    assert!(
        ended.log.contains("ingress.trusted_proxies") && ended.log.contains(says),
        "{list:?}: {}",
        ended.log
    );
}

#[test]
fn an_entry_that_is_no_network_stops_the_start() {
    for (list, says) in [
        ("198.51.100.0/33", "32 bits"),
        ("198.51.100.0/ 24", ""),
        ("proxy.example", "no address"),
        ("198.51.100.0/24,proxy.example", "[1]"),
        ("198.51.100.0/24,,203.0.113.1", "[1]"),
        ("198.51.100.3/24", "198.51.100.0/24"),
        ("0.0.0.0/0", "allow_broad_trust"),
        ("192.0.2.1/0", ""),
        ("::/0", "allow_broad_trust"),
        ("::ffff:0:0/96", ""),
        ("2000::/3", "allow_broad_trust"),
        ("10.0.0.0/7", "allow_broad_trust"),
    ] {
        refused(list, says);
    }
}

#[test]
fn blanks_around_an_entry_lose_none() {
    let rig =
        Rig::with(|setup| setup.set("ingress.trusted_proxies", " 127.0.0.1 ,\t127.0.0.2,127.0.0.64/26\n"));
    for (peer, trusted) in
        [("127.0.0.1", true), ("127.0.0.2", true), ("127.0.0.77", true), ("127.0.0.3", false)]
    {
        let reply = rig.wire_from(peer).exchange(&get("/echo", &[("X-Forwarded-For", "192.0.2.7")])).unwrap();
        let client = if trusted { "192.0.2.7" } else { peer };
        assert_eq!(value(&reply.text(), "x-forwarded-for"), Some(client), "{peer}");
    }
}

#[test]
fn everybody_is_trusted_only_where_it_is_said_twice() {
    let rig = Rig::with(|setup| {
        setup.set("ingress.trusted_proxies", "0.0.0.0/0").set("ingress.allow_broad_trust", "true")
    });
    assert_eq!(value(&rig.seen(&[("X-Forwarded-For", "192.0.2.7")]), "x-forwarded-for"), Some("192.0.2.7"));
}
