//! The defense at its place in the path: who is counted as whom, and what the app never sees.

use crate::{
    frames::{END_HEADERS, END_STREAM, Frames, HEADERS, RST_STREAM, frame},
    rig::{Rig, get},
    support::server::Setup,
};

/// A server behind the proxies 127.0.0.1 and 198.51.100.0/24, whose policy lets each client make `burst` requests and
/// then one in a quarter of an hour.
fn limited(burst: u32, more: impl FnOnce(Setup) -> Setup) -> Rig {
    let rig = Rig::with(|setup| more(setup.set("ingress.trusted_proxies", "127.0.0.1,198.51.100.0/24")));
    rig.put(&format!(r#"{{"mode":"enforce","rps":0.001,"burst":{burst}}}"#));
    rig
}

/// How many of so many requests are let through, the forwarded header of each made from its number.
fn admitted(rig: &Rig, requests: usize, forwarded: impl Fn(usize) -> String) -> usize {
    let mut wire = rig.wire();
    let statuses = (0..requests).map(|index| {
        let reply = wire.exchange(&get("/echo", &[("X-Forwarded-For", &forwarded(index))])).unwrap();
        assert!(matches!(reply.status, 200 | 429), "{}: {}", reply.status, reply.text());
        reply.status
    });
    statuses.filter(|status| *status == 200).count()
}

#[test]
fn a_forged_left_end_buys_no_fresh_bucket() {
    let rig = limited(5, |setup| setup);
    assert_eq!(admitted(&rig, 20, |index| format!("203.0.113.{index}, 192.0.2.7")), 5);
    assert_eq!(rig.backend.whole().len(), 5);
    assert_eq!(admitted(&rig, 1, |_| "203.0.113.1".to_owned()), 1, "nobody else's is spent");
}

#[test]
fn one_client_has_one_bucket_however_it_is_written() {
    let rig = limited(5, |setup| setup);
    assert_eq!(admitted(&rig, 10, |index| format!("192.0.2.7:{}", 51_034 + index)), 5);
    assert_eq!(admitted(&rig, 2, |_| "::ffff:192.0.2.7".to_owned()), 0);
    assert_eq!(admitted(&rig, 2, |_| "64:ff9b::c000:207".to_owned()), 0);
    assert_eq!(admitted(&rig, 1, |_| "::c000:207".to_owned()), 1);
    // One of IPv6 has a network to itself.
    assert_eq!(admitted(&rig, 100, |index| format!("2001:db8:aa:bb00::{index:x}")), 5);
    assert_eq!(admitted(&rig, 100, |index| format!("[2001:db8:aa:bb01::{index:x}]:443")), 5);
    assert_eq!(admitted(&rig, 10, |index| format!("2001:db8:aa:{index:x}::1")), 10);
}

#[test]
fn garbage_is_charged_to_the_hop_that_vouched_for_it() {
    for form in ["{${print(#)}}", "192.0.2.7, not-an-ip-#", "192.0.2.#, unknown", "fe80::1%eth#"] {
        let rig = limited(5, |setup| setup);
        assert_eq!(admitted(&rig, 20, |index| form.replace('#', &index.to_string())), 5, "{form}");
        assert!(!rig.server.log().contains("not-an-ip"), "{form}");
        let unreadable = rig.server.metric("http_forwarded_unreadable_total");
        assert_eq!(unreadable, if form.starts_with("fe80") { 0 } else { 20 }, "{form}");
    }
}

#[test]
fn strangers_spend_their_own() {
    let rig = limited(5, |setup| setup.set("ingress.trusted_proxies", "198.51.100.0/24"));
    assert_eq!(admitted(&rig, 20, |index| format!("192.0.2.{index}")), 5);
}

#[test]
fn a_refusal_is_short_and_says_when_to_come_again() {
    let rig = limited(1, |setup| setup);
    assert_eq!(rig.get("/echo", &[]).status, 200);
    let refused = rig.get("/echo", &[("Accept", "application/json")]);
    assert_eq!((refused.status, refused.code().as_str()), (429, "rate_limited"));
    for header in ["retry-after", "ratelimit", "ratelimit-policy"] {
        assert!(refused.header(header).is_some(), "{header}");
    }
    let refused = rig.get("/echo", &[]);
    assert!(
        refused.body.len() < 300 && refused.text().starts_with("Too many requests"),
        "{}",
        refused.text()
    );
    let lines = rig.server.log().lines().count();
    assert_eq!(admitted(&rig, 2_000, |_| "127.0.0.1".to_owned()), 0);
    assert!(rig.server.log().lines().count() < lines + 60, "{}", rig.server.log());
    assert_eq!(rig.backend.whole().len(), 1);
}

#[test]
fn upgrades_are_counted_and_what_goes_through_them_is_not() {
    let rig = limited(10, |setup| setup);
    let upgrade = get("/ws", &[("Connection", "Upgrade"), ("Upgrade", "websocket")]);
    let mut tunnels = Vec::new();
    for index in 0..20 {
        let mut wire = rig.wire();
        let reply = wire.exchange(&upgrade).unwrap();
        assert_eq!(reply.status, if index < 10 { 101 } else { 429 });
        tunnels.push(wire);
    }
    for _ in 0..100 {
        tunnels[0].send(b"ping").unwrap();
    }
}

#[test]
fn a_cancelled_stream_has_cost_something() {
    let rig = limited(20, |setup| setup);
    let mut frames = Frames::connect(rig.server.apps);
    for index in 0..5_000_u32 {
        let stream = index * 2 + 1;
        let begin = frame(HEADERS, END_HEADERS | END_STREAM, stream, &crate::frames::get("/silent"));
        if frames.raw(&[begin, frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()).is_err() {
            break;
        }
    }
    let _farewell = frames.farewell();
    assert!(rig.backend.whole().len() <= 20, "{}", rig.backend.whole().len());
}

#[test]
fn a_reload_fills_no_bucket() {
    let rig = limited(3, |setup| setup);
    assert_eq!(admitted(&rig, 5, |_| "192.0.2.7".to_owned()), 3);
    rig.server.signal(rustix::process::Signal::HUP);
    rig.server.wait_for_log("configuration reloaded");
    assert_eq!(admitted(&rig, 5, |_| "192.0.2.7".to_owned()), 0);
}
