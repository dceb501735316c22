use tidegate_core::{address::Address, defense::Facts, path::Normal};

use super::*;
use crate::defense::log::{Log, LogBounds};

/// So many clients, each with so many requests in the first 10 s, and one that makes `busiest` of them.
fn suggestion(clients: u8, each: u64, busiest: u64) -> Option<u64> {
    let mut log = Log::new(LogBounds { entries: 100_000, span_ms: u64::MAX });
    let mut request = |client: u8, at_ms: u64| {
        let client = Address::parse(&format!("192.0.2.{client}")).unwrap();
        let facts = Facts { client, method: "GET", path: Normal::recorded(b"/"), user_agent: b"", at_ms };
        log.push(&facts, Kind::Allowed, 200);
    };
    (0..clients).for_each(|client| (0..each).for_each(|_| request(client, 5)));
    (0..busiest).for_each(|_| request(255, 5));
    suggested_rps(&log.snapshot(), 0, 64)
}

#[test]
fn suggestions() {
    let table = [
        ("nothing to go by", 0, 0, 0, None),
        ("too little", 19, 1, 0, None),
        ("one client makes nearly all", 5, 1, 1000, None),
        ("slow clients", 40, 1, 0, Some(1)),
        ("twice the usual peak, over 10 s", 40, 50, 0, Some(10)),
        ("the abuser does not count", 40, 50, 5000, Some(10)),
        ("nor among a few", 6, 50, 200, Some(10)),
    ];
    for (what, clients, each, busiest, expected) in table {
        assert_eq!(suggestion(clients, each, busiest), expected, "{what}");
    }
}
