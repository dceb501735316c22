//! Rate windows: how much of a limit is used, whether a cost still fits, and when it will.
//!
//! Sliding and fixed windows count in buckets that are aligned to the epoch; a token bucket keeps one
//! instant (GCRA). All three are exact in integers: nothing drifts and nothing is rounded in a caller's
//! favour. Intervals are half-open: what ends at an instant is gone at that instant.
//!
//! Where the clock has stepped back behind what a row says, no time has passed since it was written: the
//! row counts in full until the clock has caught up. It is never negative and never a second allowance.
//!
//! ```
//! use tidegate_core::window::{Algorithm, Rule, hit};
//!
//! let a_minute = Rule { limit: 2, period_ms: 60_000, algorithm: Algorithm::Fixed };
//! let first = hit(&[(a_minute, None)], 2, 15_000);
//! let row = first.charged.expect("there was room")[0];
//! assert_eq!(row.expires_at_ms, 60_000);
//!
//! let second = hit(&[(a_minute, Some(row.state))], 1, 20_000);
//! assert_eq!((second.allowed, second.retry_after_ms), (false, Some(40_000)));
//! ```

mod bucket;
mod fixed;
mod sliding;
mod state;

use smallvec::SmallVec;

use crate::LIFE_MS_MAX;
pub use state::State;

/// How a window counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Algorithm {
    /// Two epoch-aligned buckets; the previous one counts by the share of it that the window still covers:
    /// used = floor(previous * (period - elapsed) / period) + current. That takes what the previous bucket
    /// saw for evenly spread: if it all came at the bucket's end, a period may see up to twice the limit.
    #[default]
    Sliding,
    /// One epoch-aligned bucket. Up to twice the limit can pass around a bucket's edge.
    Fixed,
    /// A token bucket that holds `limit` tokens and refills fully in `period_ms` (GCRA).
    Bucket,
}

/// A limit over a period.
///
/// A row belongs to its algorithm and its period, but the limit may be another at each call: the row tells
/// what was granted, so a raised limit gives room at once and a lowered one takes it away. What a token
/// bucket has used refills at the rate of the limit it was last charged under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The most that may be used, to [`crate::INTEGER_MAX`]. A limit of 0 admits nothing.
    pub limit: u64,
    /// In ms; 0 is taken for 1.
    pub period_ms: u64,
    /// How the window counts.
    pub algorithm: Algorithm,
}

/// How far a window is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Usage {
    /// The rule's limit.
    pub limit: u64,
    /// What is used of it now. It exceeds the limit when that was lowered.
    pub used: u64,
    /// What is left: how many calls of cost 1 would be allowed now.
    pub remaining: u64,
    /// From now to the end of the present bucket, or until a token bucket is full (0: it is). In ms.
    pub reset_ms: u64,
}

/// The answer to a charge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Whether the cost fitted into every window.
    pub allowed: bool,
    /// Each window, in the order given: after the charge if there was one, as it is otherwise.
    pub usages: SmallVec<[Usage; INLINE]>,
    /// `Some(0)` when allowed; else the shortest wait in ms, 1 or more, after which the same call would be
    /// allowed if nobody else called; `None` if waiting never helps (a limit of 0, or under the cost).
    pub retry_after_ms: Option<u64>,
    /// The rows to write, one for each window; `None` if nothing changes (a denial, or a cost of 0).
    pub charged: Option<SmallVec<[Charge; INLINE]>>,
}

/// A row to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// The row.
    pub state: State,
    /// When it has nothing more to tell, in ms since the epoch; at most [`LIFE_MS_MAX`] from now.
    pub expires_at_ms: u64,
}

/// How far the window of `rule` is used at `now_ms`, without charging it.
#[must_use]
pub fn look(rule: Rule, state: Option<&State>, now_ms: u64) -> Usage {
    Reading::of(rule, state, now_ms).usage(rule, now_ms)
}

/// Charges `cost` to every window or to none. A cost of 0 asks without charging.
#[must_use]
pub fn hit(windows: &[(Rule, Option<State>)], cost: u64, now_ms: u64) -> Hit {
    let readings: SmallVec<[(Rule, Reading); INLINE]> =
        windows.iter().map(|(rule, state)| (*rule, Reading::of(*rule, state.as_ref(), now_ms))).collect();
    let retry_after_ms = readings
        .iter()
        .map(|(rule, reading)| reading.wait_ms(*rule, cost, now_ms))
        .try_fold(0, |longest: u64, wait_ms| Some(longest.max(wait_ms?)));
    let allowed = retry_after_ms == Some(0);

    if !allowed || cost == 0 {
        let usages = readings.iter().map(|(rule, reading)| reading.usage(*rule, now_ms)).collect();
        return Hit { allowed, usages, retry_after_ms, charged: None };
    }
    let charged: SmallVec<[(Rule, Reading); INLINE]> =
        readings.into_iter().map(|(rule, reading)| (rule, reading.charge(rule, cost, now_ms))).collect();
    Hit {
        allowed,
        usages: charged.iter().map(|(rule, reading)| reading.usage(*rule, now_ms)).collect(),
        retry_after_ms,
        charged: Some(charged.iter().map(|(rule, reading)| reading.row(*rule, now_ms)).collect()),
    }
}

