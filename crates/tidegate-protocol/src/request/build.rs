//! Requests as a client writes them. What is out of bounds is told by [`Request::validate`] or
//! [`Request::to_json`].

use alloc::{string::String, vec::Vec};

use super::{Algorithm, Budget, Command, Fairness, Mode, Network, Request, SetMode, Step, Window};
use crate::{
    identity::Digest,
    name::{Family, OperationId, ReceiptId},
};

impl Request {
    /// A sequential request without steps, charged to nobody in particular.
    #[must_use]
    pub fn new(op: OperationId, family: Family) -> Self {
        Self {
            op,
            family,
            mode: Mode::default(),
            good: false,
            fairness: Fairness::default(),
            steps: Vec::new(),
        }
    }

    /// With one more step.
    #[must_use]
    pub fn step(mut self, partition: Digest, commands: impl IntoIterator<Item = Command>) -> Self {
        self.steps.push(Step { partition, commands: commands.into_iter().collect() });
        self
    }

    /// All of whose steps run, whatever becomes of the others.
    #[must_use]
    pub fn independent(self) -> Self {
        Self { mode: Mode::Independent, ..self }
    }

    /// Charged to these identities.
    #[must_use]
    pub fn fairness(self, fairness: Fairness) -> Self {
        Self { fairness, ..self }
    }

    /// Whose source and principal have just succeeded.
    #[must_use]
    pub fn good(self) -> Self {
        Self { good: true, ..self }
    }
}

impl Fairness {
    /// Also charged to the caller's address.
    #[must_use]
    pub fn source(self, digest: Digest) -> Self {
        Self { source: Some(digest), ..self }
    }

    /// Also charged to a network around it, of 24, 56 or 48 bits.
    #[must_use]
    pub fn network(mut self, prefix: u8, digest: Digest) -> Self {
        self.networks.push(Network { prefix, digest });
        self
    }

    /// Also charged to the user, account or token's owner.
    #[must_use]
    pub fn principal(self, digest: Digest) -> Self {
        Self { principal: Some(digest), ..self }
    }
}

impl Command {
    /// Charges 1 to all windows or to none.
    #[must_use]
    pub fn hit(windows: impl IntoIterator<Item = Window>) -> Self {
        Self::Hit { windows: windows.into_iter().collect(), cost: 1 }
    }

    /// Reads a record.
    #[must_use]
    pub const fn get(key: Digest) -> Self {
        Self::Get { key }
    }

    /// Writes a record that lives for `ttl_ms`.
    #[must_use]
    pub fn set(key: Digest, value: impl Into<String>, ttl_ms: u64) -> Self {
        let mode = SetMode::Always;
        Self::Set { key, value: value.into(), ttl_ms: Some(ttl_ms), mode, keep_ttl: false }
    }

    /// Writes a record only if there is none: whoever writes it first has claimed the key.
    #[must_use]
    pub fn claim(key: Digest, value: impl Into<String>, ttl_ms: u64) -> Self {
        let mode = SetMode::Nx;
        Self::Set { key, value: value.into(), ttl_ms: Some(ttl_ms), mode, keep_ttl: false }
    }

    /// Removes a record.
    #[must_use]
    pub const fn delete(key: Digest) -> Self {
        Self::Delete { key }
    }

    /// Asks how long a record still lives.
    #[must_use]
    pub const fn ttl(key: Digest) -> Self {
        Self::Ttl { key }
    }

    /// Gives a record a life of `ttl_ms` from now.
    #[must_use]
    pub const fn expire(key: Digest, ttl_ms: u64) -> Self {
        Self::Expire { key, ttl_ms }
    }

    /// Adds to a counter, which lives for `ttl_ms` if it is new.
    #[must_use]
    pub const fn increment(key: Digest, by: i64, ttl_ms: u64) -> Self {
        Self::Increment { key, by, ttl_ms }
    }

    /// Takes 1 from all budgets or from none; the receipt ends with the last budget's window.
    #[must_use]
    pub fn reserve(budgets: impl IntoIterator<Item = Budget>) -> Self {
        let budgets: Vec<Budget> = budgets.into_iter().collect();
        let target = budgets.len().saturating_sub(1);
        Self::Reserve { budgets, target, cost: 1 }
    }

    /// Gives a reservation back.
    #[must_use]
    pub const fn refund(receipt: ReceiptId) -> Self {
        Self::Refund { receipt }
    }

    /// With another cost, if it is a charge or a reservation; 0 asks only.
    #[must_use]
    pub fn costing(mut self, new_cost: u64) -> Self {
        if let Self::Hit { cost, .. } | Self::Reserve { cost, .. } = &mut self {
            *cost = new_cost;
        }
        self
    }
}

impl Window {
    /// A sliding window.
    #[must_use]
    pub const fn sliding(key: Digest, limit: u64, period_ms: u64) -> Self {
        Self { key, limit, period_ms, algorithm: Algorithm::Sliding }
    }

    /// A fixed window.
    #[must_use]
    pub const fn fixed(key: Digest, limit: u64, period_ms: u64) -> Self {
        Self { key, limit, period_ms, algorithm: Algorithm::Fixed }
    }

    /// A token bucket of `limit` that refills fully in `period_ms`.
    #[must_use]
    pub const fn bucket(key: Digest, limit: u64, period_ms: u64) -> Self {
        Self { key, limit, period_ms, algorithm: Algorithm::Bucket }
    }
}

impl Budget {
    /// A budget of `limit` for each window of `period_ms`.
    #[must_use]
    pub const fn new(key: Digest, limit: u64, period_ms: u64) -> Self {
        Self { key, limit, period_ms }
    }
}
