//! Admission of datagrams. What isn't admitted is dropped: nothing here can answer a refusal.

use std::net::IpAddr;

use prometheus_client::registry::Registry;
use tidegate_core::tracker::Work;

use crate::{
    identity::{Fingerprint, Seed, SourcePrefix},
    metrics::{Metrics, Stage},
    profile::{InvalidProfile, Profile, UdpProfile},
    refusal::Dimension,
    tracker::{Charge, Decision, Size, Tracker},
};

/// The budgets of a service's datagrams, with keys of their own. Share it by reference or in an `Arc`.
///
/// It knows no socket and no runtime: read a batch, read the clock once, and hand in each datagram.
#[derive(Debug)]
pub struct UdpGate {
    profile: UdpProfile,
    tracker: Tracker,
    seed: Seed,
    metrics: Metrics,
}

/// A datagram that passed stage one. Who sent it is not known: its source may be forged.
#[derive(Debug)]
#[must_use = "what was received says how much may be sent back"]
pub struct Unverified {
    allowance: Allowance,
}

/// Bytes that may be sent to a source that may be forged: no more than it has sent itself.
///
/// It can't be copied, so what is taken from it is taken.
#[derive(Debug, Default)]
pub struct Allowance {
    bytes: usize,
}

/// Whom and what a verified datagram concerns.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    /// Of the capability that the datagram was signed with.
    pub capability: Fingerprint,
    /// The role that the capability is for.
    pub role: u8,
    /// The exchange that it belongs to.
    pub mediation_handle: &'a [u8],
}

impl UdpGate {
    /// Budgets of which nothing is spent.
    ///
    /// # Errors
    /// The profile has faults.
    pub fn new(profile: &Profile, seed: Seed) -> Result<Self, InvalidProfile> {
        profile.validate()?;
        let metrics = Metrics::default();
        let tracker = Tracker::new(Size::of(profile.udp.bounds, FIXED_ROWS), metrics.admitted());
        Ok(Self { profile: profile.udp.clone(), tracker, seed, metrics })
    }

    /// Stage one, before decoding: charges the global, source-prefix and wire-operation budgets with a
    /// datagram of `bytes` from `source`. `None`: drop it; nothing was charged.
    ///
    /// `now_ms` comes from a clock that never goes back, such as [`crate::Clock`].
    pub fn stage_one(
        &self,
        now_ms: u64,
        source: IpAddr,
        wire_operation: u8,
        bytes: usize,
    ) -> Option<Unverified> {
        let source = SourcePrefix::from(source);
        let key = self.seed.key(Dimension::SourcePrefix, None, source.bytes());
        let profile = &self.profile;
        let decision = Decision {
            fixed: &[
                Charge { place: GLOBAL, limit: profile.global, dimension: Dimension::Global },
                Charge {
                    place: WIRE_OPERATIONS + usize::from(wire_operation),
                    limit: profile.wire_operation,
                    dimension: Dimension::WireOperation,
                },
            ],
            keyed: &[Charge { place: key, limit: profile.source_prefix, dimension: Dimension::SourcePrefix }],
            ..UNVERIFIED
        };
        self.admits(now_ms, &decision).then_some(Unverified { allowance: Allowance { bytes } })
    }

    /// Milliseconds until the next window, if the budget of the whole service is spent until then. Whoever
    /// leaves the socket alone for so long lets the kernel drop a flood, which costs less than reading it.
    pub fn closed_for_ms(&self, now_ms: u64) -> Option<u64> {
        let global = Charge { place: GLOBAL, limit: self.profile.global, dimension: Dimension::Global };
        self.tracker.spent_for_ms(now_ms, &global, UNVERIFIED.work)
    }

    /// Stage two, after verification and before any state changes or anything is sent: charges the capability,
    /// role and mediation budgets. `false`: drop it; nothing was charged.
    ///
    /// A replay must be dropped before: it must not spend its victim's budget.
    #[must_use = "what isn't admitted must be dropped"]
    pub fn stage_two(&self, now_ms: u64, sender: &Sender<'_>) -> bool {
        let profile = &self.profile;
        let key = |dimension, identity: &[u8]| self.seed.key(dimension, None, identity);
        let (capability, handle) = (Dimension::Capability, Dimension::MediationHandle);
        let decision = Decision {
            fixed: &[Charge {
                place: ROLES + usize::from(sender.role),
                limit: profile.role,
                dimension: Dimension::Role,
            }],
            keyed: &[
                Charge {
                    place: key(capability, sender.capability.bytes()),
                    limit: profile.capability,
                    dimension: capability,
                },
                Charge {
                    place: key(handle, sender.mediation_handle),
                    limit: profile.mediation_handle,
                    dimension: handle,
                },
            ],
            ..VERIFIED
        };
        self.admits(now_ms, &decision)
    }

    /// Identities that are counted in the window of `now_ms`.
    #[must_use]
    pub fn tracked_keys(&self, now_ms: u64) -> usize {
        self.tracker.tracked(now_ms)
    }

    /// Bytes of memory that the tracked keys take up.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tracker.bytes()
    }

    /// Puts the counters into a registry, under `tidegate_admission_udp_`.
    pub fn register(&self, registry: &mut Registry) {
        self.metrics.register("udp", registry);
    }

    fn admits(&self, now_ms: u64, decision: &Decision<'_>) -> bool {
        let outcome = self.tracker.decide(now_ms, decision);
        outcome.inspect_err(|refusal| self.metrics.count(refusal)).is_ok()
    }
}

impl Unverified {
    /// What may be sent back to the datagram's source, and to nobody else.
    #[must_use]
    pub fn into_allowance(self) -> Allowance {
        self.allowance
    }
}

impl Allowance {
    /// Bytes that may still be sent.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.bytes
    }

    /// Takes `bytes` for an answer. `false`: it would be too large, and must not be sent; nothing was taken.
    #[must_use = "what wasn't taken must not be sent"]
    pub const fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.bytes;
        if fits {
            self.bytes -= bytes;
        }
        fits
    }

    /// Adds what the same source has sent in another datagram.
    #[expect(clippy::needless_pass_by_value, reason = "what is added is gone from where it was")]
    pub const fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

const UNVERIFIED: Decision<'static> = Decision::of(Stage::One, Work::Optional);
const VERIFIED: Decision<'static> = Decision::of(Stage::Two, Work::Critical);

const GLOBAL: usize = 0;
const WIRE_OPERATIONS: usize = 1;
const ROLES: usize = WIRE_OPERATIONS + VALUES;
const FIXED_ROWS: usize = ROLES + VALUES;
/// Of a byte.
const VALUES: usize = 256;
