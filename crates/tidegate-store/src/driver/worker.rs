//! The one task that talks to the backend: batch after batch, and a step of a sweep in between.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use tokio::{sync::Semaphore, time::Instant};
use tracing::error;

use super::{
    bound::Bound,
    guarded::guarded,
    overlay::{Decided, Overlay, Room},
    rhythm::Rhythm,
    settling::SETTLING_MAX,
    shared::{Request, Shared, Verdict},
};
use crate::{Backend, BackendError};

pub(super) struct Worker<B> {
    pub(super) shared: Arc<Shared<B>>,
    pub(super) bound: Bound,
    pub(super) rhythm: Rhythm,
    /// A sweep is under way.
    pub(super) sweeping: bool,
    /// The store's clock at the last load, in ms.
    pub(super) now_ms: u64,
    /// What the batch is to do; its callers stand in [`super::shared::Running::deciding`], in the same order.
    pub(super) batch: Vec<Request>,
    overlay: Overlay,
    /// For batches that settle.
    pub(super) places: Arc<Semaphore>,
    /// Batches that did not settle at once.
    pub(super) settled_later: u64,
    /// Whether the last batch did not.
    pub(super) settles_later: bool,
    /// How many updates a batch may have.
    pub(super) jobs_at_once: usize,
}

impl<B: Backend> Worker<B> {
    pub(super) fn new(shared: Arc<Shared<B>>) -> Self {
        Self {
            bound: Bound::new(shared.options.max_entries, shared.options.filling.clone()),
            shared,
            rhythm: Rhythm::default(),
            sweeping: false,
            now_ms: 0,
            batch: Vec::new(),
            overlay: Overlay::default(),
            places: Arc::new(Semaphore::new(SETTLING_MAX as usize)),
            settled_later: 0,
            settles_later: false,
            jobs_at_once: 1,
        }
    }

    /// Works until the driver is closed and everything that it took has been answered.
    pub(super) async fn run(mut self) {
        while self.work_waits().await {
            let jobs_max = self.jobs_of_next_batch().await;
            self.gather(jobs_max).await;
            self.shared.take_batch(&mut self.batch, jobs_max);
            if !self.batch.is_empty() {
                self.run_batch().await;
            }
            if self.sweeping {
                self.sweep_step().await;
            }
        }
        self.all_settled().await;
        self.shared.line.lock().ended = true;
        self.shared.rouse.notify_one();
    }

    /// Waits for something to do. False: there will be nothing any more.
    async fn work_waits(&mut self) -> bool {
        loop {
            {
                let mut line = self.shared.line.lock();
                self.sweeping |= std::mem::take(&mut line.sweep_due);
                if line.closed {
                    self.sweeping = false;
                }
                self.sweeping |= !line.sweepers.is_empty();
                if self.sweeping || !line.waiting.is_empty() {
                    return true;
                }
                if line.closed {
                    return false;
                }
                if self.nothing_settles() {
                    // Nobody waits for the backend. Said under the lock, so that the watch can't add anyone.
                    self.shared.caught_up();
                }
                line.asleep = true;
            }
            self.shared.work.notified().await;
        }
    }

    /// Lets every caller that is ready to run get its update into this batch: those that the last batch
    /// answered, above all. No timer: whoever is alone does not wait.
    async fn gather(&mut self, jobs_max: usize) {
        let mut before = 0;
        for _ in 0..GATHER_TURNS_MAX {
            tokio::task::yield_now().await;
            let waiting = self.shared.line.lock().waiting.len();
            if waiting <= before || waiting >= jobs_max {
                return;
            }
            before = waiting;
        }
    }

    async fn run_batch(&mut self) {
        self.round(Room::MayBeMade).await;
        let missing = self.rows_missing();
        if missing > 0 {
            self.make_room(missing).await;
            self.round(Room::Settled).await;
        }
        self.bound.rearm_if_emptied();
        if self.bound.begins_to_fill() {
            // What has expired goes first; the sweep's end warns, if it still is so.
            self.sweeping = true;
        }
    }

