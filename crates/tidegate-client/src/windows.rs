//! The windows of a limit: how they are asked for, and how an instance counts them alone.

use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;
use tidegate_core::{
    duration::Written,
    window::{self, Algorithm, Rule, State},
};
use tidegate_protocol::{
    bounds,
    identity::{Digest, Purpose},
    request::Window,
    response::Usage,
};

use crate::{
    GuardClient, InvalidLimit, Refusal, RefusalCode, WindowState,
    memory::{Fingerprint, Memory},
};

/// A limit over a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimit {
    limit: u64,
    period: Duration,
    algorithm: Algorithm,
}

impl WindowLimit {
    /// Counted in a sliding window.
    #[must_use]
    pub const fn sliding(limit: u64, period: Duration) -> Self {
        Self { limit, period, algorithm: Algorithm::Sliding }
    }

    /// Counted in a fixed window, aligned to the epoch.
    #[must_use]
    pub const fn fixed(limit: u64, period: Duration) -> Self {
        Self { limit, period, algorithm: Algorithm::Fixed }
    }

    /// Counted in a token bucket that refills fully in the period.
    #[must_use]
    pub const fn bucket(limit: u64, period: Duration) -> Self {
        Self { limit, period, algorithm: Algorithm::Bucket }
    }
}

/// Windows that are charged together, checked.
#[derive(Debug, Clone)]
pub(crate) struct Windows(SmallVec<[Rule; 4]>);

impl Windows {
    /// # Errors
    /// None or too many, a period twice, or a number out of the protocol's bounds.
    pub(crate) fn new(limits: impl IntoIterator<Item = WindowLimit>) -> Result<Self, InvalidLimit> {
        let rules: SmallVec<[Rule; 4]> = limits.into_iter().map(|limit| limit.rule()).collect();
        if rules.is_empty() || rules.len() > bounds::WINDOWS_MAX {
            return Err(InvalidLimit::Windows);
        }
        for (index, rule) in rules.iter().enumerate() {
            check_period(rule.period_ms, rule.algorithm)?;
            check_limit(rule.limit)?;
            if rules[..index].iter().any(|other| other.period_ms == rule.period_ms) {
                return Err(InvalidLimit::PeriodTwice);
            }
        }
        Ok(Self(rules))
    }

    /// Each limit and its period in ms.
    #[cfg(feature = "redis")]
    pub(crate) fn plain(&self) -> Vec<(u64, u64)> {
        self.0.iter().map(|rule| (rule.limit, rule.period_ms)).collect()
    }

    /// As the protocol has them.
    pub(crate) fn hashed(&self, client: &GuardClient) -> Vec<Window> {
        let hashed = |rule: &Rule| Window {
            key: key(client, rule.period_ms),
            limit: rule.limit,
            period_ms: rule.period_ms,
            algorithm: rule.algorithm,
        };
        self.0.iter().map(hashed).collect()
    }

    /// What the store says of them, if it says as much as was asked.
    pub(crate) fn states(&self, usages: &[Usage]) -> Option<Vec<WindowState>> {
        let state = |(rule, usage): (&Rule, &Usage)| WindowState {
            period_ms: rule.period_ms,
            limit: usage.limit,
            remaining: usage.remaining,
            reset_ms: usage.reset_ms,
        };
        (usages.len() == self.0.len()).then(|| self.0.iter().zip(usages).map(state).collect())
    }
}

impl WindowLimit {
    fn rule(self) -> Rule {
        Rule { limit: self.limit, period_ms: whole_ms(self.period), algorithm: self.algorithm }
    }
}

pub(crate) fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn key(client: &GuardClient, period_ms: u64) -> Digest {
    client.digest(Purpose::Key, &Written(period_ms).to_string())
}

pub(crate) fn check_period(period_ms: u64, algorithm: Algorithm) -> Result<(), InvalidLimit> {
    let longest_ms = match algorithm {
        Algorithm::Sliding => bounds::SLIDING_PERIOD_MS_MAX,
        Algorithm::Fixed | Algorithm::Bucket => bounds::TTL_MS_MAX,
    };
    let fits = (bounds::TTL_MS_MIN..=longest_ms).contains(&period_ms);
    fits.then_some(()).ok_or(InvalidLimit::Period)
}

