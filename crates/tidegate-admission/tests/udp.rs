//! The gate for datagrams, called as a mediator calls it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::net::IpAddr;

use prometheus_client::{encoding::text::encode, registry::Registry};
use tidegate_admission::{Clock, Fingerprint, HttpAdmission, Operation, Profile, Seed, Sender, UdpGate};

const HANDLE: &[u8] = b"handle";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn gate(change: impl FnOnce(&mut Profile)) -> UdpGate {
    let mut profile = Profile::default();
    change(&mut profile);
    UdpGate::new(&profile, Seed::from([5; 16])).unwrap()
}

/// Of `datagrams` from a source, how many pass stage one.
fn admitted(gate: &UdpGate, now_ms: u64, source: &str, wire_operation: u8, datagrams: usize) -> usize {
    let source = ip(source);
    (0..datagrams).filter(|_| gate.stage_one(now_ms, source, wire_operation, 100).is_some()).count()
}

fn narrow(profile: &mut Profile) {
    profile.udp.source_prefix.spent.all = 10;
    profile.udp.source_prefix.spent.optional = 10;
}

#[test]
fn a_network_has_one_budget_whatever_the_port_and_form() {
    let gate = gate(narrow);
    for (now_ms, source, expected) in [
        (0, "192.0.2.9", 10),
        (999, "192.0.2.10", 0),
        (999, "::ffff:192.0.2.11", 0),
        (999, "203.0.113.10", 10),
        (999, "2001:db8:aa:bb00::1", 10),
        (999, "2001:db8:aa:bbff::1", 0),
        (999, "2001:db8:aa:bc00::1", 10),
        (1000, "192.0.2.9", 10),
    ] {
        assert_eq!(admitted(&gate, now_ms, source, 1, 1000), expected, "{now_ms} {source}");
    }
}

#[test]
fn wire_operations_are_isolated() {
    let gate = gate(|profile| {
        profile.udp.wire_operation.spent.all = 5;
        profile.udp.wire_operation.spent.optional = 5;
    });
    assert_eq!(admitted(&gate, 0, "192.0.2.9", 1, 50), 5);
    assert_eq!(admitted(&gate, 0, "192.0.2.9", 255, 50), 5, "whatever the byte, known or not");
    assert_eq!(admitted(&gate, 0, "203.0.113.1", 1, 50), 0);
    assert_eq!(admitted(&gate, 1000, "203.0.113.1", 1, 50), 5);
}

#[test]
fn what_is_verified_has_budgets_of_its_own() {
    let gate = gate(narrow);
    // Forged datagrams in the name of somebody spend the budget of the network alone.
    assert_eq!(admitted(&gate, 0, "192.0.2.7", 1, 200), 10);
    let [one, other] = [b"one", b"two"].map(|secret| Fingerprint::of(secret));
    let verified = |capability, role, handle: &[u8]| {
        let sender = Sender { capability, role, mediation_handle: handle };
        (0..50).filter(|_| gate.stage_two(0, &sender)).count()
    };
    assert_eq!(verified(one, 1, HANDLE), 10, "the capability's budget");
    assert_eq!(verified(other, 1, HANDLE), 10);
    assert_eq!(verified(Fingerprint::of(b"third"), 1, HANDLE), 0, "the exchange has spent its 20");
    assert_eq!(verified(Fingerprint::of(b"third"), 1, b"other"), 10);
}

#[test]
fn roles_are_isolated() {
    let gate = gate(|profile| {
        profile.udp.role.spent.all = 3;
        profile.udp.role.spent.optional = 3;
    });
    let verified = |role| {
        let sender = |number: u8| Sender {
            capability: Fingerprint::of(&[role, number]),
            role,
            mediation_handle: HANDLE,
        };
        (0..50).filter(|number| gate.stage_two(0, &sender(*number))).count()
    };
    assert_eq!((verified(0), verified(1)), (3, 3));
}

