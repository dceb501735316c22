//! The cases, by what they are about, and the few words that they are written in.

mod atomicity;
mod bounds;
mod faults;
mod life;
mod naming;
mod room;

use std::{fmt::Debug, sync::Arc};

use tokio::task::JoinSet;

use super::{ContractCase, Handles, Outcome, What};
use crate::{Entry, Key, Keys, LimitStore, LimitStoreExt, StoreError, Unavailable, contract::BoxFuture};

/// Every case, in the order in which a new store is best made to pass them.
#[must_use]
pub fn contract_cases() -> Vec<ContractCase> {
    [life::CASES, naming::CASES, bounds::CASES, atomicity::CASES, room::CASES, faults::CASES].concat()
}

/// What a case answers.
type Seen = Result<Outcome, What>;
type Checking = BoxFuture<'static, Seen>;
type Store = Arc<dyn LimitStore>;

/// So long that no case sees its end, in ms.
const LONG_MS: u64 = 60 * 60 * 1000;
/// So short that a case can wait for its end in real time, in ms.
const SHORT_MS: u64 = 400;
/// Room for any case that is not about room.
const ROOMY: u64 = 10_000;

const fn case(name: &'static str, max_entries: u64, check: fn(Handles) -> Checking) -> ContractCase {
    ContractCase { name, max_entries, check }
}

/// The row called `name`.
#[expect(clippy::needless_pass_by_value, reason = "cases read better without the ampersands")]
fn key(name: impl ToString) -> Key {
    Key::of(&[b"contract", name.to_string().as_bytes()])
}

/// Adds one to the counter at `key`, and lets it live for `life_ms` from now; answers what it is then.
async fn bump(store: &Store, key: Key, life_ms: u64) -> Result<u64, StoreError> {
    let update = store.update(vec![key], move |view| {
        let count = count(view.get(0)) + 1;
        view.put(0, count.to_le_bytes().as_slice(), view.now_ms() + life_ms);
        count
    });
    update.await
}

/// The counter that `entry` holds; 0 without one. What is no counter counts as a number that none reaches.
fn count(entry: Option<&Entry>) -> u64 {
    let bytes = |entry: &Entry| entry.value.as_slice().try_into().map_or(u64::MAX >> 1, u64::from_le_bytes);
    entry.map_or(0, bytes)
}

/// Writes `value` at `key` for `life_ms` from now.
async fn put(store: &Store, key: Key, value: &[u8], life_ms: u64) -> Result<(), StoreError> {
    let value = value.to_vec();
    store.update(vec![key], move |view| view.put(0, value.as_slice(), view.now_ms() + life_ms)).await
}

/// The value at `key`.
async fn value(store: &Store, key: Key) -> Result<Option<Vec<u8>>, StoreError> {
    let rows = store.read(vec![key]).await?;
    Ok(rows.into_iter().next().flatten().map(|entry| entry.value.to_vec()))
}

/// The counters at `keys`.
async fn counts(store: &Store, keys: Vec<Key>) -> Result<Vec<u64>, StoreError> {
    Ok(store.read(keys).await?.iter().map(|row| count(row.as_ref())).collect())
}

/// Runs `calls` at once; answers what they answered, in no order.
async fn at_once<T: Send + 'static>(
    calls: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Result<Vec<T>, What> {
    let mut tasks: JoinSet<T> = calls.into_iter().collect();
    let mut answers = Vec::with_capacity(tasks.len());
    while let Some(answer) = tasks.join_next().await {
        answers.push(answer.map_err(|error| What(format!("a call did not come to its end: {error}")))?);
    }
    Ok(answers)
}

/// Checks that `what` was as it should be.
#[expect(clippy::needless_pass_by_value, reason = "cases read better without the ampersands")]
fn same<T: PartialEq + Debug>(what: &str, seen: T, right: T) -> Result<(), What> {
    if seen == right { Ok(()) } else { Err(What(format!("{what}: {seen:?}, not {right:?}"))) }
}

/// Checks that `holds`.
fn holds(what: &str, holds: bool) -> Result<(), What> {
    if holds { Ok(()) } else { Err(What(what.to_owned())) }
}

/// Checks that a call was answered that the store is unavailable, for `reason`.
fn unavailable<T: Debug>(what: &str, seen: Result<T, StoreError>, reason: Unavailable) -> Result<(), What> {
    match seen {
        Err(StoreError::Unavailable(seen)) if seen == reason => Ok(()),
        seen => Err(What(format!("{what}: {seen:?}, not unavailable: {reason}"))),
    }
}
