//! The contract in its plainest form, and every way to break it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use super::{
    faulty::{Disturbance, Switch},
    harness::{Handles, Harness, Reopened},
};
use crate::{
    DriverOptions, Entry, Invalid, Job, Key, Keys, LimitStore, LimitStoreExt, NewState, Scope, StoreError,
    Unavailable, View,
    clock::{Clock, ManualClock},
    contract::BoxFuture,
    driver::check_keys,
    view::Row,
};

/// A store that does one thing after the other on an ordered map: to compare others with, and, with a
/// [`Fault`], to show that a contract case can fail.
#[derive(Debug, Clone)]
pub struct NaiveStore {
    inner: Arc<Inner>,
    /// Which instance's handle it is: 0 or 1.
    instance: u64,
}

/// What a [`NaiveStore`] does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It takes an empty value for no row.
    EmptyIsAbsent,
    /// It deletes nothing.
    DeletesNothing,
    /// It reads rows in the order in which it stores them.
    ReadsSorted,
    /// Each instance goes by its own clock, and they differ.
    ClocksDiffer,
    /// It forgets to judge the expiry of what it reads.
    ServesExpired,
    /// A row still lives in the ms of its expiry.
    EndsOneLate,
    /// A row keeps the expiry of its first write.
    KeepsFirstExpiry,
    /// It forgets all at the end of its process.
    ForgetsOnReopen,
    /// It names rows by the first 20 bytes of a key.
    CutsKeys,
    /// It keeps the first 1 024 bytes of a value.
    CutsValues,
    /// It answers an invalid update as if nothing were wrong with it.
    IgnoresFaults,
    /// It takes an update that names a key twice.
    AllowsDuplicates,
    /// It takes any number of keys.
    AllowsManyKeys,
    /// It refuses an invalid update, and keeps what it had written until then.
    KeepsHalf,
    /// An invalid update takes the one after it down with it.
    FailsNeighbours,
    /// One instance reads from a copy that is behind.
    ReadsStale,
    /// It locks the rows of an update, but those that are not there can't be locked.
    LocksExistingRows,
    /// It reads and writes in two steps.
    SplitsUpdates,
    /// It writes the rows of one update in two steps.
    TearsWrites,
    /// It locks only the first key of an update.
    LocksFirstKey,
    /// It takes callers for a store that hangs.
    BusyEarly,
    /// It removes a live row to make room.
    EvictsLive,
    /// It counts what an update adds, and not what it deletes.
    CountsAdditions,
    /// It has no bound.
    IgnoresBound,
    /// Rows that have expired take up room.
    ExpiredTakeRoom,
    /// Its sweep removes nothing.
    SweepsNothing,
    /// Rows that are only watched can be written.
    WritesWatched,
    /// What belongs to one member is forgotten with the whole group.
    ForgetsTheGroup,
    /// Its sweep removes what has not been written for a day.
    SweepsByAge,
    /// What it can't read, it takes for no row.
    FailureReadsEmpty,
    /// It waits for what is behind it, however long that takes.
    NoDeadline,
    /// It never gives up in advance.
    NeverBusy,
    /// It answers what has not settled.
    AnswersEarly,
}

#[derive(Debug)]
struct Inner {
    options: DriverOptions,
    clock: Arc<ManualClock>,
    fault: Fault,
    switch: Switch,
    state: Mutex<State>,
    /// Held by the update that is running.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Calls that run, and those past their deadline since the last that was answered.
    running: AtomicUsize,
    late: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    rows: BTreeMap<Key, Stored>,
    /// What a copy that is behind holds.
    behind: BTreeMap<Key, Stored>,
    turns: BTreeMap<Key, Arc<tokio::sync::Mutex<()>>>,
    fails_next: bool,
}

#[derive(Debug, Clone)]
struct Stored {
    entry: Entry,
    written_at_ms: u64,
}

impl NaiveStore {
    /// Two handles on a fresh store, on a clock that moves by hand.
    #[must_use]
    pub fn handles(options: DriverOptions, fault: Fault) -> Handles {
        let (deadline, max_calls) = (options.deadline, options.max_calls);
        let inner = Arc::new(Inner {
            options,
            clock: Arc::new(ManualClock::at(START_MS)),
            fault,
            switch: Switch::new(),
            state: Mutex::default(),
            turn: Arc::default(),
            running: AtomicUsize::new(0),
            late: AtomicUsize::new(0),
        });
        let (first, second) = Self::open(&inner);
        Handles { first, second, deadline, max_calls, harness: Arc::new(Hand(inner)) }
    }

    fn open(inner: &Arc<Inner>) -> Reopened {
        let open = |instance| Arc::new(Self { inner: Arc::clone(inner), instance });
        (open(0), open(1))
    }

