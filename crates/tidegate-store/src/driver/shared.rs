//! What callers, the worker and the watch share: who waits, who is in the backend, who has been answered.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use tidegate_core::key::KeySecret;
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

use super::{options::DriverOptions, stats::Counters};
use crate::{Job, Key, StoreError, Unavailable};

pub(super) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;
pub(super) type Answered<T> = oneshot::Receiver<Result<T, StoreError>>;

pub(super) struct Shared<B> {
    pub(super) backend: B,
    pub(super) options: DriverOptions,
    pub(super) secret: Option<KeySecret>,
    pub(super) line: Mutex<Line>,
    /// The batch in the backend. The worker holds the lock only between the backend's answers.
    pub(super) running: Mutex<Vec<Request>>,
    /// Calls that the watch answered since the backend last did.
    late: AtomicUsize,
    /// Wakes the worker.
    pub(super) work: Notify,
    /// Wakes the watch.
    pub(super) rouse: Notify,
    pub(super) counters: Counters,
}

/// Who waits for the worker.
pub(super) struct Line {
    pub(super) waiting: VecDeque<Request>,
    keys_waiting: usize,
    pub(super) sweepers: Vec<Sweeper>,
    /// When to begin the next sweep; none while one is under way, or while sweeping rests.
    pub(super) sweep_at: Option<Instant>,
    pub(super) sweep_due: bool,
    /// The worker waits to be woken.
    pub(super) asleep: bool,
    /// No more calls are taken.
    pub(super) closed: bool,
    /// The worker has ended.
    pub(super) ended: bool,
}

/// One update on its way.
pub(super) struct Request {
    pub(super) keys: Vec<Key>,
    pub(super) job: Box<dyn Job>,
    /// Taken when the call has been answered.
    pub(super) answer: Option<Answer<Box<dyn Job>>>,
    pub(super) asked: Instant,
    pub(super) verdict: Verdict,
}

/// How the worker means to answer an update, once the batch is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Open,
    Done,
    Refused(StoreError),
    /// It needs room for so many more rows, and waits for a sweep to make it.
    NeedsRoom(u64),
}

/// One call of `sweep` on its way.
pub(super) struct Sweeper {
    pub(super) answer: Answer<u64>,
    pub(super) asked: Instant,
    pub(super) removed: u64,
    /// It was there when the present step of the sweep began.
    pub(super) joined: bool,
}

impl<B> Shared<B> {
    pub(super) fn new(backend: B, options: DriverOptions) -> Self {
        let secret = options.secret.as_ref().map(|secret| KeySecret::new(secret.expose().as_bytes()));
        Self {
            backend,
            options,
            secret,
            line: Mutex::new(Line::new()),
            running: Mutex::new(Vec::new()),
            late: AtomicUsize::new(0),
            work: Notify::new(),
            rouse: Notify::new(),
            counters: Counters::default(),
        }
    }

    /// Puts an update into the line.
    pub(super) fn enter(
        &self,
        keys: Vec<Key>,
        job: Box<dyn Job>,
    ) -> Result<Answered<Box<dyn Job>>, StoreError> {
        let (answer, answered) = oneshot::channel();
        let request =
            Request { keys, job, answer: Some(answer), asked: Instant::now(), verdict: Verdict::Open };
        self.admit(|line| {
            let full = line.waiting.len() >= self.options.queue_jobs_max
                || line.keys_waiting + request.keys.len() > QUEUE_KEYS_MAX;
            if !full {
                line.keys_waiting += request.keys.len();
                line.waiting.push_back(request);
            }
            !full
        })?;
        Ok(answered)
    }

    /// Asks for a sweep.
    pub(super) fn enter_sweep(&self) -> Result<Answered<u64>, StoreError> {
        let (answer, answered) = oneshot::channel();
        let sweeper = Sweeper { answer, asked: Instant::now(), removed: 0, joined: false };
        self.admit(|line| {
            let full = line.sweepers.len() >= self.options.max_calls;
            if !full {
                line.sweepers.push(sweeper);
            }
            !full
        })?;
        Ok(answered)
    }

