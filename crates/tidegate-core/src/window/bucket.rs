//! The token bucket, as the generic cell rate algorithm keeps it: one instant, the theoretical arrival, at
//! which the bucket will be full again.
//!
//! A token refills in period / limit ms, which is seldom whole. So debt is counted in parts of which a
//! token has `period` and which refill at `limit` a millisecond. In these parts a cost and the time that
//! has passed are both whole numbers, whatever the rate, and a change of the limit needs no conversion.

use super::Rule;

/// When the bucket is full again: `whole_ms + part / limit` in ms since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Arrival {
    pub(super) whole_ms: u64,
    /// Less than `limit`.
    pub(super) part: u64,
    /// The limit of the last charge, at least 1: the parts that refill in a millisecond.
    pub(super) limit: u64,
}

impl Arrival {
    pub(super) const fn full(now_ms: u64) -> Self {
        Self { whole_ms: now_ms, part: 0, limit: 1 }
    }

    /// The tokens that are not refilled yet, a begun one counting whole.
    pub(super) fn used(&self, period_ms: u64, now_ms: u64) -> u64 {
        narrow(self.debt(period_ms, now_ms).div_ceil(u128::from(period_ms)))
    }

    /// Adds `cost` tokens, which fit the limit of `rule`.
    pub(super) fn charge(&self, rule: Rule, cost: u64, now_ms: u64) -> Self {
        let limit = rule.limit.max(1);
        let debt = self.debt(rule.period(), now_ms) + u128::from(cost) * u128::from(rule.period());
        Self {
            whole_ms: now_ms.saturating_add(narrow(debt / u128::from(limit))),
            part: narrow(debt % u128::from(limit)),
            limit,
        }
    }

    /// The first whole ms at which the bucket is full.
    pub(super) fn full_at_ms(&self) -> u64 {
        self.whole_ms.saturating_add(u64::from(self.part > 0))
    }

    /// The first instant at which no more than `room` tokens are used, which is more now.
    pub(super) fn opens_at_ms(&self, period_ms: u64, room: u64) -> u64 {
        let room = u128::from(room) * u128::from(period_ms);
        match room.checked_sub(u128::from(self.part)) {
            Some(early) => self.whole_ms.saturating_sub(narrow(early / u128::from(self.limit))),
            None => self.whole_ms.saturating_add(1),
        }
    }

    /// The parts that are not refilled at `now_ms`. No charge leaves more than an empty bucket, so more
    /// than that only says that the clock has stepped back.
    fn debt(&self, period_ms: u64, now_ms: u64) -> u128 {
        let limit = u128::from(self.limit);
        let parts = match self.whole_ms.checked_sub(now_ms) {
            Some(left_ms) => u128::from(left_ms) * limit + u128::from(self.part),
            None => 0,
        };
        parts.min(limit * u128::from(period_ms))
    }
}

fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}
