use tidegate_core::address::Address;

use super::*;

fn origin(peer: u8, forwarded: bool, trusted: bool) -> Origin {
    Origin { peer: Address::parse(&format!("192.0.2.{peer}")).unwrap(), forwarded, trusted }
}

#[test]
fn a_proxy_that_hides_clients() {
    type Case = (&'static str, usize, fn(usize) -> Origin, bool);
    let table: [Case; 8] = [
        ("one untrusted proxy", 20, |_| origin(1, true, false), true),
        ("too few requests to tell", 19, |_| origin(1, true, false), false),
        ("a few proxies", 60, |n| origin(u8::try_from(n % 4).unwrap(), true, false), true),
        (
            "visitors that send such a header",
            60,
            |n| origin(u8::try_from(n % 60).unwrap(), true, false),
            false,
        ),
        ("a trusted proxy", 60, |_| origin(1, true, true), false),
        ("one trusted among them", 60, |n| origin(1, true, n == 59), false),
        ("no header", 60, |_| origin(1, false, false), false),
        ("a header on half of them", 60, |n| origin(1, n % 2 == 0, false), false),
    ];
    for (what, count, request, hidden) in table {
        let mut sources = Sources::default();
        for n in 0..count {
            sources.note(request(n), 0);
        }
        assert_eq!(sources.hide_clients(1), hidden, "{what}");
        assert!(!sources.hide_clients(RECENT_MS), "what is old does not count: {what}");
    }
}

#[test]
fn the_newest_count() {
    let mut sources = Sources::default();
    for _ in 0..500 {
        sources.note(origin(1, true, false), 0);
    }
    assert!(sources.hide_clients(0) && sources.ring.len() == SAMPLES);
    for _ in 0..40 {
        sources.note(origin(1, false, false), 0);
    }
    assert!(!sources.hide_clients(0));
}
