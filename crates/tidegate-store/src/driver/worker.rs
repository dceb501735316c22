//! The one task that talks to the backend: batch after batch, and a step of a sweep in between.

use std::sync::Arc;

use tokio::time::Instant;
use tracing::error;

use super::{
    bound::Bound,
    guarded::{discard, guarded},
    log::{Throttle, chain},
    overlay::{Decided, Overlay, Room},
    rhythm::Rhythm,
    shared::{Request, Shared, Verdict},
};
use crate::{Backend, BackendError, Unavailable};

pub(super) struct Worker<B> {
    pub(super) shared: Arc<Shared<B>>,
    pub(super) bound: Bound,
    pub(super) rhythm: Rhythm,
    /// A sweep is under way.
    pub(super) sweeping: bool,
    /// The store's clock at the last load, in ms.
    pub(super) now_ms: u64,
    overlay: Overlay,
    failing: Throttle,
}

impl<B: Backend> Worker<B> {
    pub(super) fn new(shared: Arc<Shared<B>>) -> Self {
        Self {
            bound: Bound::new(shared.options.max_entries),
            shared,
            rhythm: Rhythm::default(),
            sweeping: false,
            now_ms: 0,
            overlay: Overlay::default(),
            failing: Throttle::default(),
        }
    }

    /// Works until the driver is closed and everything that it took has been answered.
    pub(super) async fn run(mut self) {
        while self.work_waits().await {
            self.gather().await;
            if self.shared.take_batch() > 0 {
                self.batch().await;
            }
            if self.sweeping {
                self.sweep_step().await;
            }
        }
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
                // Nobody waits for the backend. Said under the lock, so that the watch can't add anyone.
                self.shared.caught_up();
                line.asleep = true;
            }
            self.shared.work.notified().await;
        }
    }

    /// Lets every caller that is ready to run get its update into this batch: those that the last batch
    /// answered, above all. No timer: whoever is alone does not wait.
    async fn gather(&self) {
        let mut before = 0;
        for _ in 0..GATHER_TURNS_MAX {
            tokio::task::yield_now().await;
            let waiting = self.shared.line.lock().waiting.len();
            if waiting <= before || waiting >= self.shared.options.batch_jobs_max {
                return;
            }
            before = waiting;
        }
    }

    async fn batch(&mut self) {
        self.round(Room::MayBeMade).await;
        let missing = self.rows_missing();
        if missing > 0 {
            self.make_room(missing).await;
            self.round(Room::Settled).await;
        }
        if self.bound.begins_to_fill() {
            // What has expired goes first; the sweep's end warns, if it still is so.
            self.sweeping = true;
        }
    }

    /// Loads, decides, commits and answers the batch; leaves those of its updates that wait for room.
    async fn round(&mut self, room: Room) {
        match self.load_decide_commit(room).await {
            Ok(()) => self.answer(),
            Err(error) => self.fail(&error),
        }
        self.shared.counters.entries.set(self.bound.held());
    }

    async fn load_decide_commit(&mut self, room: Room) -> Result<(), BackendError> {
        self.plan();
        self.count_if_stale().await?;
        let (backend, counters) = (&self.shared.backend, &self.shared.counters);
        let began = Instant::now();
        let loaded = guarded("loading a batch", backend.load(self.overlay.keys())).await;
        counters.load_micros.add_micros(began.elapsed());
        self.shared.caught_up();
        let loaded = loaded?;
        if loaded.rows.len() != self.overlay.keys().len() {
            return Err(BackendError { doing: "loading a row for every key".to_owned(), cause: None });
        }
        self.now_ms = loaded.now_ms;
        self.bound.loaded(loaded.rows_held);
        let Decided { changes, held, .. } = self.decide(loaded.rows, room);
        let wrote = !changes.is_empty();
        let (backend, counters) = (&self.shared.backend, &self.shared.counters);
        let began = Instant::now();
        let committed = guarded("committing a batch", backend.commit(loaded.batch, changes)).await;
        counters.commit_micros.add_micros(began.elapsed());
        self.shared.caught_up();
        committed?;
        self.bound.committed(held);
        self.sweeping |= wrote && self.rhythm.wakes_on_write();
        Ok(())
    }

    fn plan(&mut self) {
        let running = self.shared.running.lock();
        self.overlay.plan(&running);
        self.shared.counters.count_batch(running.len());
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
        let mut running = self.shared.running.lock();
        let decided = self.overlay.decide(&mut running, rows, self.now_ms, &self.bound, room);
        drop(running);
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
        let running = self.shared.running.lock();
        let wanted = running.iter().filter_map(|request| match request.verdict {
            Verdict::NeedsRoom(rows) => Some(rows),
            _ => None,
        });
        self.bound.missing(wanted.sum())
    }

    /// Answers every update of the batch but those that wait for room.
    fn answer(&mut self) {
        let mut batch = std::mem::take(&mut *self.shared.running.lock());
        let waiting = batch.extract_if(.., |request| matches!(request.verdict, Verdict::NeedsRoom(_)));
        let waiting: Vec<_> = waiting.collect();
        batch.drain(..).for_each(Request::settle);
        batch.extend(waiting);
        *self.shared.running.lock() = batch;
    }

    /// Answers every update of the batch that the backend failed.
    fn fail(&mut self, error: &BackendError) {
        self.report_failure(error);
        let mut batch = std::mem::take(&mut *self.shared.running.lock());
        for mut request in batch.drain(..) {
            request.verdict = Verdict::Refused(Unavailable::Backend.into());
            request.settle();
        }
        *self.shared.running.lock() = batch;
    }

    pub(super) fn report_failure(&mut self, error: &BackendError) {
        self.shared.caught_up();
        self.shared.counters.backend_failures.add(1);
        if self.failing.passes(Instant::now()) {
            let (store, error) = (self.shared.options.name, chain(error));
            error!(kind = "limit-store-failing", store, error, "the limit store's backend failed");
        }
    }
}

/// The runtime polls some 60 tasks in one turn.
const GATHER_TURNS_MAX: usize = 16;

impl Request {
    /// Answers it as was decided.
    fn settle(self) {
        let Some(answer) = self.answer else { return discard(self.job) };
        match self.verdict {
            // Who has gone meanwhile gets nothing; the job comes back to be dropped.
            Verdict::Done => drop(answer.send(Ok(self.job))),
            Verdict::Refused(error) => {
                discard(self.job);
                let _ = answer.send(Err(error));
            }
            Verdict::Open | Verdict::NeedsRoom(_) => discard(self.job),
        }
    }
}
