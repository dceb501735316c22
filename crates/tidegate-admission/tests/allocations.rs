//! What admission allocates in the steady state, counted by the allocator.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr},
};

use futures_util::FutureExt as _;
use http::{Response, request::Parts};
use http_body_util::Empty;
use hyper::body::Bytes;
use tidegate_admission::{
    AdmissionLayer, Clock, Fingerprint, HttpAdmission, Operation, Peer, Profile, Scope, Seed, Sender, UdpGate,
};
use tower::{Layer as _, Service as _};

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

/// The layer's own: what the leases lie in, and the extension by which the handler finds them.
#[test]
fn the_layer_allocates_twice() {
    let admission = HttpAdmission::new(&Profile::default(), Seed::from([1; 16]), Clock::machine()).unwrap();
    let handler = |_| std::future::ready(Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())));
    let layer = AdmissionLayer::new(admission.clone(), |_: &Parts| Operation::optional(0));
    let mut service = layer.layer(tower::service_fn(handler));
    let mut request = |number: u8| {
        let mut request = http::Request::new(Empty::<Bytes>::new());
        request.extensions_mut().insert(Peer(source(number)));
        let counted = allocation_counter::measure(|| {
            let answer = service.call(request).now_or_never().unwrap().unwrap();
            assert_eq!(answer.status(), 200);
        });
        counted.count_total
    };
    (0..TIMES).for_each(|number| _ = request(number));
    assert!((0..TIMES).map(request).all(|count| count == 2));
    assert_eq!(admission.active(), 0);
}

/// Negative control: the counter counts.
#[test]
fn the_counter_counts() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(vec![1; 10])));
    assert_eq!(counted.count_total, 1);
}
