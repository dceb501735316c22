//! One update: a counter of a fixed window goes up by one, read, decided and written back.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use tidegate_core::{
    INTEGER_MAX, LIFE_MS_MAX,
    window::{self, Algorithm, Rule, State},
};
use tidegate_store::{Key, LimitStore, LimitStoreExt, Value, View};
use tokio::task::JoinSet;

use super::plain::{PlainPostgres, PlainRedis};

/// Where counters are.
#[derive(Clone)]
pub(super) enum Counter {
    /// In a limit store, which decides in Rust and writes many updates at once.
    Store(Arc<dyn LimitStore>),
    /// In a table of PostgreSQL, a transaction a call.
    PlainPostgres(Arc<PlainPostgres>),
    /// In Redis, an EVALSHA a call.
    PlainRedis(PlainRedis),
}

/// Out of reach, and so long that no turn sees a window end.
pub(super) const RULE: Rule =
    Rule { limit: INTEGER_MAX, period_ms: LIFE_MS_MAX, algorithm: Algorithm::Fixed };
/// Rows in one update while a store is filled.
const FILL_ROWS: usize = 512;
const FILL_UPDATES_AT_ONCE: usize = 16;

impl Counter {
    /// Counts one.
    pub(super) async fn count(&self, key: Key) -> Result<()> {
        let allowed = match self {
            Self::Store(store) => {
                store.update(vec![key], |view| hit(view, 0)).await.context("an update")??
            }
            Self::PlainPostgres(postgres) => postgres.count(key).await?,
            Self::PlainRedis(redis) => redis.count(key).await?,
        };
        ensure!(allowed, "an update was refused");
        Ok(())
    }

    /// Makes every row, counted once.
    pub(super) async fn fill(&self, keys: &[Key]) -> Result<()> {
        match self {
            Self::Store(store) => fill(store, keys).await,
            Self::PlainPostgres(postgres) => postgres.fill(keys).await,
            Self::PlainRedis(redis) => redis.fill(keys).await,
        }
    }
}

/// What a limit store has counted for `key`.
pub(super) async fn counted(store: &Arc<dyn LimitStore>, key: Key) -> Result<u64> {
    let used = store.update(vec![key], |view| {
        let state = view.get(0).map(|entry| State::decode(&entry.value)).transpose();
        state.map(|state| window::look(RULE, state.as_ref(), view.now_ms()).used)
    });
    Ok(used.await.context("reading a count")??)
}

fn hit(view: &mut View<'_>, index: usize) -> Result<bool> {
    let state = view.get(index).map(|entry| State::decode(&entry.value)).transpose()?;
    let hit = window::hit(&[(RULE, state)], 1, view.now_ms());
    for row in hit.charged.iter().flatten() {
        let mut value = Value::new();
        row.state.encode(&mut value);
        view.put(index, value, row.expires_at_ms);
    }
    Ok(hit.allowed)
}

async fn fill(store: &Arc<dyn LimitStore>, keys: &[Key]) -> Result<()> {
    let mut running = JoinSet::new();
    for rows in keys.chunks(FILL_ROWS) {
        if running.len() >= FILL_UPDATES_AT_ONCE {
            running.join_next().await.context("a filling task")???;
        }
        let (store, rows) = (Arc::clone(store), rows.to_vec());
        running.spawn(async move {
            let count = rows.len();
            let filled =
                store.update(rows, move |view| (0..count).try_for_each(|index| hit(view, index).map(drop)));
            filled.await.context("filling a store")?
        });
    }
    while let Some(filled) = running.join_next().await {
        filled.context("a filling task")??;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tidegate_rate_limit::{OpenStore, StoreKind};

    use super::*;
    use crate::bench::{choice::Choices, stores::servers};

    #[tokio::test]
    async fn an_update_counts_one_up() {
        let store = OpenStore::open(&servers::options(StoreKind::Memory)).await.unwrap().limit_store();
        let (keys, counter) = (Choices::prepare(1000).unwrap().keys, Counter::Store(Arc::clone(&store)));
        counter.fill(&keys).await.unwrap();
        let updates = (0..100).map(|_| {
            let (counter, key) = (counter.clone(), keys[0]);
            async move { counter.count(key).await.unwrap() }
        });
        updates.collect::<JoinSet<()>>().join_all().await;
        assert_eq!(counted(&store, keys[0]).await.unwrap(), 101);
        assert_eq!(counted(&store, keys[999]).await.unwrap(), 1);
    }
}