    fn admit(&self, push: impl FnOnce(&mut Line) -> bool) -> Result<(), StoreError> {
        let admitted = self.late.load(Ordering::Relaxed) < self.options.max_calls && {
            let mut line = self.line.lock();
            !line.closed && push(&mut line) && {
                if std::mem::take(&mut line.asleep) {
                    self.work.notify_one();
                }
                true
            }
        };
        if !admitted {
            self.counters.busy.add(1);
            return Err(Unavailable::Busy.into());
        }
        Ok(())
    }

    /// Moves the next batch from the line into `running`, which is empty. Calls that nobody waits for any
    /// more are dropped unrun. Answers how many are in the batch.
    pub(super) fn take_batch(&self) -> usize {
        let mut gone: Vec<Request> = Vec::new();
        let mut running = self.running.lock();
        let mut line = self.line.lock();
        let mut keys = 0;
        while let Some(request) = line.waiting.front() {
            keys += request.keys.len();
            if running.len() == self.options.batch_jobs_max || (keys > BATCH_KEYS_MAX && !running.is_empty())
            {
                break;
            }
            let request = line.waiting.pop_front().expect("the loop's condition says that there is one");
            line.keys_waiting -= request.keys.len();
            if request.abandoned() { gone.push(request) } else { running.push(request) }
        }
        running.len()
    }

    /// The backend has answered: who is late no longer waits for it.
    pub(super) fn caught_up(&self) {
        self.late.store(0, Ordering::Relaxed);
    }

    /// Answers every call that is past its deadline. Says when the next one will be, if any waits.
    pub(super) fn answer_overdue(&self, now: Instant) -> Overdue {
        // While the worker has the batch in hand, it will soon be answered anyway.
        let Some(mut running) = self.running.try_lock() else { return Overdue::LookAgain };
        let mut next = None;
        for request in running.iter_mut() {
            let at = request.asked + self.options.deadline;
            if at > now {
                next = earliest(next, at);
            } else if let Some(answer) = request.answer.take() {
                self.too_late(answer);
            }
        }
        drop(running);
        let mut gone = Vec::new();
        let mut line = self.line.lock();
        while let Some(at) = line.waiting.front().map(|request| request.asked + self.options.deadline) {
            if at > now {
                next = earliest(next, at);
                break;
            }
            let mut request = line.waiting.pop_front().expect("the loop's condition says that there is one");
            line.keys_waiting -= request.keys.len();
            request.answer.take().into_iter().for_each(|answer| self.too_late(answer));
            gone.push(request);
        }
        for sweeper in line.sweepers.extract_if(.., |sweeper| sweeper.asked + self.options.deadline <= now) {
            self.too_late(sweeper.answer);
        }
        if let Some(sweeper) = line.sweepers.first() {
            next = earliest(next, sweeper.asked + self.options.deadline);
        }
        drop(line);
        // Dropping a job may take time; not under the lock.
        drop(gone);
        next.map_or(Overdue::NoneWaits, Overdue::NextAt)
    }

    fn too_late<T>(&self, answer: Answer<T>) {
        self.late.fetch_add(1, Ordering::Relaxed);
        self.counters.deadline.add(1);
        // A caller that has gone needs no answer.
        let _ = answer.send(Err(Unavailable::Deadline.into()));
    }
}

/// What the watch found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    NoneWaits,
    NextAt(Instant),
    LookAgain,
}

impl Line {
    fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            keys_waiting: 0,
            sweepers: Vec::new(),
            sweep_at: None,
            sweep_due: true,
            asleep: false,
            closed: false,
            ended: false,
        }
    }
}

impl Request {
    /// Whether nobody waits for it any more.
    pub(super) fn abandoned(&self) -> bool {
        self.answer.as_ref().is_none_or(oneshot::Sender::is_closed)
    }
}

fn earliest(next: Option<Instant>, at: Instant) -> Option<Instant> {
    Some(next.map_or(at, |next| next.min(at)))
}

/// Keys of one batch: 16 of the largest updates, or far more than 1 024 usual ones. Bounds what a batch
/// takes in memory.
const BATCH_KEYS_MAX: usize = 16 * crate::KEYS_MAX;

/// Keys that wait: 24 MiB of them.
const QUEUE_KEYS_MAX: usize = 1 << 20;