    async fn answer_in_time(&self, keys: Keys, job: Box<dyn Job>) -> Result<Box<dyn Job>, StoreError> {
        let Inner { options, fault, running, late, .. } = &*self.inner;
        self.check(&keys.all)?;
        let many = *fault == Fault::BusyEarly && running.load(Ordering::SeqCst) >= options.max_calls;
        let hangs = *fault != Fault::NeverBusy && late.load(Ordering::SeqCst) >= options.max_calls;
        if many || hangs {
            return Err(Unavailable::Busy.into());
        }
        if *fault == Fault::NoDeadline {
            return self.update_rows(keys, job).await;
        }
        running.fetch_add(1, Ordering::SeqCst);
        let answer = tokio::time::timeout(options.deadline, self.update_rows(keys, job)).await;
        running.fetch_sub(1, Ordering::SeqCst);
        answer.unwrap_or_else(|_| {
            late.fetch_add(1, Ordering::SeqCst);
            Err(Unavailable::Deadline.into())
        })
    }

    fn check(&self, keys: &[Key]) -> Result<(), Invalid> {
        match (check_keys(keys), self.inner.fault) {
            (Err(Invalid::DuplicateKey { .. }), Fault::AllowsDuplicates) => Ok(()),
            (Err(Invalid::TooManyKeys { .. }), Fault::AllowsManyKeys) => Ok(()),
            (checked, _) => checked,
        }
    }

    async fn update_rows(&self, keys: Keys, mut job: Box<dyn Job>) -> Result<Box<dyn Job>, StoreError> {
        let Keys { all: keys, watched } = keys;
        let Inner { fault, switch, late, state, .. } = &*self.inner;
        let passed = switch.pass().await;
        if passed.is_err() && *fault != Fault::FailureReadsEmpty {
            return Err(Unavailable::Backend.into());
        }
        late.store(0, Ordering::SeqCst);
        if std::mem::take(&mut state.lock().fails_next) {
            return Err(Unavailable::Backend.into());
        }
        let mut turn = self.take_turn(&keys).await;
        let mut rows =
            if passed.is_ok() { self.look(&keys) } else { keys.iter().map(|_| Row::loaded(None)).collect() };
        // A gap between reading and writing. Other callers come into it, if they are let.
        tokio::task::yield_now().await;
        self.decide(&keys, watched, &mut rows, &mut *job)?;
        let mut changes: Vec<_> = keys.into_iter().zip(rows).collect();
        if *fault == Fault::TearsWrites {
            self.write(changes.split_off(changes.len() / 2));
            turn = None;
            tokio::task::yield_now().await;
        }
        self.write(changes);
        drop(turn);
        if *fault != Fault::AnswersEarly {
            switch.settle().await;
        }
        Ok(job)
    }

    /// Waits until no other update runs: none at all, or none that a broken store would take notice of.
    async fn take_turn(&self, keys: &[Key]) -> Option<OwnedMutexGuard<()>> {
        let Inner { fault, state, turn, .. } = &*self.inner;
        let held = keys.iter().any(|key| state.lock().rows.contains_key(key));
        let turn = match fault {
            Fault::SplitsUpdates => return None,
            Fault::LocksExistingRows if !held => return None,
            Fault::LocksFirstKey => Arc::clone(state.lock().turns.entry(*keys.first()?).or_default()),
            _ => Arc::clone(turn),
        };
        Some(turn.lock_owned().await)
    }

    fn now_ms(&self) -> u64 {
        let ahead = if self.inner.fault == Fault::ClocksDiffer { self.instance * 60_000 } else { 0 };
        self.inner.clock.now_ms() + ahead
    }

    fn look(&self, keys: &[Key]) -> Vec<Row> {
        let state = self.inner.state.lock();
        let stale = self.inner.fault == Fault::ReadsStale && self.instance == 1;
        let rows = if stale { &state.behind } else { &state.rows };
        let entry = |key: &Key| rows.get(&self.name(*key)).map(|stored| self.as_read(stored.entry.clone()));
        keys.iter().map(|key| Row::loaded(entry(key).filter(|entry| !self.takes_for_absent(entry)))).collect()
    }

    fn as_read(&self, mut entry: Entry) -> Entry {
        entry.expires_at_ms = match self.inner.fault {
            Fault::ServesExpired => u64::MAX,
            Fault::EndsOneLate => entry.expires_at_ms + 1,
            _ => entry.expires_at_ms,
        };
        entry
    }

    fn takes_for_absent(&self, entry: &Entry) -> bool {
        self.inner.fault == Fault::EmptyIsAbsent && entry.value.is_empty()
    }

    fn name(&self, key: Key) -> Key {
        let mut bytes = *key.as_bytes();
        if self.inner.fault == Fault::CutsKeys {
            bytes[20..].fill(0);
        }
        Key::from_bytes(bytes)
    }

    fn decide(
        &self,
        keys: &[Key],
        watched: usize,
        rows: &mut Vec<Row>,
        job: &mut dyn Job,
    ) -> Result<(), StoreError> {
        let fault = self.inner.fault;
        let watched = if fault == Fault::WritesWatched { 0 } else { watched };
        let places: Vec<u32> = (0..).take(keys.len()).collect();
        let mut view = View::new(self.now_ms(), rows, &places, watched, Vec::new());
        job.apply(&mut view);
        if let Some(invalid) = view.fault().filter(|_| fault != Fault::IgnoresFaults) {
            self.inner.state.lock().fails_next = fault == Fault::FailsNeighbours;
            if fault == Fault::KeepsHalf {
                self.write(keys.iter().copied().zip(rows.drain(..)));
            }
            return Err(invalid.into());
        }
        let adds = |(index, key): (usize, &Key)| {
            view.get(index).is_some() && !self.inner.state.lock().rows.contains_key(key)
        };
        let growth = if fault == Fault::CountsAdditions {
            keys.iter().enumerate().map(|place| i64::from(adds(place))).sum()
        } else {
            view.growth().total()
        };
        self.make_room(growth)
    }

