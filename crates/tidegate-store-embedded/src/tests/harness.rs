//! A store beside a plain map of what was acknowledged.

use std::{
    collections::{BTreeMap, VecDeque},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use tidegate_store::{
    Backend, BackendError, Change, Entry, Key, NewState, Value,
    clock::{Clock, ManualClock},
};

use crate::{
    Durability, EmbeddedBackend, OpenError, Options, Settled, Upkeep,
    recovery::Checksums,
    testing::{Random, SimulatedDisk},
};

pub(crate) const SEGMENT_BYTES: u64 = 4096;
pub(crate) const START_MS: u64 = 1_700_000_000_000;

/// Rows as they should be, expired ones included.
pub(crate) type Model = BTreeMap<Key, Entry>;

/// A store, and what it should hold.
pub(crate) struct Harness {
    pub(crate) disk: SimulatedDisk,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) durability: Durability,
    pub(crate) checksums: Checksums,
    pub(crate) segment_bytes: u64,
    pub(crate) store: Option<EmbeddedBackend>,
    /// After every batch that was committed; the last is the present.
    pub(crate) history: Vec<Model>,
    /// Of the last batches, which are not acknowledged, since they have not settled, or not well.
    pub(crate) unsettled: VecDeque<Option<Settled>>,
    /// The batch that failed last, if none was committed since: it may have happened.
    pub(crate) unsure: Option<Vec<Change>>,
    /// What the store's clock showed when it was reopened last.
    pub(crate) reopened_at_ms: u64,
}

/// Runs a future that never waits, as those of a store without a thread.
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a store without a thread waits for nothing"),
    }
}

pub(crate) fn key(row: u64) -> Key {
    Key::of(&[b"harness", &row.to_le_bytes()])
}

pub(crate) fn put(row: u64, value: &[u8], expires_at_ms: u64) -> Change {
    let entry = Entry { value: Value::from_slice(value), expires_at_ms };
    Change { key: key(row), state: NewState::Put(entry) }
}

pub(crate) fn delete(row: u64) -> Change {
    Change { key: key(row), state: NewState::Deleted }
}

pub(crate) fn apply(model: &mut Model, changes: &[Change]) {
    for change in changes {
        match &change.state {
            NewState::Put(entry) => drop(model.insert(change.key, entry.clone())),
            NewState::Deleted => drop(model.remove(&change.key)),
        }
    }
}

pub(crate) fn live(model: &Model, now_ms: u64) -> Model {
    model
        .iter()
        .filter(|(_, entry)| entry.expires_at_ms > now_ms)
        .map(|(key, entry)| (*key, entry.clone()))
        .collect()
}

pub(crate) fn options(disk: &SimulatedDisk, clock: Arc<dyn Clock>, durability: Durability) -> Options {
    Options {
        durability,
        segment_bytes: SEGMENT_BYTES,
        clock,
        disk: Some(Arc::new(disk.clone())),
        upkeep: Upkeep::Caller,
        ..Options::at("")
    }
}

/// Loads nothing and commits `changes`.
pub(crate) fn begin(store: &EmbeddedBackend, changes: &[Change]) -> Result<Settled, BackendError> {
    let loaded = now(store.load(&[]))?;
    now(store.commit(loaded.batch, changes.to_vec()))
}

/// The same, and sees to it that it settles.
pub(crate) fn commit(store: &EmbeddedBackend, changes: &[Change]) -> Result<(), BackendError> {
    let mut settled = begin(store, changes)?;
    if let Poll::Ready(settled) = poll(&mut settled) {
        return settled;
    }
    store.flush();
    now(settled)
}

/// What it has settled to, if it has.
pub(crate) fn poll(settled: &mut Settled) -> Poll<Result<(), BackendError>> {
    pin!(settled).poll(&mut Context::from_waker(Waker::noop()))
}

impl Harness {
    pub(crate) fn new(durability: Durability) -> Self {
        Self {
            disk: SimulatedDisk::new(),
            clock: Arc::new(ManualClock::at(START_MS)),
            durability,
            checksums: Checksums::default(),
            segment_bytes: SEGMENT_BYTES,
            store: None,
            history: vec![Model::new()],
            unsettled: VecDeque::new(),
            unsure: None,
            reopened_at_ms: START_MS,
        }
    }

    pub(crate) fn store(&self) -> &EmbeddedBackend {
        self.store.as_ref().expect("the store was opened")
    }

    pub(crate) fn open(&mut self) -> Result<(), OpenError> {
        self.store = None;
        let options = Options {
            segment_bytes: self.segment_bytes,
            ..options(&self.disk, Arc::clone(&self.clock) as _, self.durability)
        };
        self.store = Some(EmbeddedBackend::open_with(&options, self.checksums)?);
        Ok(())
    }

    /// Commits and flushes, and notes what that means for the model.
    pub(crate) fn commit(&mut self, changes: Vec<Change>) -> Result<(), BackendError> {
        self.begin(changes)?;
        self.flush()
    }