pub(crate) fn check_limit(limit: u64) -> Result<(), InvalidLimit> {
    (limit <= bounds::INTEGER_MAX).then_some(()).ok_or(InvalidLimit::Number)
}

/// A denial: the windows, and how long it stands.
pub(crate) fn denial(retry_after_ms: Option<u64>, windows: Vec<WindowState>) -> Refusal {
    let longest_ms = windows.iter().map(|window| window.reset_ms).max();
    let wait_ms = retry_after_ms.or(longest_ms).unwrap_or_default().max(1);
    Refusal { code: RefusalCode::RateLimited, retry_after_ms: Some(wait_ms), windows }
}

/// Denials that need not be asked for again.
#[derive(Debug, Default)]
pub(crate) struct Denials(Mutex<Memory<Denied>>);

#[derive(Debug)]
struct Denied {
    at_ms: u64,
    refusal: Refusal,
}

impl Denials {
    /// The refusal that still stands, with what is left of its times.
    pub(crate) fn standing(&self, key: Fingerprint, now_ms: u64) -> Option<Refusal> {
        let mut denials = self.0.lock();
        let Denied { at_ms, refusal } = denials.get(key, now_ms)?;
        let left = |ms: u64| ms.saturating_sub(now_ms.saturating_sub(*at_ms)).max(1);
        let windows =
            refusal.windows.iter().map(|state| WindowState { reset_ms: left(state.reset_ms), ..*state });
        Some(Refusal {
            code: refusal.code,
            retry_after_ms: refusal.retry_after_ms.map(left),
            windows: windows.collect(),
        })
    }

    /// Remembers a refusal for as long as it stands, at most so long.
    pub(crate) fn remember(&self, key: Fingerprint, now_ms: u64, refusal: Refusal, at_most_ms: u64) {
        let stands_ms = refusal.retry_after_ms.unwrap_or_default().min(at_most_ms);
        self.0.lock().put(key, now_ms.saturating_add(stands_ms), Denied { at_ms: now_ms, refusal });
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// The same limits without a store: fixed windows of this instance, which start at zero.
#[derive(Debug)]
pub(crate) struct InstanceWindows {
    rules: SmallVec<[Rule; 4]>,
    rows: Mutex<Memory<Rows>>,
}

type Rows = SmallVec<[State; 4]>;

impl InstanceWindows {
    pub(crate) fn new(windows: &Windows) -> Self {
        let fixed = |rule: &Rule| Rule { algorithm: Algorithm::Fixed, ..*rule };
        Self { rules: windows.0.iter().map(fixed).collect(), rows: Mutex::default() }
    }

    /// Charges all windows of a subject, or none; the refusal if there is no room.
    pub(crate) fn hit(&self, key: Fingerprint, now_ms: u64) -> Result<(), Refusal> {
        let mut rows = self.rows.lock();
        let known = rows.get(key, now_ms);
        let state = |index: usize| known.and_then(|rows| rows.get(index).copied());
        let windows: SmallVec<[(Rule, Option<State>); 4]> =
            self.rules.iter().enumerate().map(|(index, rule)| (*rule, state(index))).collect();
        let hit = window::hit(&windows, 1, now_ms);
        let Some(charged) = hit.charged else {
            let state = |(rule, usage): (&Rule, &window::Usage)| WindowState {
                period_ms: rule.period_ms,
                limit: usage.limit,
                remaining: usage.remaining,
                reset_ms: usage.reset_ms,
            };
            let states = self.rules.iter().zip(&hit.usages).map(state).collect();
            return Err(denial(hit.retry_after_ms, states));
        };
        let ends_at_ms = charged.iter().map(|row| row.expires_at_ms).max().unwrap_or(now_ms);
        rows.put(key, ends_at_ms, charged.iter().map(|row| row.state).collect());
        Ok(())
    }

    /// Whether there is room for one more, without counting it.
    pub(crate) fn has_room(&self, key: Fingerprint, now_ms: u64) -> bool {
        let mut rows = self.rows.lock();
        let known = rows.get(key, now_ms);
        let mut windows = self.rules.iter().enumerate();
        windows.all(|(index, rule)| {
            let row = known.and_then(|rows| rows.get(index));
            window::look(*rule, row, now_ms).remaining > 0
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.lock().len()
    }
}
