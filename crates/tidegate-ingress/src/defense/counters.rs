//! What has been counted of an app, in the last minute, hour and day.

use std::collections::BTreeMap;

use serde::Serialize;
use tidegate_core::defense::{Outcome, Reason, Verdict};

/// How a request is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing was found against it.
    Allowed,
    /// An enforcing policy would have refused it.
    WouldBlock(Reason),
    /// The policy refused it.
    Blocked(Reason),
    /// Served, since the policy could not be asked.
    FailOpen,
    /// Refused by the firewall, before the policy.
    Firewall,
}

/// A span of time that ends now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// The last 60 s, by the second.
    Minute,
    /// The last 60 minutes, by the minute.
    #[default]
    Hour,
    /// The last 24 hours, by a quarter of an hour.
    Day,
}

/// What was counted in a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Which window.
    pub window: Window,
    /// Requests that passed with nothing against them.
    pub allowed: u64,
    /// Requests that an enforcing policy would have refused, by reason.
    pub would_block: BTreeMap<&'static str, u64>,
    /// Requests that were refused, by reason.
    pub blocked: BTreeMap<&'static str, u64>,
    /// Requests that were served since the policy could not be asked.
    pub fail_open: u64,
}

/// Part of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Step {
    /// When it begins, in ms since the epoch.
    pub at_ms: u64,
    /// As in [`Counters`].
    pub allowed: u64,
    /// As in [`Counters`], for all reasons.
    pub would_block: u64,
    /// As in [`Counters`], for all reasons.
    pub blocked: u64,
    /// As in [`Counters`].
    pub fail_open: u64,
    /// Requests that the instance's firewall refused.
    pub firewall: u64,
}

/// The numbers of one span: a place for each kind.
pub(super) type Tally = [u64; Kind::COUNT];

/// The numbers of an app, in steps that are written over when their time comes again.
#[derive(Debug)]
pub(super) struct Tallies {
    windows: [Vec<Slot>; Window::ALL.len()],
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Which step since the epoch.
    step: u64,
    tally: Tally,
}

const REASONS: usize = Reason::ALL.len();

impl Kind {
    /// How many kinds there are.
    pub(super) const COUNT: usize = 3 + 2 * REASONS;
    const FAIL_OPEN: usize = 1 + 2 * REASONS;
    const FIREWALL: usize = Self::FAIL_OPEN + 1;

    /// Its place in a [`Tally`].
    pub(super) const fn place(self) -> usize {
        match self {
            Self::Allowed => 0,
            Self::WouldBlock(reason) => 1 + reason as usize,
            Self::Blocked(reason) => 1 + REASONS + reason as usize,
            Self::FailOpen => Self::FAIL_OPEN,
            Self::Firewall => Self::FIREWALL,
        }
    }

    /// The kind that has this place.
    pub(super) fn at(place: usize) -> Self {
        let reason = |from: usize| Reason::ALL[(place - from) % REASONS];
        match place {
            0 => Self::Allowed,
            Self::FAIL_OPEN => Self::FailOpen,
            place if place <= REASONS => Self::WouldBlock(reason(1)),
            place if place < Self::FAIL_OPEN => Self::Blocked(reason(1 + REASONS)),
            _ => Self::Firewall,
        }
    }

    /// What became of it, in a word.
    pub(super) const fn outcome(self) -> &'static str {
        match self {
            Self::Allowed => Outcome::Allowed.as_str(),
            Self::WouldBlock(_) => Outcome::WouldBlock.as_str(),
            Self::Blocked(_) | Self::Firewall => Outcome::Blocked.as_str(),
            Self::FailOpen => "fail_open",
        }
    }

    /// What was found against it.
    pub(super) const fn reason(self) -> Option<&'static str> {
        match self {
            Self::WouldBlock(reason) | Self::Blocked(reason) => Some(reason.as_str()),
            Self::Firewall => Some("firewall"),
            Self::Allowed | Self::FailOpen => None,
        }
    }
}

impl From<Verdict> for Kind {
    fn from(verdict: Verdict) -> Self {
        match (verdict.outcome, verdict.reason) {
            (Outcome::WouldBlock, Some(reason)) => Self::WouldBlock(reason),
            (Outcome::Blocked, Some(reason)) => Self::Blocked(reason),
            _ => Self::Allowed,
        }
    }
}

impl Window {
    /// Every window.
    pub const ALL: [Self; 3] = [Self::Minute, Self::Hour, Self::Day];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    /// The window of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|window| window.as_str() == name)
    }

    /// How long a step is, in ms.
    #[must_use]
    pub const fn step_ms(self) -> u64 {
        match self {
            Self::Minute => 1000,
            Self::Hour => 60_000,
            Self::Day => 900_000,
        }
    }

    const fn steps(self) -> u64 {
        match self {
            Self::Minute | Self::Hour => 60,
            Self::Day => 96,
        }
    }
}

impl Tallies {
    pub(super) fn new() -> Self {
        let slots = |window: Window| (0..window.steps()).map(|_| Slot::default()).collect();
        Self { windows: Window::ALL.map(slots) }
    }

    pub(super) fn count(&mut self, kind: Kind, at_ms: u64) {
        let place = kind.place();
        for (window, slots) in Window::ALL.into_iter().zip(&mut self.windows) {
            let step = at_ms / window.step_ms();
            let index = usize::try_from(step % window.steps()).unwrap_or_default();
            let slot = &mut slots[index];
            if slot.step != step {
                *slot = Slot { step, tally: Tally::default() };
            }
            slot.tally[place] += 1;
        }
    }

    /// The numbers of a window, by step, oldest first; the last one is still going on.
    pub(super) fn series(&self, window: Window, now_ms: u64) -> Vec<(u64, Tally)> {
        let last = now_ms / window.step_ms();
        let steps = last.saturating_sub(window.steps() - 1)..=last;
        let slots = &self.windows[window as usize];
        let tally = |step: u64| {
            let slot = slots[usize::try_from(step % window.steps()).unwrap_or_default()];
            if slot.step == step { slot.tally } else { Tally::default() }
        };
        steps.map(|step| (step * window.step_ms(), tally(step))).collect()
    }
}

impl Counters {
    pub(super) fn of(window: Window, series: &[(u64, Tally)]) -> Self {
        let mut sum = Tally::default();
        for (_, tally) in series {
            for (total, count) in sum.iter_mut().zip(tally) {
                *total += count;
            }
        }
        let by_reason =
            |from: usize| Reason::ALL.map(|reason| (reason.as_str(), sum[from + reason as usize])).into();
        Self {
            window,
            allowed: sum[0],
            would_block: by_reason(1),
            blocked: by_reason(1 + REASONS),
            fail_open: sum[Kind::FAIL_OPEN],
        }
    }
}

impl Step {
    pub(super) fn of(&(at_ms, tally): &(u64, Tally)) -> Self {
        let sum = |from: usize| tally[from..from + REASONS].iter().sum();
        Self {
            at_ms,
            allowed: tally[0],
            would_block: sum(1),
            blocked: sum(1 + REASONS),
            fail_open: tally[Kind::FAIL_OPEN],
            firewall: tally[Kind::FIREWALL],
        }
    }

    /// All requests of the step.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.allowed + self.would_block + self.blocked + self.fail_open + self.firewall
    }
}