    /// Commits. It can be seen then, and is not acknowledged.
    pub(crate) fn begin(&mut self, changes: Vec<Change>) -> Result<(), BackendError> {
        match begin(self.store(), &changes) {
            Ok(settled) => {
                let mut model = self.present().clone();
                apply(&mut model, &changes);
                self.history.push(model);
                self.unsettled.push_back(Some(settled));
                self.unsure = None;
                Ok(())
            }
            Err(error) => {
                self.unsure = Some(changes);
                Err(error)
            }
        }
    }

    /// Flushes: what was committed is acknowledged.
    pub(crate) fn flush(&mut self) -> Result<(), BackendError> {
        self.acknowledge()?;
        if !self.unsettled.is_empty() {
            self.store().flush();
        }
        self.acknowledge()
    }

    /// Notes what has settled.
    pub(crate) fn acknowledge(&mut self) -> Result<(), BackendError> {
        while let Some(settled) = self.unsettled.front_mut() {
            match settled.as_mut().map(poll) {
                Some(Poll::Ready(Ok(()))) => drop(self.unsettled.pop_front()),
                Some(Poll::Ready(Err(error))) => {
                    *settled = None;
                    return Err(error);
                }
                Some(Poll::Pending) | None => break,
            }
        }
        Ok(())
    }

    pub(crate) fn present(&self) -> &Model {
        self.history.last().expect("it begins with an empty one")
    }

    /// The live rows of the store, and its clock.
    pub(crate) fn read(&self, rows: u64) -> Result<(u64, Model), BackendError> {
        let keys: Vec<Key> = (0..rows).map(key).collect();
        let loaded = now(self.store().load(&keys))?;
        let rows = keys.into_iter().zip(loaded.rows).filter_map(|(key, row)| Some((key, row?)));
        Ok((loaded.now_ms, rows.filter(|(_, row)| row.expires_at_ms > loaded.now_ms).collect()))
    }

    /// Whether the store holds exactly what was committed.
    pub(crate) fn check(&self, rows: u64) -> Result<(), String> {
        let (now_ms, found) = self.read(rows).map_err(|error| format!("{error:?}"))?;
        let expected = live(self.present(), now_ms);
        if found == expected { Ok(()) } else { Err(difference(&expected, &found)) }
    }

    /// After reopening: whether the store holds what was acknowledged, and of what was not any number of whole
    /// batches, beginning with the first. If `back` more may be lost, any of the last so many states will do. The model follows.
    pub(crate) fn check_reopened(&mut self, rows: u64, back: usize) -> Result<(), String> {
        let (now_ms, found) = self.read(rows).map_err(|error| format!("{error:?}"))?;
        self.reopened_at_ms = now_ms;
        let with_unsure = self.unsure.take().map(|changes| {
            let mut model = self.present().clone();
            apply(&mut model, &changes);
            model
        });
        let lost_max = self.unsettled.len().saturating_add(back);
        self.unsettled.clear();
        let candidates = with_unsure.iter().chain(self.history.iter().rev().take(lost_max.saturating_add(1)));
        match candidates.clone().find(|model| live(model, now_ms) == found) {
            Some(model) => {
                self.history = vec![model.clone()];
                Ok(())
            }
            None => Err(difference(&live(self.present(), now_ms), &found)),
        }
    }

    /// Does all the upkeep that there is to do.
    pub(crate) fn settle(&self) {
        for _ in 0..10_000 {
            if !self.store().tick() {
                return;
            }
        }
        panic!("the upkeep never ends");
    }
}

/// A batch of up to five changes to the first `rows` rows.
pub(crate) fn batch(random: &mut Random, rows: u64, now_ms: u64) -> Vec<Change> {
    let mut changes: BTreeMap<u64, Change> = BTreeMap::new();
    for _ in 0..=random.below(5) {
        let row = random.below(rows);
        let change = if random.once_in(5) {
            delete(row)
        } else {
            let longest = if random.once_in(20) { 4096 } else { 300 };
            let mut value = vec![0; usize::try_from(random.below(longest)).unwrap_or(0)];
            value.fill_with(|| random.number().to_le_bytes()[0]);
            let life_ms =
                if random.once_in(3) { 1 + random.below(3000) } else { 1 + random.below(10_000_000) };
            put(row, &value, now_ms + life_ms)
        };
        changes.insert(row, change);
    }
    changes.into_values().collect()
}

fn difference(expected: &Model, found: &Model) -> String {
    let missing = expected.keys().filter(|key| !found.contains_key(*key)).count();
    let extra = found.keys().filter(|key| !expected.contains_key(*key)).count();
    let other =
        expected.iter().filter(|(key, entry)| found.get(*key).is_some_and(|found| found != *entry)).count();
    format!("{missing} rows are missing, {extra} should not be there, {other} are not what was written")
}
