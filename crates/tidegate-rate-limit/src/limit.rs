//! Limits, and whom they are counted for.

use std::time::Duration;

use thiserror::Error;
use tidegate_core::{
    INTEGER_MAX, LIFE_MS_MAX,
    reservation::BudgetRule,
    window::{Algorithm, Rule},
};
use tidegate_store::Key;

/// A limit on what happens in a period: requests, codes sent. Charged by [`crate::Limits::hit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub(crate) name: &'static str,
    pub(crate) rule: Rule,
}

/// A limit on attempts that may turn out well: a reservation is taken before the attempt and given back after a
/// success ([`crate::Limits::reserve`]), so that only failures count in the end, and never more attempts run at
/// once than there may be failures. A period begins with the first attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts {
    pub(crate) name: &'static str,
    pub(crate) rule: BudgetRule,
}

/// A limit for somebody or something.
#[derive(Debug, Clone, Copy)]
pub struct Of<L> {
    pub(crate) limit: L,
    pub(crate) key: Key,
}

/// Why there can't be such a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadLimit {
    /// The name is told to clients, in a header.
    #[error("the name of a limit has 1 to 64 characters: letters, digits, '-', '_' and '.'")]
    Name,
    /// More than 2^53 - 1.
    #[error("a limit is at most 2^53 - 1")]
    TooLarge,
    /// Not within what a store keeps.
    #[error("a period is 1 ms to 120 days, that of a sliding window to 60 days")]
    Period,
}

impl Window {
    /// At most `limit` in any `period`, as far as two counters can tell: see [`Algorithm::Sliding`].
    ///
    /// # Errors
    /// See [`BadLimit`].
    pub fn sliding(name: &'static str, limit: u64, period: Duration) -> Result<Self, BadLimit> {
        Self::new(name, limit, period, Algorithm::Sliding)
    }

    /// At most `limit` in each `period` of the clock; around its edge up to twice as many.
    ///
    /// # Errors
    /// See [`BadLimit`].
    pub fn fixed(name: &'static str, limit: u64, period: Duration) -> Result<Self, BadLimit> {
        Self::new(name, limit, period, Algorithm::Fixed)
    }

    /// A token bucket that holds `limit` and fills in a `period`.
    ///
    /// # Errors
    /// See [`BadLimit`].
    pub fn bucket(name: &'static str, limit: u64, period: Duration) -> Result<Self, BadLimit> {
        Self::new(name, limit, period, Algorithm::Bucket)
    }

    fn new(name: &'static str, limit: u64, period: Duration, algorithm: Algorithm) -> Result<Self, BadLimit> {
        // A sliding window keeps two periods.
        let longest_ms = if algorithm == Algorithm::Sliding { LIFE_MS_MAX / 2 } else { LIFE_MS_MAX };
        let period_ms = check(name, limit, period, longest_ms)?;
        Ok(Self { name, rule: Rule { limit, period_ms, algorithm } })
    }

    /// This limit for whoever `parts` name, such as an address, or an account and an address: each such list
    /// has a count of its own. The parts are hashed, and never stored as they came.
    #[must_use]
    pub fn of(&self, parts: &[&str]) -> Of<Self> {
        let kind = match self.rule.algorithm {
            Algorithm::Sliding => "sliding",
            Algorithm::Fixed => "fixed",
            Algorithm::Bucket => "bucket",
        };
        Of { limit: *self, key: key(kind, self.name, self.rule.period_ms, parts) }
    }
}

impl Attempts {
    /// At most `limit` attempts that ran or failed in a `period`.
    ///
    /// # Errors
    /// See [`BadLimit`].
    pub fn new(name: &'static str, limit: u64, period: Duration) -> Result<Self, BadLimit> {
        let period_ms = check(name, limit, period, LIFE_MS_MAX)?;
        Ok(Self { name, rule: BudgetRule { limit, period_ms } })
    }

    /// This limit for whoever `parts` name; see [`Window::of`].
    #[must_use]
    pub fn of(&self, parts: &[&str]) -> Of<Self> {
        Of { limit: *self, key: key("attempts", self.name, self.rule.period_ms, parts) }
    }
}

/// The period in ms.
fn check(name: &str, limit: u64, period: Duration, longest_ms: u64) -> Result<u64, BadLimit> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !(1..=64).contains(&name.len()) || !name.bytes().all(plain) {
        return Err(BadLimit::Name);
    }
    if limit > INTEGER_MAX {
        return Err(BadLimit::TooLarge);
    }
    let period_ms = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
    if (1..=longest_ms).contains(&period_ms) { Ok(period_ms) } else { Err(BadLimit::Period) }
}

/// A count belongs to its kind and period, and not to the limit: a limit that is raised or lowered goes on with
/// what was counted.
fn key(kind: &str, name: &str, period_ms: u64, parts: &[&str]) -> Key {
    let period = period_ms.to_le_bytes();
    let mut all: Vec<&[u8]> = vec![b"application limit", kind.as_bytes(), name.as_bytes(), &period];
    all.extend(parts.iter().map(|part| part.as_bytes()));
    Key::of(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_refused_at_the_door() {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let sliding = |name, limit, period| Window::sliding(name, limit, period).map(drop);
        let attempts = |name, limit, period| Attempts::new(name, limit, period).map(drop);
        let table = [
            (sliding("login", 5, DAY), Ok(())),
            (sliding("login", 0, DAY * 60), Ok(())),
            (sliding("login", 5, DAY * 61), Err(BadLimit::Period)),
            (attempts("login", INTEGER_MAX, DAY * 120), Ok(())),
            (attempts("login", INTEGER_MAX + 1, DAY), Err(BadLimit::TooLarge)),
            (attempts("login", 5, DAY * 121), Err(BadLimit::Period)),
            (attempts("login", 5, Duration::from_micros(999)), Err(BadLimit::Period)),
            (attempts("", 5, DAY), Err(BadLimit::Name)),
            (attempts("a \"name\"", 5, DAY), Err(BadLimit::Name)),
        ];
        for (row, (made, right)) in table.into_iter().enumerate() {
            assert_eq!(made, right, "row {row}");
        }
    }

    #[test]
    fn counts_are_told_apart_by_all_but_the_limit() {
        let a_minute = Duration::from_secs(60);
        let window = |limit| Window::sliding("login", limit, a_minute).unwrap();
        assert_eq!(window(5).of(&["alice"]).key, window(9).of(&["alice"]).key);
        let keys = [
            window(5).of(&["alice"]).key,
            window(5).of(&["al", "ice"]).key,
            window(5).of(&["alice", ""]).key,
            Window::fixed("login", 5, a_minute).unwrap().of(&["alice"]).key,
            Window::sliding("login", 5, a_minute * 2).unwrap().of(&["alice"]).key,
            Window::sliding("reset", 5, a_minute).unwrap().of(&["alice"]).key,
            Attempts::new("login", 5, a_minute).unwrap().of(&["alice"]).key,
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key), "{index}");
        }
    }
}
