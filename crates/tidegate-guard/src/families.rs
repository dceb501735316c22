//! The families that a guard serves: their rules, their rows, and what is kept beside each of them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use smallvec::SmallVec;
use tidegate_core::admission::{Axis, FamilyRules};
use tidegate_protocol::{
    identity::Digest,
    name::Family,
    request::{BadRequest, Fairness},
};
use tidegate_store::Key;

use crate::{Metrics, metrics::FamilyMetrics};

/// The families of a guard, by name.
pub(crate) type Families = BTreeMap<Family, Arc<FamilyEntry>>;

/// A family.
#[derive(Debug)]
pub(crate) struct FamilyEntry {
    pub(crate) name: Family,
    pub(crate) rules: FamilyRules,
    /// Where its day is kept.
    pub(crate) key: Key,
    /// Its last request was let in as a known-good one, so the next one's standing is looked up at once.
    pub(crate) looks_up_standing: AtomicBool,
    /// Where this instance's lease of the budget is kept, on a store that instances share.
    pub(crate) lease_key: Key,
    /// The instance holds one, as far as it knows.
    pub(crate) is_leased: AtomicBool,
    pub(crate) metrics: FamilyMetrics,
    /// When the denials of each axis were last told of, in ms since the epoch.
    denials_told_ms: [AtomicU64; Axis::COUNT],
}

/// Between two alerts of denials of one family and axis.
const DENIALS_TOLD_EVERY_MS: u64 = 60_000;

/// An identity that a request is charged to.
pub(crate) type Identity = (Axis, Digest);

impl FamilyEntry {
    pub(crate) fn new(name: Family, rules: FamilyRules, instance: u64, metrics: &Metrics) -> Self {
        Self {
            key: Key::of(&[b"family", name.as_str().as_bytes()]),
            lease_key: lease_key(&name, instance),
            is_leased: AtomicBool::new(false),
            name,
            metrics: metrics.of_family(&name, rules.budget),
            rules,
            looks_up_standing: AtomicBool::new(false),
            denials_told_ms: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Whether a request carries what the family requires.
    pub(crate) fn check_required(&self, fairness: &Fairness) -> Result<(), BadRequest> {
        for axis in &self.rules.requires {
            let (missing, name) = match axis {
                Axis::Source => (fairness.source.is_none(), "source"),
                Axis::Principal => (fairness.principal.is_none(), "principal"),
                Axis::Network24 | Axis::Network56 | Axis::Network48 => (false, "networks"),
            };
            if missing {
                let message = format!("the family {} requires it", self.name.as_str());
                return Err(BadRequest { place: format!("fairness.{name}"), message });
            }
        }
        Ok(())
    }

    /// Where the quota of an identity is kept. The rows of an identity stay together, so that quotas spread
    /// over a store as partitions do.
    pub(crate) fn quota_key(&self, (axis, digest): &Identity) -> Key {
        identity_key(*axis, digest, &[b"quota", self.name.as_str().as_bytes()])
    }

    /// Whether denials of `axis` are to be told of now: at most once a minute.
    pub(crate) fn tells_of_denials(&self, axis: Axis, now_ms: u64) -> bool {
        let told_ms = &self.denials_told_ms[axis as usize];
        let last_ms = told_ms.load(Ordering::Relaxed);
        let due = last_ms == 0 || now_ms.saturating_sub(last_ms) >= DENIALS_TOLD_EVERY_MS;
        due && told_ms.compare_exchange(last_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Whom a request is charged to, in the order of their checks.
pub(crate) fn identities(fairness: &Fairness) -> SmallVec<[Identity; 4]> {
    let source = fairness.source.map(|digest| (Axis::Source, digest));
    let networks = Axis::ALL.into_iter().filter_map(|axis| {
        let network =
            fairness.networks.iter().find(|network| Axis::of_network(network.prefix) == Some(axis))?;
        Some((axis, network.digest))
    });
    let principal = fairness.principal.map(|digest| (Axis::Principal, digest));
    source.into_iter().chain(networks).chain(principal).collect()
}

/// Where it is kept that an identity is known to be good.
pub(crate) fn good_key((axis, digest): &Identity) -> Key {
    identity_key(*axis, digest, &[b"good"])
}

/// Where an instance's lease of a family's budget is kept.
pub(crate) fn lease_key(family: &Family, instance: u64) -> Key {
    Key::of(&[b"lease", family.as_str().as_bytes(), &instance.to_le_bytes()])
}

fn identity_key(axis: Axis, digest: &Digest, parts: &[&[u8]]) -> Key {
    let mut all: SmallVec<[&[u8]; 5]> =
        SmallVec::from_slice(&[digest.as_bytes().as_slice(), b"identity", axis.as_str().as_bytes()]);
    all.extend_from_slice(parts);
    Key::of(&all)
}
