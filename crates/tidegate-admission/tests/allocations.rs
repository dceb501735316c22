//! What admission allocates in the steady state, counted by the allocator.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::net::{IpAddr, Ipv4Addr};

use tidegate_admission::{
    Clock, Fingerprint, HttpAdmission, Operation, Profile, Scope, Seed, Sender, UdpGate,
};

const TIMES: u8 = 200;

fn source(number: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, number % 4, 1).into()
}

#[test]
fn both_stages_of_a_request_allocate_nothing() {
    let admission = HttpAdmission::new(&Profile::default(), Seed::from([1; 16]), Clock::machine()).unwrap();
    let request = |number: u8| {
        let capability = Fingerprint::of(&[number % 8; 32]);
        let mut lease = admission.stage_one(source(number).into(), Operation::critical(number)).unwrap();
        let resource = [number];
        let scope = Scope::new().tenant(b"tenant").capability(capability).resource(&resource);
        lease.stage_two(&scope).unwrap();
    };
    (0..TIMES).for_each(request);
    let counted = allocation_counter::measure(|| (0..80).for_each(request));
    assert_eq!(counted.count_total, 0, "{counted:?}");
}

#[test]
fn a_refused_request_allocates_nothing() {
    let mut profile = Profile::default();
    profile.http.source_prefix.spent.optional = 1;
    let admission = HttpAdmission::new(&profile, Seed::from([1; 16]), Clock::manual()).unwrap();
    let request = |number: u8| drop(admission.stage_one(source(number).into(), Operation::optional(0)));
    (0..TIMES).for_each(request);
    let counted = allocation_counter::measure(|| (0..TIMES).for_each(request));
    assert_eq!(counted.count_total, 0, "{counted:?}");
}

#[test]
fn both_stages_of_a_datagram_allocate_nothing() {
    let gate = UdpGate::new(&Profile::default(), Seed::from([1; 16])).unwrap();
    let capability = Fingerprint::of(b"capability");
    let datagram = |number: u8, now_ms: u64| {
        let unverified = gate.stage_one(now_ms, source(number), number, 100);
        let sender = Sender { capability, role: 1, mediation_handle: &[number % 8] };
        (unverified.is_some(), gate.stage_two(now_ms, &sender))
    };
    for window in 0..3 {
        let counted = allocation_counter::measure(|| {
            let admitted =
                (0..TIMES).map(|number| datagram(number, window * 1000)).filter(|both| both.1).count();
            assert_eq!(admitted, 10, "the capability's budget");
        });
        assert!(window == 0 || counted.count_total == 0, "{counted:?}");
    }
}

/// Negative control: the counter counts.
#[test]
fn the_counter_counts() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(vec![1; 10])));
    assert_eq!(counted.count_total, 1);
}
