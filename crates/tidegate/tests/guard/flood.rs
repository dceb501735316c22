//! A flood of junk signatures: it is cut by its source, and nobody else is.

use std::{net::Ipv4Addr, thread};

use serde_json::json;

use crate::support::{
    message::{SIGNATURE, incr, one_step, post_with, signed},
    server::{SECRET, Setup},
    wire::Wire,
};

#[test]
fn the_owner_is_served_while_another_source_floods() {
    let server = Setup::new().set("guard.auth_failures_per_second", "50").start();
    let address = server.guard;
    let junk = format!("t={},v1={}", tidegate_store::clock::wall_ms(), "0".repeat(64));
    let body = one_step("flood", json!([incr("k")])).to_string();
    let request = post_with(&[(SIGNATURE, &junk)], body.as_bytes());

    let flood = move || {
        let mut wire = Wire::tcp_from(Ipv4Addr::new(127, 0, 0, 2).into(), address).unwrap();
        for _ in 0..100 {
            wire.send(&request.repeat(10)).unwrap();
            for _ in 0..10 {
                assert_eq!(wire.reply().unwrap().code(), "unauthenticated");
            }
        }
    };
    let floods: Vec<_> = (0..3).map(|_| thread::spawn(flood.clone())).collect();
    let mut owner = Wire::tcp(server.guard).unwrap();
    for count in 1..=50 {
        let body = one_step("owner", json!([incr("k")])).to_string();
        let reply = owner.exchange(&signed(SECRET, body.as_bytes())).unwrap();
        assert_eq!(reply.json()["steps"][0]["results"][0]["value"], count);
    }
    floods.into_iter().for_each(|flood| flood.join().expect("all of it was answered 401"));

    let unread = server.metric("tidegate_guard_unread_refusals_total");
    let refused = server.metric(r#"tidegate_guard_rpcs_total{ending="unauthenticated"}"#);
    assert_eq!(refused, 3000, "each is counted");
    assert!(unread > 1000 && unread < refused, "{unread} of {refused} were refused unread");
    assert_eq!(server.counter("flood", "k"), json!(null));
    let lines = server.log().lines().count();
    assert!(lines < 50, "{lines} lines of log for 3000 strangers");
    // Once more from the owner's address, on a fresh connection.
    assert_eq!(server.counter("owner", "k"), json!("50"));
}
