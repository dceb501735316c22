//! Counting against limits.

use std::{sync::Arc, time::Duration};

use smallvec::SmallVec;
use thiserror::Error;
use tidegate_core::{
    codec::DecodeError,
    reservation::{self, Budget, BudgetRule, Receipt, Refund},
    window::{self, Rule, State},
};
use tidegate_store::{Key, LimitStore, LimitStoreExt, StoreError, Value, View};

use crate::{
    Attempts, Decision, EarlierError, Of, RateLimitStore, Standing, Window,
    earlier::{self, Earlier},
};

/// Counts in a store. Clones count in the same one.
#[derive(Clone)]
pub struct Limits(Counts);

#[derive(Clone)]
enum Counts {
    Store(Arc<dyn LimitStore>),
    Earlier(Earlier),
}

/// The answer to a reservation.
#[derive(Debug)]
pub enum Attempt {
    /// It may run.
    Reserved(Reservation),
    /// A limit has no room; nothing was reserved.
    Refused(Decision),
}

/// An attempt that may run, and counts as failed until [`Reservation::refund`]: also if the process ends.
#[derive(Debug)]
pub struct Reservation {
    /// How the limits stand with it.
    pub decision: Decision,
    refund: Option<Refundable>,
}

/// Where a reservation is, in a store that can give it back.
struct Refundable {
    store: Arc<dyn LimitStore>,
    /// The receipt's row, then the limits'.
    keys: Vec<Key>,
}

/// What became of a refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refunded {
    /// The attempt counts no more.
    Now,
    /// It was given back before; nothing was changed.
    Before,
    /// Its period has ended; nothing is left to give back.
    Expired,
    /// The store is one of the earlier contract, which can't give back: the attempt stays counted.
    Kept,
}

