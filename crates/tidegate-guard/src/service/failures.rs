//! A bound on what failed authentications from one source may cost.

use std::{
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::atomic::{AtomicU64, Ordering},
};

/// A budget of failed authentications per source prefix (IPv4 address, IPv6 /64).
///
/// The table has a fixed size and forgets nothing under pressure: sources that fall on one place share its
/// budget, so that nobody can push a flooding source out of it. The hash is keyed, so that nobody can choose
/// whom to share with.
#[derive(Debug)]
pub(super) struct FailureBudget {
    /// Per place, the instant (GCRA) up to which failures have been paid for, in microseconds.
    places: Box<[AtomicU64]>,
    hasher: RandomState,
    interval_us: u64,
}

/// 64 KiB; more sources than a small botnet has, so that honest ones seldom share a place with it.
const PLACES: usize = 8192;

/// How many seconds' worth of failures may come at once.
const BURST_S: u64 = 2;

impl FailureBudget {
    /// Up to `failures_per_second` for each source, twice that at once; 0: no bound.
    #[must_use]
    pub(super) fn new(failures_per_second: u32) -> Self {
        let interval_us =
            if failures_per_second == 0 { 0 } else { 1_000_000 / u64::from(failures_per_second) };
        let places = (0..PLACES).map(|_| AtomicU64::new(0)).collect();
        Self { places, hasher: RandomState::new(), interval_us }
    }

    /// Whether `source` has spent its budget, so that its requests are refused unread.
    #[must_use]
    pub(super) fn is_spent(&self, source: IpAddr, now_us: u64) -> bool {
        self.interval_us > 0
            && self.place(source).load(Ordering::Relaxed) > now_us.saturating_add(BURST_S * 1_000_000)
    }

    /// Charges one failure to `source`.
    pub(super) fn charge(&self, source: IpAddr, now_us: u64) {
        let paid_until = |until_us: u64| Some(until_us.max(now_us).saturating_add(self.interval_us));
        // fetch_update ends at once with a function that never answers None.
        let _ = self.place(source).fetch_update(Ordering::Relaxed, Ordering::Relaxed, paid_until);
    }

    fn place(&self, source: IpAddr) -> &AtomicU64 {
        let prefix = match source {
            IpAddr::V4(address) => u64::from(u32::from(address)),
            IpAddr::V6(address) => address.to_ipv4_mapped().map_or_else(
                || u64::try_from(u128::from(address) >> 64).unwrap_or(u64::MAX),
                |mapped| u64::from(u32::from(mapped)),
            ),
        };
        let hash = self.hasher.hash_one(prefix);
        &self.places[usize::try_from(hash % PLACES as u64).unwrap_or_default()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_flood_is_cut_and_others_are_not() {
        let budget = FailureBudget::new(10);
        let (attacker, owner) = (source("203.0.113.9"), source("192.0.2.7"));
        let mut read = 0;
        for request in 0..20_000_u64 {
            let now_us = request * 500;
            if !budget.is_spent(attacker, now_us) {
                read += 1;
                budget.charge(attacker, now_us);
            }
        }
        assert!((100..=130).contains(&read), "10 s at 10/s and a burst of 20: {read}");
        assert!(!budget.is_spent(owner, 10_000_000));
        assert!(!budget.is_spent(attacker, 60_000_000), "a quiet minute later the budget is whole");
    }

    #[test]
    fn a_mapped_address_is_the_one_it_carries_and_a_64_is_one_source() {
        let budget = FailureBudget::new(1);
        for _ in 0..10 {
            budget.charge(source("::ffff:192.0.2.7"), 0);
            budget.charge(source("2001:db8::1"), 0);
        }
        assert!(budget.is_spent(source("192.0.2.7"), 0));
        assert!(budget.is_spent(source("2001:db8::2"), 0));
    }

    #[test]
    fn zero_means_no_bound() {
        let budget = FailureBudget::new(0);
        for _ in 0..10_000 {
            budget.charge(source("192.0.2.7"), 0);
        }
        assert!(!budget.is_spent(source("192.0.2.7"), 0));
    }
}
