//! The earlier contract: a store that counts up and forgets, one key at a time.

use std::{error::Error, fmt::Write, sync::Arc, time::Duration};

use smallvec::SmallVec;
use tidegate_core::{
    INTEGER_MAX,
    reservation::{self, Budget, BudgetRule},
    window::Usage,
};
use tidegate_store::{BoxFuture, Key, LimitStore, LimitStoreExt, Value, View};

use crate::{Attempts, Decision, LimitError, Standing, Window};

/// A store of the earlier contract. One that an application has keeps serving it, by
/// [`crate::Limits::in_earlier`]; where the application asks for one, [`Counters`] is one on any limit store.
pub trait RateLimitStore: Send + Sync + 'static {
    /// Counts one more for `key`, and says how many that makes. The first begins a window of this length, and
    /// no later one moves its end; after it the count begins anew.
    fn increment<'a>(&'a self, key: &'a str, window: Duration) -> BoxFuture<'a, Result<Count, EarlierError>>;

    /// Forgets the count of `key`.
    fn reset<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), EarlierError>>;
}

/// Why such a store has not counted.
pub type EarlierError = Box<dyn Error + Send + Sync>;

/// What is counted for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// How many since the window began, this one included.
    pub hits: u64,
    /// How long until it ends.
    pub resets_in: Duration,
}

/// The earlier contract on a limit store: for code that still asks for it.
#[derive(Clone)]
pub struct Counters(Arc<dyn LimitStore>);

impl Counters {
    /// Counts in `store`, apart from all other limits there.
    #[must_use]
    pub fn new(store: Arc<dyn LimitStore>) -> Self {
        Self(store)
    }
}

impl RateLimitStore for Counters {
    fn increment<'a>(&'a self, key: &'a str, window: Duration) -> BoxFuture<'a, Result<Count, EarlierError>> {
        let period_ms = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        let rule = BudgetRule { limit: INTEGER_MAX, period_ms };
        Box::pin(async move {
            Ok(self.0.update(vec![counter_key(key)], move |view| increment(view, rule)).await??)
        })
    }

    fn reset<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), EarlierError>> {
        Box::pin(async move { Ok(self.0.update(vec![counter_key(key)], |view| view.delete(0)).await?) })
    }
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counters").finish_non_exhaustive()
    }
}

fn counter_key(key: &str) -> Key {
    Key::of(&[b"application counter", key.as_bytes()])
}

fn increment(view: &mut View<'_>, rule: BudgetRule) -> Result<Count, LimitError> {
    let row = view.get(0).map(|entry| Budget::decode(&entry.value)).transpose()?;
    let answer = reservation::reserve(&[(rule, row)], 0, 1, view.now_ms());
    if let Some(budget) = answer.reserved.iter().flat_map(|reserved| &reserved.budgets).next() {
        let mut value = Value::new();
        budget.encode(&mut value);
        view.put(0, value, budget.ends_at_ms);
    }
    let Usage { used, reset_ms, .. } = answer.usages[0];
    Ok(Count { hits: used, resets_in: Duration::from_millis(reset_ms) })
}

/// A store of the earlier contract, from [`crate::Limits`]' side.
#[derive(Clone)]
pub(crate) struct Earlier {
    store: Arc<dyn RateLimitStore>,
    deadline: Duration,
}

/// One count to be charged.
pub(crate) struct Counter {
    key: Key,
    name: &'static str,
    limit: u64,
    period_ms: u64,
}

/// What a counter's limit is.
pub(crate) trait Countable {
    fn parts(&self) -> (&'static str, u64, u64);
}

impl Countable for Window {
    fn parts(&self) -> (&'static str, u64, u64) {
        (self.name, self.rule.limit, self.rule.period_ms)
    }
}

impl Countable for Attempts {
    fn parts(&self) -> (&'static str, u64, u64) {
        (self.name, self.rule.limit, self.rule.period_ms)
    }
}

impl Counter {
    pub(crate) fn new(key: Key, limit: &impl Countable) -> Self {
        let (name, limit, period_ms) = limit.parts();
        Self { key, name, limit, period_ms }
    }
}

impl Earlier {
    pub(crate) fn new(store: Arc<dyn RateLimitStore>, deadline: Duration) -> Self {
        Self { store, deadline }
    }

    /// Counts `cost` up on one after the other, until one has no room.
    pub(crate) async fn count(
        &self,
        counters: impl Iterator<Item = Counter>,
        cost: u64,
    ) -> Result<Decision, LimitError> {
        let mut decision =
            Decision { allowed: true, retry_after: Some(Duration::ZERO), standings: SmallVec::new() };
        for counter in counters {
            let standing = self.charge(&counter, cost).await?;
            decision.standings.push(standing);
            if standing.refused {
                decision.allowed = false;
                decision.retry_after = (counter.limit > 0 && cost <= counter.limit).then_some(standing.reset);
                break;
            }
        }
        Ok(decision)
    }

    async fn charge(&self, counter: &Counter, cost: u64) -> Result<Standing, LimitError> {
        let (key, window) = (text(counter.key), Duration::from_millis(counter.period_ms));
        let mut count = Count { hits: 0, resets_in: Duration::ZERO };
        // What can never fit is not counted up.
        for _ in 0..if cost > counter.limit { 0 } else { cost } {
            count = self.in_time(self.store.increment(&key, window)).await?;
            if count.hits > counter.limit {
                break;
            }
        }
        let usage = Usage {
            limit: counter.limit,
            used: count.hits,
            remaining: counter.limit.saturating_sub(count.hits),
            reset_ms: u64::try_from(count.resets_in.as_millis()).unwrap_or(u64::MAX),
        };
        let refused = count.hits > counter.limit || cost > counter.limit || counter.limit == 0;
        Ok(Standing::new(counter.name, counter.period_ms, &usage, refused))
    }

    pub(crate) async fn reset(&self, keys: Vec<Key>) -> Result<(), LimitError> {
        for key in keys {
            self.in_time(self.store.reset(&text(key))).await?;
        }
        Ok(())
    }

    async fn in_time<T>(&self, call: impl Future<Output = Result<T, EarlierError>>) -> Result<T, LimitError> {
        let answer = tokio::time::timeout(self.deadline, call).await;
        answer.map_err(|_| LimitError::Late(self.deadline))?.map_err(LimitError::Earlier)
    }
}

/// What a store that takes texts sees of a key: nothing of whom it stands for.
fn text(key: Key) -> String {
    key.as_bytes().iter().fold("tidegate:".to_owned(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
