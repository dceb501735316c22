//! Reservations: a cost that is taken from several budgets before an attempt, and given back, at most once,
//! if the attempt turns out well.
//!
//! A budget's window begins at its first reservation and ends one period later; nothing moves that end. A
//! receipt says what was taken from which window, so that only that can be given back.

mod refund;
mod row;

use smallvec::SmallVec;

pub use crate::window::Usage;
pub use refund::{Refund, refund};

use crate::key::Key;

/// A limit on the attempts of one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BudgetRule {
    /// The most that may be reserved in a window, to [`crate::INTEGER_MAX`]. 0 admits nothing.
    pub limit: u64,
    /// How long a window lasts from its first reservation, in ms.
    pub period_ms: u64,
}

/// The row of a budget. It expires when its window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    /// The end of the window, in ms since the epoch.
    pub ends_at_ms: u64,
    /// What is reserved in it.
    pub used: u64,
}

/// The row of a receipt. It expires with the window of its target budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Whether it has been given back.
    pub refunded: bool,
    /// What was taken from each budget.
    pub cost: u64,
    /// The budgets, and the window of each that was charged, by its end in ms since the epoch.
    pub charges: SmallVec<[(Key, u64); INLINE]>,
}

/// The answer to a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    /// The budgets that denied it, by index; empty if it was allowed.
    pub denied_by: SmallVec<[usize; INLINE]>,
    /// Each budget, in the order given: after the reservation if there was one, as it is otherwise.
    /// `reset_ms` is 0 where no window runs.
    pub usages: SmallVec<[Usage; INLINE]>,
    /// `Some(0)` when allowed; else the shortest wait in ms after which the same call would be allowed if
    /// nobody else called; `None` if waiting never helps (a limit of 0, or under the cost).
    pub retry_after_ms: Option<u64>,
    /// What to write; `None` if nothing changes (a denial, or a cost of 0).
    pub reserved: Option<Reserved>,
}

/// The rows to write for a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserved {
    /// Each budget, in the order given.
    pub budgets: SmallVec<[Budget; INLINE]>,
    /// When the receipt expires, in ms since the epoch.
    pub receipt_expires_at_ms: u64,
}

impl Reserve {
    /// Whether every budget had room.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.denied_by.is_empty()
    }
}

/// Reserves `cost` in every budget or in none. A cost of 0 asks without reserving.
///
/// The receipt lives as long as the window of `budgets[target]` (of the last budget, if there is none such).
#[must_use]
pub fn reserve(budgets: &[(BudgetRule, Option<Budget>)], target: usize, cost: u64, now_ms: u64) -> Reserve {
    let waits = || budgets.iter().map(|(rule, budget)| wait_ms(*rule, live(*budget, now_ms), cost, now_ms));
    let denied_by: SmallVec<[usize; INLINE]> =
        waits().enumerate().filter(|(_, wait_ms)| *wait_ms != Some(0)).map(|(index, _)| index).collect();
    let retry_after_ms = waits().try_fold(0, |longest: u64, wait_ms| Some(longest.max(wait_ms?)));

    let charged = denied_by.is_empty() && cost > 0;
    let after = |(rule, budget): &(BudgetRule, Option<Budget>)| {
        let budget = live(*budget, now_ms);
        if charged { Some(charge(*rule, budget, cost, now_ms)) } else { budget }
    };
    let usages = budgets.iter().map(|entry| usage(entry.0, after(entry), now_ms)).collect();
    let reserved = charged.then(|| receipt_of(budgets.iter().filter_map(after).collect(), target, now_ms));
    Reserve { denied_by, usages, retry_after_ms, reserved }
}

fn receipt_of(budgets: SmallVec<[Budget; INLINE]>, target: usize, now_ms: u64) -> Reserved {
    let target = budgets.get(target).or(budgets.last());
    let receipt_expires_at_ms = target.map_or(now_ms, |budget| budget.ends_at_ms);
    Reserved { budgets, receipt_expires_at_ms }
}

fn live(budget: Option<Budget>, now_ms: u64) -> Option<Budget> {
    budget.filter(|budget| budget.ends_at_ms > now_ms)
}

/// How long until `cost` fits: 0 now, `None` never. Nothing but the end of its window frees a budget.
fn wait_ms(rule: BudgetRule, budget: Option<Budget>, cost: u64, now_ms: u64) -> Option<u64> {
    let room = rule.limit.checked_sub(cost).filter(|_| rule.limit > 0)?;
    match budget {
        Some(budget) if budget.used > room => Some(budget.ends_at_ms - now_ms),
        _ => Some(0),
    }
}

fn charge(rule: BudgetRule, budget: Option<Budget>, cost: u64, now_ms: u64) -> Budget {
    let fresh = Budget { ends_at_ms: now_ms.saturating_add(rule.period_ms.max(1)), used: 0 };
    let budget = budget.unwrap_or(fresh);
    Budget { used: budget.used.saturating_add(cost), ..budget }
}

fn usage(rule: BudgetRule, budget: Option<Budget>, now_ms: u64) -> Usage {
    let used = budget.map_or(0, |budget| budget.used);
    Usage {
        limit: rule.limit,
        used,
        remaining: rule.limit.saturating_sub(used),
        reset_ms: budget.map_or(0, |budget| budget.ends_at_ms - now_ms),
    }
}

/// The guard's bound on the budgets of one call, which then need no allocation; more of them work too.
const INLINE: usize = 4;

#[cfg(test)]
mod tests;