/// A window at an instant: its row, carried forward to it.
#[derive(Debug, Clone, Copy)]
enum Reading {
    Sliding(sliding::Sliding),
    Fixed(fixed::Fixed),
    Bucket(bucket::Arrival),
}

impl Reading {
    /// A row of another algorithm is another window's, and reads as absent.
    fn of(rule: Rule, state: Option<&State>, now_ms: u64) -> Self {
        match (rule.algorithm, state) {
            (Algorithm::Sliding, Some(State::Sliding(row))) => Self::Sliding(row.at(rule.period(), now_ms)),
            (Algorithm::Sliding, _) => Self::Sliding(sliding::Sliding::empty(rule.period(), now_ms)),
            (Algorithm::Fixed, Some(State::Fixed(row))) => Self::Fixed(row.at(rule.period(), now_ms)),
            (Algorithm::Fixed, _) => Self::Fixed(fixed::Fixed::empty(rule.period(), now_ms)),
            (Algorithm::Bucket, Some(State::Bucket(row))) => Self::Bucket(*row),
            (Algorithm::Bucket, _) => Self::Bucket(bucket::Arrival::full(now_ms)),
        }
    }

    fn usage(&self, rule: Rule, now_ms: u64) -> Usage {
        let used = self.used(rule, now_ms);
        let resets_at_ms = match self {
            Self::Sliding(row) => row.bucket_ends_at_ms(rule.period()),
            Self::Fixed(row) => row.ends_at_ms(rule.period()),
            Self::Bucket(row) => row.full_at_ms(),
        };
        Usage {
            limit: rule.limit,
            used,
            remaining: rule.limit.saturating_sub(used),
            reset_ms: resets_at_ms.saturating_sub(now_ms),
        }
    }

    fn used(&self, rule: Rule, now_ms: u64) -> u64 {
        match self {
            Self::Sliding(row) => row.used(rule.period(), now_ms),
            Self::Fixed(row) => row.count,
            Self::Bucket(row) => row.used(rule.period(), now_ms),
        }
    }

    /// How long until `cost` fits: 0 now, `None` never.
    ///
    /// What is used only ever falls while nobody charges, so the wait for several windows is the longest.
    fn wait_ms(&self, rule: Rule, cost: u64, now_ms: u64) -> Option<u64> {
        let room = rule.limit.checked_sub(cost).filter(|_| rule.limit > 0)?;
        if self.used(rule, now_ms) <= room {
            return Some(0);
        }
        let opens_at_ms = match self {
            Self::Sliding(row) => row.opens_at_ms(rule.period(), room),
            Self::Fixed(row) => row.ends_at_ms(rule.period()),
            Self::Bucket(row) => row.opens_at_ms(rule.period(), room),
        };
        Some(opens_at_ms.saturating_sub(now_ms).max(1))
    }

    fn charge(self, rule: Rule, cost: u64, now_ms: u64) -> Self {
        match self {
            Self::Sliding(row) => Self::Sliding(row.charge(cost)),
            Self::Fixed(row) => Self::Fixed(row.charge(cost)),
            Self::Bucket(row) => Self::Bucket(row.charge(rule, cost, now_ms)),
        }
    }

    fn row(&self, rule: Rule, now_ms: u64) -> Charge {
        let (state, expires_at_ms) = match self {
            Self::Sliding(row) => (State::Sliding(*row), row.expires_at_ms(rule.period())),
            Self::Fixed(row) => (State::Fixed(*row), row.ends_at_ms(rule.period())),
            Self::Bucket(row) => (State::Bucket(*row), row.full_at_ms()),
        };
        // Only a row from a clock that was ahead can outlive the bound of a store.
        Charge { state, expires_at_ms: expires_at_ms.min(now_ms.saturating_add(LIFE_MS_MAX)) }
    }
}

impl Rule {
    fn period(&self) -> u64 {
        self.period_ms.max(1)
    }
}

/// The guard's bound on the windows of one call, which then need no allocation; more of them work too.
const INLINE: usize = 4;

#[cfg(test)]
mod tests;
