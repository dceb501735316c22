//! A service with two tenants, a clock that the test moves, and random bytes from a seed.

#![allow(dead_code, reason = "each test uses its part")]

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rendezvous::{
    capability::Capability,
    credentials::Credentials,
    edge::Edge,
    endpoint::Endpoint,
    registry::RegistryLimits,
    service::{Limits, Service},
    wire::{DATAGRAM_BYTES, Message, Operation},
};

pub(crate) const NOW_MS: u64 = 1_800_000_000_000;
pub(crate) const ANN: &str = "token-of-ann-0123456789abcdefghij";
pub(crate) const BOB: &str = "token-of-bob-0123456789abcdefghij";
/// Of another tenant.
pub(crate) const EVE: &str = "token-of-eve-0123456789abcdefghij";
pub(crate) const KEY: &str = "key-of-service-0123456789abcdefgh";

/// A few of everything, so that every bound is reached.
pub(crate) const LIMITS: Limits = Limits {
    registry: RegistryLimits { listings_max: 6, tenant_listings_max: 4, listing_ms: 60_000 },
    attempts_max: 8,
    listing_attempts_max: 3,
    attempt_ms: 30_000,
};

pub(crate) fn credentials(keys: &[(u16, &str)]) -> Credentials {
    let keys: Vec<_> =
        keys.iter().map(|(id, secret)| serde_json::json!({ "id": id, "secret": secret })).collect();
    let principal =
        |tenant, name, token| serde_json::json!({ "tenant": tenant, "name": name, "tokens": [token] });
    let principals = [principal("t", "ann", ANN), principal("t", "bob", BOB), principal("u", "eve", EVE)];
    Credentials::read(&serde_json::json!({ "keys": keys, "principals": principals }).to_string()).unwrap()
}

pub(crate) fn service(limits: Limits) -> Arc<Service> {
    Arc::new(Service::new(limits, credentials(&[(1, KEY)])))
}

/// Numbers from a seed: the same in every run.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    pub(crate) fn of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}

/// Time that the test moves, and ids that count up.
#[derive(Debug)]
pub(crate) struct Still {
    pub(crate) now_ms: AtomicU64,
    ids: AtomicU64,
}

impl Still {
    pub(crate) fn new() -> Self {
        Self { now_ms: AtomicU64::new(NOW_MS), ids: AtomicU64::new(1) }
    }
}

impl Edge for Still {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    fn random(&self) -> Result<[u8; 16], getrandom::Error> {
        Ok(u128::from(self.ids.fetch_add(1, Ordering::Relaxed)).to_be_bytes())
    }
}

pub(crate) fn endpoint(text: &str) -> Endpoint {
    Endpoint::observed(text.parse().unwrap())
}

pub(crate) fn bind(
    capability: &Capability,
    sequence: u64,
    sent_at_ms: u64,
    candidates: &[&str],
) -> [u8; DATAGRAM_BYTES] {
    let endpoints = candidates.iter().map(|text| endpoint(text)).collect();
    let operation = Operation::Bind;
    Message { operation, claims: *capability.claims(), sequence, sent_at_ms, endpoints }
        .sign(capability.secret())
}