    fn make_room(&self, growth: i64) -> Result<(), StoreError> {
        let Inner { options, fault, state, .. } = &*self.inner;
        let now_ms = self.now_ms();
        let mut state = state.lock();
        if *fault != Fault::ExpiredTakeRoom {
            state.rows.retain(|_, stored| stored.entry.expires_at_ms > now_ms);
        }
        let room = || options.max_entries.saturating_add_signed(-growth);
        if growth <= 0 || *fault == Fault::IgnoresBound || state.rows.len() as u64 <= room() {
            return Ok(());
        }
        if *fault == Fault::EvictsLive {
            state.rows.pop_first();
            return Ok(());
        }
        Err(Unavailable::Full.into())
    }

    fn write(&self, rows: impl IntoIterator<Item = (Key, Row)>) {
        let now_ms = self.now_ms();
        let mut state = self.inner.state.lock();
        state.behind = state.rows.clone();
        for (key, row) in rows {
            let key = self.name(key);
            match row.into_change() {
                Some(NewState::Put(mut entry)) => {
                    self.spoil(&mut entry, state.rows.get(&key));
                    state.rows.insert(key, Stored { entry, written_at_ms: now_ms });
                }
                Some(NewState::Deleted) if self.inner.fault != Fault::DeletesNothing => {
                    state.rows.remove(&key);
                }
                _ => {}
            }
        }
    }

    fn spoil(&self, entry: &mut Entry, before: Option<&Stored>) {
        match (self.inner.fault, before) {
            (Fault::CutsValues, _) => entry.value.truncate(1024),
            (Fault::KeepsFirstExpiry, Some(before)) => entry.expires_at_ms = before.entry.expires_at_ms,
            _ => {}
        }
    }

    async fn remove_expired(&self) -> Result<u64, StoreError> {
        const DAY_MS: u64 = 24 * 60 * 60 * 1000;
        let Inner { fault, switch, state, .. } = &*self.inner;
        switch.pass().await.map_err(|_| Unavailable::Backend)?;
        let now_ms = self.now_ms();
        let rows = &mut state.lock().rows;
        let before = rows.len();
        rows.retain(|_, stored| match fault {
            Fault::SweepsNothing => true,
            Fault::SweepsByAge => now_ms < stored.entry.expires_at_ms.min(stored.written_at_ms + DAY_MS),
            _ => now_ms < stored.entry.expires_at_ms,
        });
        Ok((before - rows.len()) as u64)
    }
}

impl LimitStore for NaiveStore {
    fn shared(&self) -> bool {
        false
    }

    fn run(&self, keys: Keys, job: Box<dyn Job>) -> BoxFuture<'_, Result<Box<dyn Job>, StoreError>> {
        Box::pin(self.answer_in_time(keys, job))
    }

    fn read(&self, mut keys: Vec<Key>) -> BoxFuture<'_, Result<Vec<Option<Entry>>, StoreError>> {
        if self.inner.fault == Fault::ReadsSorted {
            keys.sort_unstable();
        }
        let count = keys.len();
        Box::pin(self.update(keys, move |view| (0..count).map(|index| view.get(index).cloned()).collect()))
    }

    fn forget(&self, scope: Scope) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            let Inner { fault, switch, state, .. } = &*self.inner;
            switch.pass().await.map_err(|_| Unavailable::Backend)?;
            let now_ms = self.now_ms();
            let scope = match fault {
                Fault::ForgetsTheGroup => Scope { member: None, ..scope },
                _ => scope,
            };
            let rows = &mut state.lock().rows;
            let live = |stored: &Stored| now_ms < stored.entry.expires_at_ms;
            let gone = rows.iter().filter(|(key, stored)| scope.holds(key) && live(stored)).count() as u64;
            rows.retain(|key, _| !scope.holds(key));
            Ok(gone)
        })
    }

    fn sweep(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.remove_expired())
    }
}

/// What moves a naive store from outside.
struct Hand(Arc<Inner>);

impl Harness for Hand {
    fn advance(&self, by_ms: u64) -> bool {
        self.0.clock.advance(by_ms);
        true
    }

    fn disturb(&self, disturbance: Disturbance) -> bool {
        self.0.late.store(0, Ordering::SeqCst);
        self.0.switch.set(disturbance);
        true
    }

    fn reopen(&self) -> BoxFuture<'_, Option<Reopened>> {
        if self.0.fault == Fault::ForgetsOnReopen {
            *self.0.state.lock() = State::default();
        }
        Box::pin(async { Some(NaiveStore::open(&self.0)) })
    }
}

/// A day in 2023.
const START_MS: u64 = 1_700_000_000_000;
