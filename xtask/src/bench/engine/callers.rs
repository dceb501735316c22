//! Callers of the store, each with one update in flight.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use tidegate_store::{Backend, Driver, Key, LimitStoreExt, Value};

use crate::{
    bench::{
        choice::{self, Choice, Choices},
        random::Random,
    },
    clock,
};

/// What all callers of a turn did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) updates: u64,
    pub(super) elapsed: Duration,
}

pub(super) struct Caller<B: Backend> {
    store: Driver<B>,
    choices: Arc<Choices>,
    choice: Choice,
    place: usize,
    random: Random,
}

const VALUE_BYTES: usize = 100;
/// A record of an operation lives as long as a signature may be used, and a margin.
const RECORD_MS: u64 = 180_000;
const ROW_MS: u64 = 3_600_000;
/// Rows in one update while the store is filled.
const FILL_ROWS: usize = 128;

impl<B: Backend> Caller<B> {
    pub(super) fn new(
        store: Driver<B>,
        choices: Arc<Choices>,
        choice: Choice,
        number: usize,
    ) -> Result<Self> {
        let random = Random::fresh()?;
        Ok(Self { store, choices, choice, place: number.wrapping_mul(0x9E37_79B9), random })
    }

    pub(super) async fn update_until(mut self, until: Instant) -> Result<u64> {
        let mut updates = 0;
        while clock::now() < until {
            self.update().await?;
            updates += 1;
        }
        Ok(updates)
    }

    async fn update(&mut self) -> Result<()> {
        let record = choice::fresh_key(&mut self.random, &mut [0; Key::BYTES]);
        let first = self.choices.key(self.choice, self.place);
        let mut second = first;
        while second == first {
            self.place = self.place.wrapping_add(1);
            second = self.choices.key(self.choice, self.place);
        }
        let byte = (self.random.next() & 255) as u8;
        let done = self.store.update(vec![record, first, second], move |view| {
            let now_ms = view.now_ms();
            if view.get(0).is_some() {
                return false;
            }
            for index in 1..=2 {
                let mut value = view.get(index).map_or_else(Value::new, |row| row.value.clone());
                value.resize(VALUE_BYTES, 0);
                value[0] = byte;
                view.put(index, value, now_ms + ROW_MS);
            }
            view.put(0, Value::from_elem(byte, VALUE_BYTES), now_ms + RECORD_MS);
            true
        });
        if !done.await.context("updating a store")? {
            bail!("a fresh record was there already");
        }
        Ok(())
    }
}

/// Writes every row once.
pub(super) async fn fill<B: Backend>(store: &Driver<B>, choices: &Choices) -> Result<()> {
    for keys in choices.keys.chunks(FILL_ROWS) {
        let count = keys.len();
        let filled = store.update(keys.to_vec(), move |view| {
            let expires_at_ms = view.now_ms() + ROW_MS;
            (0..count).for_each(|index| view.put(index, Value::from_elem(0, VALUE_BYTES), expires_at_ms));
        });
        filled.await.context("filling a store")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tidegate_store::{DriverOptions, LimitStore, MemoryBackend, clock::SystemClock};

    use super::*;

    #[tokio::test]
    async fn an_update_writes_three_rows() {
        let store =
            Driver::start(MemoryBackend::new(Arc::new(SystemClock::new())), DriverOptions::new("test", 1000));
        let choices = Arc::new(Choices::prepare(2).unwrap());
        fill(&store, &choices).await.unwrap();
        let mut caller = Caller::new(store.clone(), Arc::clone(&choices), Choice::Zipf, 0).unwrap();
        for _ in 0..10 {
            caller.update().await.unwrap();
        }
        let rows = store.read(choices.keys.clone()).await.unwrap();
        assert!(rows.iter().all(|row| row.as_ref().is_some_and(|row| row.value.len() == VALUE_BYTES)));
        store.sweep().await.unwrap();
        assert_eq!(store.stats().entries, 12);
    }
}