/// A flood of forged networks fills what anybody may fill, and no more; who is verified still finds room.
#[test]
fn forged_sources_fill_the_table_up_to_the_reserve() {
    let gate = gate(|profile| {
        profile.udp.bounds.max_tracked_keys = 1000;
        profile.udp.bounds.critical_tracked_key_reserve = 100;
    });
    let flood = |now_ms, numbers: std::ops::Range<u32>| {
        numbers
            .filter(|number| {
                let source = std::net::Ipv4Addr::from_bits(number << 8);
                gate.stage_one(now_ms, source.into(), (number % 7) as u8, 100).is_some()
            })
            .count()
    };
    assert_eq!(flood(0, 0..100_000), 900);
    let bytes = gate.bytes();
    assert_eq!(flood(0, 100_000..200_000), 0);
    assert_eq!((gate.tracked_keys(0), gate.bytes()), (900, bytes));
    let sender = |number: &'static [u8]| Sender {
        capability: Fingerprint::of(number),
        role: 0,
        mediation_handle: number,
    };
    assert!(gate.stage_two(0, &sender(b"verified")), "from the reserve");
    assert_eq!(gate.tracked_keys(0), 902);
    assert_eq!(flood(1000, 0..100_000), 900, "the next window begins empty");
}

#[test]
fn a_spent_window_says_how_long_to_leave_the_socket_alone() {
    let gate = gate(|profile| {
        profile.udp.global.spent.all = 3;
        profile.udp.global.spent.optional = 3;
    });
    assert_eq!(gate.closed_for_ms(0), None);
    assert_eq!(admitted(&gate, 250, "192.0.2.1", 1, 10), 3);
    assert_eq!((gate.closed_for_ms(250), gate.closed_for_ms(999)), (Some(750), Some(1)));
    assert_eq!(gate.closed_for_ms(1000), None);
}

#[test]
fn no_more_is_sent_than_was_received() {
    let gate = gate(|_| ());
    let mut allowance = gate.stage_one(0, ip("192.0.2.1"), 1, 62).unwrap().into_allowance();
    assert!(!allowance.take(150), "62 in, 150 out: somebody else's attack");
    assert!(allowance.take(40) && !allowance.take(23) && allowance.take(22));
    assert!(!allowance.take(1));
    assert!(allowance.take(0));
    allowance.add(gate.stage_one(0, ip("192.0.2.1"), 1, 10).unwrap().into_allowance());
    assert_eq!(allowance.left(), 10);
}

#[test]
fn datagrams_and_requests_share_nothing() {
    let profile = Profile::default();
    let http = HttpAdmission::new(&profile, Seed::from([5; 16]), Clock::manual()).unwrap();
    let gate = gate(narrow);
    let before = (http.tracked_keys(), http.bytes());
    for number in 0..100_000_u32 {
        let source = std::net::Ipv4Addr::from_bits(number << 8);
        let _ = gate.stage_one(0, source.into(), 1, 100);
    }
    assert_eq!(admitted(&gate, 0, "0.0.1.1", 1, 100), 0);
    assert_eq!((http.tracked_keys(), http.bytes()), before);
    assert!(http.stage_one(ip("0.0.1.1").into(), Operation::optional(0)).is_ok());
}

/// The series are there from the start, and there are no more of them after a flood.
#[test]
fn metrics_have_no_identities() {
    let gate = gate(narrow);
    let mut registry = Registry::default();
    gate.register(&mut registry);
    let series = || {
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    };
    let before = series();
    assert_eq!(admitted(&gate, 0, "198.51.100.77", 1, 1000), 10);
    let after = series();
    assert_eq!(before.lines().count(), after.lines().count());
    assert!(!after.contains("198") && !after.contains("51.100"), "{after}");
    let refused = r#"tidegate_admission_udp_refused_total{dimension="source_prefix",cause="rate"} 990"#;
    assert!(after.contains(refused) && after.contains(r#"udp_admitted_total{stage="one"} 10"#), "{after}");
}
