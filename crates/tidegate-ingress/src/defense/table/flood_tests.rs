//! The table at the size that it has by default, under a flood of a million strangers.

use std::net::{IpAddr, Ipv4Addr};

use tidegate_core::{
    address::Address,
    defense::{Facts, Outcome, decide},
    path::Normal,
    policy::Policy,
};

use super::*;

const TRACKED_MAX: usize = 100_000;
const STRANGERS: u64 = 1_000_000;
/// A flood of 100 000 strangers a second.
const STRANGERS_A_MS: u64 = 100;
/// Each is a run of its own: one client that was being limited before the flood, and keeps coming.
const OFFENDERS: u64 = 200;
/// How many strangers pass between two requests of an offender: 40 requests a second.
const BETWEEN: u64 = 2500;

/// The address of that number, one for each number, all over IPv4 as far as anybody can tell.
fn address(seed: u64, number: u64) -> Address {
    let [number, seed] = [number, seed].map(|number| u32::try_from(number).unwrap());
    let mixed = number.wrapping_mul(0x9e37_79b1) ^ seed.wrapping_mul(0x85eb_ca6b);
    Address::from(IpAddr::from(Ipv4Addr::from_bits(mixed)))
}

/// How many requests each offender was let through during the flood.
fn flood(seed: u64, policy: &Policy) -> Vec<u64> {
    let clients = Clients::new(TRACKED_MAX);
    let ask = |client: u64, at_ms: u64| {
        let client = address(seed, client);
        let facts = Facts { client, method: "GET", path: Normal::recorded(b"/"), user_agent: b"x", at_ms };
        decide(policy, &facts, &mut clients.of_one_client()).outcome == Outcome::Allowed
    };
    for offender in 0..OFFENDERS {
        while ask(offender, 0) {}
    }
    let mut passed: Vec<u64> = (0..OFFENDERS).map(|_| 0).collect();
    for stranger in 0..STRANGERS {
        let at_ms = stranger / STRANGERS_A_MS;
        assert!(ask(OFFENDERS + stranger, at_ms), "seed {seed}: a newcomer pays for nobody");
        if stranger % BETWEEN == 0 {
            let again = passed.iter_mut().zip(0..);
            again.for_each(|(passed, offender)| *passed += u64::from(ask(offender, at_ms)));
        }
    }
    let places: usize = clients.shards.iter().map(|shard| shard.lock().sets.len() * SET).sum();
    assert!(places <= TRACKED_MAX, "seed {seed}: {places} places");
    let tracked = clients.tracked();
    assert!((TRACKED_MAX * 9 / 10..=places).contains(&tracked), "seed {seed}: {tracked} clients");
    passed
}

fn check(seed: u64, policy: &str, passes_max: u64) {
    let passed = flood(seed, &Policy::parse(policy.as_bytes()).unwrap());
    let forgotten = passed.iter().filter(|passed| **passed > passes_max).count() as u64;
    assert!(forgotten * 100 <= OFFENDERS, "seed {seed}: {forgotten} of {OFFENDERS} were forgotten");
}

#[test]
fn who_is_refused_and_keeps_coming_stays_refused() {
    // A token takes twenty minutes: who passes was forgotten.
    check(1, r#"{"mode":"enforce","rps":0.000833,"burst":20}"#, 0);
}

#[test]
fn who_keeps_coming_gets_no_more_than_the_rate() {
    let flood_s = STRANGERS / STRANGERS_A_MS / 1000;
    check(2, r#"{"mode":"enforce","rps":2,"burst":10}"#, 2 * flood_s);
}
