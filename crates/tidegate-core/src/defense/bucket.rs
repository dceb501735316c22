//! A token bucket in whole numbers: what was spent and is not refilled yet.
//!
//! A token is 10^9 parts, so that a rate in millionths of a token a second refills as many parts a
//! millisecond: nothing is rounded and nothing drifts. What is kept is what was spent, in tokens, so a bucket
//! outlives a change of its limit.

use super::Limit;

/// A client's bucket under one limit. The default is a full one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bucket {
    /// The parts that were missing at `at_ms`.
    debt: u64,
    at_ms: u64,
    /// How long from `at_ms` until it is full, in ms, as of its last use.
    full_after_ms: u32,
    /// Whether its last request was refused.
    refused: bool,
}

pub(super) const TOKEN: u64 = 1_000_000_000;

impl Bucket {
    /// How long until it holds a token, in ms: 0 if it does.
    #[must_use]
    pub fn wait_ms(&self, limit: &Limit, at_ms: u64) -> u64 {
        (self.debt_at(limit, at_ms) + TOKEN).saturating_sub(limit.parts()).div_ceil(limit.rate_micro())
    }

    /// Takes a token that it holds.
    pub fn charge(&mut self, limit: &Limit, at_ms: u64) {
        let debt = self.debt_at(limit, at_ms) + TOKEN;
        self.set(debt, limit, at_ms, false);
    }

    /// Notes that a request was refused; nothing is taken.
    pub fn refuse(&mut self, limit: &Limit, at_ms: u64) {
        let debt = self.debt_at(limit, at_ms);
        self.set(debt, limit, at_ms, true);
    }

    /// Whole tokens in it.
    #[must_use]
    pub fn tokens(&self, limit: &Limit, at_ms: u64) -> u64 {
        (limit.parts() - self.debt_at(limit, at_ms)) / TOKEN
    }

    /// How much is lost if it is forgotten at `at_ms`: nothing while it is full, more for one that was refused
    /// and has not been full since, and more the longer it takes to be full.
    #[must_use]
    pub fn weight(&self, at_ms: u64) -> u64 {
        let left_ms = self.at_ms.saturating_add(self.full_after_ms.into()).saturating_sub(at_ms);
        if left_ms > 0 && self.refused { left_ms | REFUSED } else { left_ms }
    }

    /// The parts missing at `at_ms`. A clock that went back has let no time pass.
    fn debt_at(&self, limit: &Limit, at_ms: u64) -> u64 {
        let refilled = at_ms.saturating_sub(self.at_ms).saturating_mul(limit.rate_micro());
        self.debt.min(limit.parts()).saturating_sub(refilled)
    }

    fn set(&mut self, debt: u64, limit: &Limit, at_ms: u64, refused: bool) {
        let full_after_ms = u32::try_from(debt.div_ceil(limit.rate_micro())).unwrap_or(u32::MAX);
        *self = Self { debt, at_ms: self.at_ms.max(at_ms), full_after_ms, refused };
    }
}

/// Above every wait.
const REFUSED: u64 = 1 << 63;
