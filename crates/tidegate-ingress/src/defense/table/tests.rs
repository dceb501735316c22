use std::{
    collections::{BTreeMap, VecDeque},
    net::Ipv4Addr,
};

use proptest::prelude::*;
use tidegate_core::{
    address::Address,
    defense::{ClientKey, Facts, Outcome, decide},
    path::Normal,
    policy::Policy,
};

use super::*;

fn policy(rps: f64, burst: u64) -> Policy {
    let document = format!(r#"{{"mode": "enforce", "rps": {rps}, "burst": {burst}}}"#);
    Policy::parse(document.as_bytes()).unwrap()
}

fn facts(client: u32, at_ms: u64) -> Facts<'static> {
    let client = Address::from(std::net::IpAddr::from(Ipv4Addr::from_bits(client)));
    Facts { client, method: "GET", path: Normal::recorded(b"/"), user_agent: b"x", at_ms }
}

fn is_allowed(policy: &Policy, buckets: &mut impl Buckets, client: u32, at_ms: u64) -> bool {
    decide(policy, &facts(client, at_ms), buckets).outcome == Outcome::Allowed
}

fn capacity(clients: &Clients) -> usize {
    clients.shards.iter().map(|shard| shard.lock().sets.len() * SET).sum()
}

#[test]
fn small_bounds_are_kept_too() {
    for (tracked_max, most) in [(0, 8), (8, 8), (9, 8), (64, 64), (100, 100), (1000, 1000), (5000, 5000)] {
        let (clients, policy) = (Clients::new(tracked_max), policy(1.0, 1));
        for client in 0..20_000 {
            is_allowed(&policy, &mut clients.of_one_client(), client, 0);
        }
        assert!(clients.tracked() <= most, "{tracked_max}: {}", clients.tracked());
        assert!(clients.tracked() * 10 >= most * 8, "{tracked_max}: {}", clients.tracked());
    }
}

/// What the specification asks for: at most 64 bytes a tracked client, and a limited client that keeps coming
/// stays limited while a million others pass by.
#[test]
fn a_million_clients() {
    const TRACKED_MAX: usize = 1_000_000;
    let (clients, policy) = (Clients::new(TRACKED_MAX), policy(0.001, 2));
    for client in 0..1_000_000 {
        is_allowed(&policy, &mut clients.of_one_client(), client, 0);
    }
    let tracked = clients.tracked();
    assert!((950_000..=TRACKED_MAX).contains(&tracked), "{tracked}");
    let bytes = capacity(&clients) * size_of::<Set>() / SET;
    assert!(bytes <= tracked * 64, "{} bytes a client", bytes / tracked);
}

/// Runs in which the offender was let through after the table had filled.
fn forgotten_in(runs: u32, mut table: impl FnMut() -> Box<dyn FnMut(u32, u64) -> bool>) -> u32 {
    const OFFENDER: u32 = 7;
    let forgets = |mut ask: Box<dyn FnMut(u32, u64) -> bool>| {
        while ask(OFFENDER, 0) {}
        (1..=3000_u32).any(|n| {
            ask(1000 + n, u64::from(n) / 100);
            n % 50 == 0 && ask(OFFENDER, u64::from(n) / 100)
        })
    };
    (0..runs).map(|_| u32::from(forgets(table()))).sum()
}

/// A token takes 20 minutes, so an offender that is let through again was forgotten.
const SLOW: f64 = 0.000_833;

#[test]
fn an_offender_that_keeps_coming_is_not_forgotten_in_a_flood() {
    for burst in [1, 20] {
        let forgotten = forgotten_in(100, || {
            let (clients, policy) = (Clients::new(256), policy(SLOW, burst));
            Box::new(move |client, at_ms| is_allowed(&policy, &mut clients.of_one_client(), client, at_ms))
        });
        assert!(forgotten <= 1, "burst {burst}: forgotten in {forgotten} of 100 runs");
    }
}

#[derive(Default)]
struct OldestGoes {
    buckets: BTreeMap<(ClientKey, u64), Bucket>,
    order: VecDeque<(ClientKey, u64)>,
}

impl Buckets for OldestGoes {
    fn bucket(&mut self, id: BucketId, _: u64) -> &mut Bucket {
        let key = (id.client, id.limit);
        if !self.buckets.contains_key(&key) {
            self.order.push_back(key);
            if self.order.len() > 256 {
                let oldest = self.order.pop_front();
                oldest.map(|oldest| self.buckets.remove(&oldest));
            }
        }
        self.buckets.entry(key).or_default()
    }
}

#[test]
fn a_table_that_drops_the_oldest_forgets_the_offender() {
    let forgotten = forgotten_in(10, || {
        let (mut buckets, policy) = (OldestGoes::default(), policy(SLOW, 1));
        Box::new(move |client, at_ms| is_allowed(&policy, &mut buckets, client, at_ms))
    });
    assert_eq!(forgotten, 10, "the control");
}

#[test]
fn another_bound_keeps_what_fits() {
    let (clients, policy) = (Clients::new(4096), policy(SLOW, 2));
    let refused = |client| !is_allowed(&policy, &mut clients.of_one_client(), client, 0);
    for client in 0..3000 {
        refused(client);
        refused(client);
    }
    let tracked = clients.tracked();
    assert!((2980..=3000).contains(&tracked), "{tracked}");
    clients.resize(1024, 0);
    assert!(clients.tracked() <= 1024);
    clients.resize(8192, 0);
    let kept = (0..3000).filter(|client| refused(*client)).count();
    assert!((820..=1024).contains(&kept), "{kept}");
}

#[test]
fn threads_share_a_bucket() {
    let (clients, policy) = (Clients::new(1000), policy(SLOW, 100));
    let allowed = std::thread::scope(|scope| {
        let ask = || (0..200).filter(|_| is_allowed(&policy, &mut clients.of_one_client(), 7, 0)).count();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    });
    assert_eq!(allowed, 100);
}

#[derive(Default)]
struct Kept(BTreeMap<(ClientKey, u64), Bucket>);

impl Buckets for Kept {
    fn bucket(&mut self, id: BucketId, _: u64) -> &mut Bucket {
        self.0.entry((id.client, id.limit)).or_default()
    }
}

proptest! {
    #[test]
    fn with_room_it_is_a_map(requests in prop::collection::vec((0_u32..400, 0_u64..50), 1..800)) {
        let (clients, policy, mut model) = (Clients::new(10_000), policy(10.0, 2), Kept::default());
        let mut at_ms = 0;
        for (client, step_ms) in requests {
            at_ms += step_ms;
            let expected = decide(&policy, &facts(client, at_ms), &mut model);
            prop_assert_eq!(decide(&policy, &facts(client, at_ms), &mut clients.of_one_client()), expected);
        }
        prop_assert_eq!(clients.tracked(), model.0.len());
    }
}
