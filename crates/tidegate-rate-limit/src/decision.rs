//! What a limit answers, for the application and for its client.

use std::{fmt::Write, time::Duration};

use smallvec::SmallVec;
use tidegate_core::window::Usage;

/// The answer of one limit or of several at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether all of them had room. If not, nothing was charged to any.
    pub allowed: bool,
    /// `Some(0)` when allowed; else how long until all of them have room if nobody else comes; `None` if waiting
    /// never helps (a limit of 0, or less than the cost).
    pub retry_after: Option<Duration>,
    /// Each limit, in the order given: after the charge if there was one, as it is otherwise.
    pub standings: SmallVec<[Standing; 2]>,
}

/// How far a limit is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The limit's name.
    pub name: &'static str,
    /// The most that may be used in a period.
    pub limit: u64,
    /// The period.
    pub period: Duration,
    /// What is left.
    pub remaining: u64,
    /// How long until the present count ends; 0 where none has begun.
    pub reset: Duration,
    /// It had no room.
    pub refused: bool,
}

impl Decision {
    /// The first limit that had no room, if one had none.
    #[must_use]
    pub fn refused_by(&self) -> Option<&Standing> {
        self.standings.iter().find(|standing| standing.refused)
    }

    /// What a client is told, as names and values of HTTP headers: `ratelimit-policy` and `ratelimit` of the
    /// IETF's draft, and `retry-after` where waiting helps. Seconds are rounded up, so that who waits as told is
    /// let in.
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let (mut policy, mut left) = (String::new(), String::new());
        for (place, standing) in self.standings.iter().enumerate() {
            let Standing { name, limit, period, remaining, reset, .. } = standing;
            let comma = if place > 0 { ", " } else { "" };
            let (period, reset) = (seconds_up(*period), seconds_up(*reset));
            // Writing to a string does not fail.
            let _ = write!(policy, "{comma}\"{name}\";q={limit};w={period}");
            let _ = write!(left, "{comma}\"{name}\";r={remaining};t={reset}");
        }
        let mut headers = vec![("ratelimit-policy", policy), ("ratelimit", left)];
        if let (false, Some(wait)) = (self.allowed, self.retry_after) {
            headers.push(("retry-after", seconds_up(wait).max(1).to_string()));
        }
        headers
    }
}

impl Standing {
    pub(crate) fn new(name: &'static str, period_ms: u64, usage: &Usage, refused: bool) -> Self {
        Self {
            name,
            limit: usage.limit,
            period: Duration::from_millis(period_ms),
            remaining: usage.remaining,
            reset: Duration::from_millis(usage.reset_ms),
            refused,
        }
    }
}

fn seconds_up(span: Duration) -> u64 {
    span.as_secs() + u64::from(span.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_whole_seconds_that_are_long_enough() {
        let standing = |name, refused| Standing {
            name,
            limit: 10,
            period: Duration::from_secs(300),
            remaining: if refused { 0 } else { 4 },
            reset: Duration::from_millis(1001),
            refused,
        };
        let policy = ("ratelimit-policy", "\"a\";q=10;w=300, \"b\";q=10;w=300".to_owned());
        let left = |b: u64| ("ratelimit", format!("\"a\";r=4;t=2, \"b\";r={b};t=2"));
        let table = [
            (true, Some(0), vec![policy.clone(), left(4)]),
            (false, Some(1), vec![policy.clone(), left(0), ("retry-after", "1".to_owned())]),
            (false, Some(2001), vec![policy.clone(), left(0), ("retry-after", "3".to_owned())]),
            (false, None, vec![policy, left(0)]),
        ];
        for (allowed, wait_ms, headers) in table {
            let decision = Decision {
                allowed,
                retry_after: wait_ms.map(Duration::from_millis),
                standings: [standing("a", false), standing("b", !allowed)].into_iter().collect(),
            };
            assert_eq!(decision.headers(), headers);
            assert_eq!(decision.refused_by().map(|standing| standing.name), (!allowed).then_some("b"));
        }
    }
}