    /// Loads, decides and commits the batch; leaves those of its updates that wait for room.
    async fn round(&mut self, room: Room) {
        let place = self.place().await;
        let mut conflicts = 0;
        loop {
            match self.load_decide_commit(room).await {
                Ok((settled, began)) => break self.settle(settled, began, place).await,
                Err(error) if error.is_conflict() && self.shared.is_awaited() => {
                    self.shared.counters.conflicts.add(1);
                    conflicts += 1;
                    tokio::time::sleep(wait_after(conflicts)).await;
                }
                Err(error) => break self.fail(&error),
            }
        }
    }

    /// What the answers wait for, and since when.
    async fn load_decide_commit(&mut self, room: Room) -> Result<(B::Settled, Instant), BackendError> {
        self.overlay.plan(&self.batch);
        self.shared.counters.count_batch(self.batch.len());
        self.count_if_stale().await?;
        let (backend, counters) = (&self.shared.backend, &self.shared.counters);
        let began = Instant::now();
        let loaded = {
            let load = backend.load_watching(self.overlay.keys(), self.overlay.watched());
            guarded("loading a batch", load).await
        };
        counters.load_micros.add_micros(began.elapsed());
        self.shared.caught_up();
        let loaded = loaded?;
        if loaded.rows.len() != self.overlay.keys().len() {
            return Err(BackendError { doing: "loading a row for every key".to_owned(), cause: None });
        }
        self.now_ms = loaded.now_ms;
        self.bound.loaded(loaded.rows_held);
        let Decided { changes, held, .. } = self.decide(loaded.rows, room);
        let (wrote, row_writes) = (!changes.is_empty(), changes.len());
        let began = Instant::now();
        let commit = self.shared.backend.commit(loaded.batch, changes);
        let settled = guarded("committing a batch", commit).await?;
        self.shared.caught_up();
        self.shared.counters.row_writes.add(row_writes);
        self.bound.committed(held);
        self.sweeping |= wrote && self.rhythm.wakes_on_write();
        Ok((settled, began))
    }

    async fn count_if_stale(&mut self) -> Result<(), BackendError> {
        if self.bound.is_stale(self.overlay.keys().len(), Instant::now()) {
            let rows = guarded("counting the rows", self.shared.backend.count()).await?;
            self.bound.counted(rows, Instant::now());
        }
        Ok(())
    }

    fn decide(&mut self, rows: Vec<Option<crate::Entry>>, room: Room) -> Decided {
        let room = if self.bound.may_be_swept(self.now_ms) { room } else { Room::Settled };
        self.shared.mark_abandoned(&mut self.batch);
        let decided = self.overlay.decide(&mut self.batch, rows, self.now_ms, &self.bound, room);
        let (store, counters) = (self.shared.options.name, &self.shared.counters);
        if decided.panics > 0 {
            counters.panics.add(decided.panics);
            error!(kind = "limit-store-panic", store, updates = decided.panics, "an update panicked; undone");
        }
        if decided.full > 0 {
            counters.full.add(decided.full);
            self.bound.report_full(store, decided.full);
        }
        decided
    }

    /// How many rows must go before the updates that wait for room fit.
    fn rows_missing(&self) -> u64 {
        let wanted = self.batch.iter().filter_map(|request| match request.verdict {
            Verdict::NeedsRoom(rows) => Some(rows),
            _ => None,
        });
        self.bound.missing(wanted.sum())
    }
}

/// What a batch takes on a database nearby.
const CONFLICT_WAIT_US: u64 = 500;
/// Up to some 16 ms, so that many tries fit into a deadline.
const CONFLICT_DOUBLINGS_MAX: u32 = 5;
/// The runtime polls some 60 tasks in one turn.
const GATHER_TURNS_MAX: usize = 16;

/// How long to wait after the n-th conflict in a row: longer each time and not as long as another instance, so
/// that one of the two comes through.
fn wait_after(conflicts: u32) -> Duration {
    let most_us = CONFLICT_WAIT_US << conflicts.min(CONFLICT_DOUBLINGS_MAX);
    Duration::from_micros(RandomState::new().hash_one(conflicts) % most_us)
}