/// No answer. What it means for a request is the application's to say; after all but
/// [`LimitError::Randomness`] it may or may not have been counted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LimitError {
    /// The store gave none.
    #[error("counting against a limit")]
    Store(#[from] StoreError),
    /// A count is not what one looks like: neither zero nor full is known. Nothing was counted.
    #[error("a count in the store is damaged")]
    Damaged(#[from] DecodeError),
    /// A store of the earlier contract failed.
    #[error("counting in a store of the earlier contract")]
    Earlier(#[source] EarlierError),
    /// A store of the earlier contract did not answer in time.
    #[error("a store of the earlier contract has not answered within {0:?}")]
    Late(Duration),
    /// The system gave no random bytes for a receipt. Nothing was counted.
    #[error("drawing the name of a receipt")]
    Randomness(#[source] getrandom::Error),
}

impl Limits {
    /// Counts in `store`.
    #[must_use]
    pub fn new(store: Arc<dyn LimitStore>) -> Self {
        Self(Counts::Store(store))
    }

    /// Counts in a store of the earlier contract, which answers within `deadline` or not at all. It knows no
    /// more than counting up, so that less is promised: several limits are charged one after the other, and those
    /// before the one that refuses stay charged; a refusal counts too; every window begins with its first hit;
    /// nothing is given back.
    #[must_use]
    pub fn in_earlier(store: Arc<dyn RateLimitStore>, deadline: Duration) -> Self {
        Self(Counts::Earlier(Earlier::new(store, deadline)))
    }

    /// Charges `cost` to every window or to none.
    ///
    /// # Errors
    /// See [`LimitError`]; also if one of them is named twice.
    pub async fn hit(&self, windows: &[Of<Window>], cost: u64) -> Result<Decision, LimitError> {
        let store = match &self.0 {
            Counts::Store(store) => store,
            Counts::Earlier(earlier) => {
                let counters = windows.iter().map(|of| earlier::Counter::new(of.key, &of.limit));
                return earlier.count(counters, cost).await;
            }
        };
        let keys = windows.iter().map(|of| of.key).collect();
        let rules: SmallVec<[Rule; 2]> = windows.iter().map(|of| of.limit.rule).collect();
        let hit = store.update(keys, move |view| hit(view, &rules, cost)).await??;
        let standings = windows.iter().zip(&hit.usages).map(|(of, usage)| {
            let refused = !hit.allowed && (usage.remaining < cost || usage.limit == 0);
            Standing::new(of.limit.name, of.limit.rule.period_ms, usage, refused)
        });
        Ok(Decision {
            allowed: hit.allowed,
            retry_after: wait(hit.retry_after_ms),
            standings: standings.collect(),
        })
    }

    /// Reserves an attempt of every limit or of none, before the attempt is made. Whoever it turns out well for
    /// gives it back by [`Reservation::refund`]; others keep it counted.
    ///
    /// # Errors
    /// See [`LimitError`]; also if one of them is named twice.
    pub async fn reserve(&self, attempts: &[Of<Attempts>]) -> Result<Attempt, LimitError> {
        let store = match &self.0 {
            Counts::Store(store) => store,
            Counts::Earlier(earlier) => {
                let counters = attempts.iter().map(|of| earlier::Counter::new(of.key, &of.limit));
                return Ok(Attempt::new(earlier.count(counters, 1).await?, None));
            }
        };
        let keys: Vec<Key> =
            std::iter::once(receipt_key()?).chain(attempts.iter().map(|of| of.key)).collect();
        let rules: SmallVec<[BudgetRule; 2]> = attempts.iter().map(|of| of.limit.rule).collect();
        let reserved = store.update(keys.clone(), move |view| reserve(view, &rules)).await??;
        let standings = attempts.iter().zip(&reserved.usages).enumerate().map(|(place, (of, usage))| {
            let refused = reserved.denied_by.contains(&place);
            Standing::new(of.limit.name, of.limit.rule.period_ms, usage, refused)
        });
        let decision = Decision {
            allowed: reserved.allowed(),
            retry_after: wait(reserved.retry_after_ms),
            standings: standings.collect(),
        };
        Ok(Attempt::new(decision, Some(Refundable { store: Arc::clone(store), keys })))
    }

    /// Forgets what is counted for these, as a moderator would.
    ///
    /// # Errors
    /// See [`LimitError`].
    pub async fn reset<L>(&self, counted: &[Of<L>]) -> Result<(), LimitError> {
        let keys: Vec<Key> = counted.iter().map(|of| of.key).collect();
        match &self.0 {
            Counts::Store(store) => {
                let count = keys.len();
                Ok(store.update(keys, move |view| (0..count).for_each(|index| view.delete(index))).await?)
            }
            Counts::Earlier(earlier) => earlier.reset(keys).await,
        }
    }
}

impl Attempt {
    fn new(decision: Decision, refund: Option<Refundable>) -> Self {
        if decision.allowed {
            Self::Reserved(Reservation { decision, refund })
        } else {
            Self::Refused(decision)
        }
    }
}

impl Reservation {
    /// Gives the attempt back, once: what others have used stays used. After an error it can be tried again.
    ///
    /// # Errors
    /// See [`LimitError`]; it may or may not have been given back.
    pub async fn refund(&self) -> Result<Refunded, LimitError> {
        match &self.refund {
            Some(Refundable { store, keys }) => store.update(keys.clone(), refund).await?,
            None => Ok(Refunded::Kept),
        }
    }
}

fn hit(view: &mut View<'_>, rules: &[Rule], cost: u64) -> Result<window::Hit, LimitError> {
    let state = |index| view.get(index).map(|entry| State::decode(&entry.value)).transpose();
    let windows = rules.iter().enumerate().map(|(index, rule)| Ok((*rule, state(index)?)));
    let windows = windows.collect::<Result<SmallVec<[_; 2]>, DecodeError>>()?;
    let hit = window::hit(&windows, cost, view.now_ms());
    for (index, row) in hit.charged.iter().flatten().enumerate() {
        let mut value = Value::new();
        row.state.encode(&mut value);
        view.put(index, value, row.expires_at_ms);
    }
    Ok(hit)
}

/// The first row is the receipt's.
fn reserve(view: &mut View<'_>, rules: &[BudgetRule]) -> Result<reservation::Reserve, LimitError> {
    let rows = budgets(view, rules.len())?;
    let budgets: SmallVec<[_; 2]> = rules.iter().copied().zip(rows).collect();
    // The receipt lives as long as the longest of its windows, so that it can be given back to each.
    let ends_at_ms = |&(rule, row): &(BudgetRule, Option<Budget>)| {
        row.map_or(view.now_ms().saturating_add(rule.period_ms), |row| row.ends_at_ms)
    };
    let longest = (0..budgets.len()).max_by_key(|index| ends_at_ms(&budgets[*index])).unwrap_or(0);
    let answer = reservation::reserve(&budgets, longest, 1, view.now_ms());
    if let Some(reserved) = answer.reserved.as_ref().filter(|reserved| !reserved.budgets.is_empty()) {
        for (index, budget) in reserved.budgets.iter().enumerate() {
            put_budget(view, index + 1, budget);
        }
        // The reservation itself knows the rows, so the store need not know which belong together.
        let charges =
            reserved.budgets.iter().map(|budget| (Key::from_bytes([0; Key::BYTES]), budget.ends_at_ms));
        let receipt = Receipt { refunded: false, cost: 1, charges: charges.collect() };
        put_receipt(view, &receipt, reserved.receipt_expires_at_ms);
    }
    Ok(answer)
}

fn refund(view: &mut View<'_>) -> Result<Refunded, LimitError> {
    let Some(entry) = view.get(0) else { return Ok(Refunded::Expired) };
    let (receipt, expires_at_ms) = (Receipt::decode(&entry.value)?, entry.expires_at_ms);
    let rows = budgets(view, receipt.charges.len())?;
    match reservation::refund(Some(receipt), &rows, view.now_ms()) {
        Refund::Refunded { receipt, budgets } => {
            for (index, budget) in budgets.iter().enumerate() {
                if let Some(budget) = budget {
                    put_budget(view, index + 1, budget);
                }
            }
            put_receipt(view, &receipt, expires_at_ms);
            Ok(Refunded::Now)
        }
        Refund::AlreadyRefunded => Ok(Refunded::Before),
        Refund::UnknownOrExpired => Ok(Refunded::Expired),
    }
}

fn budgets(view: &View<'_>, count: usize) -> Result<SmallVec<[Option<Budget>; 2]>, DecodeError> {
    let row = |index| view.get(index).map(|entry| Budget::decode(&entry.value)).transpose();
    (1..=count).map(row).collect()
}

fn put_budget(view: &mut View<'_>, index: usize, budget: &Budget) {
    let mut value = Value::new();
    budget.encode(&mut value);
    view.put(index, value, budget.ends_at_ms);
}

/// Beside the counts, so that a full store still takes attempts of those that it counts for.
fn put_receipt(view: &mut View<'_>, receipt: &Receipt, expires_at_ms: u64) {
    let mut value = Value::new();
    receipt.encode(&mut value);
    view.put_beside(0, value, expires_at_ms);
}

fn receipt_key() -> Result<Key, LimitError> {
    let mut drawn = [0; 16];
    getrandom::fill(&mut drawn).map_err(LimitError::Randomness)?;
    Ok(Key::of(&[b"application receipt", &drawn]))
}

fn wait(retry_after_ms: Option<u64>) -> Option<Duration> {
    retry_after_ms.map(Duration::from_millis)
}

impl std::fmt::Debug for Limits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limits").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Refundable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refundable").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
