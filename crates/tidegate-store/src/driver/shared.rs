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

use super::{guarded::discard, log::Throttle, options::DriverOptions, stats::Counters};
use crate::{Job, Key, Keys, StoreError, Unavailable};

pub(super) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;
pub(super) type Answered<T> = oneshot::Receiver<Result<T, StoreError>>;

pub(super) struct Shared<B> {
    pub(super) backend: B,
    pub(super) options: DriverOptions,
    pub(super) secret: Option<KeySecret>,
    pub(super) line: Mutex<Line>,
    /// Who waits for the backend. Locked only to look or to answer, so that neither the backend nor an update
    /// holds up the watch.
    pub(super) running: Mutex<Running>,
    /// Calls that the watch answered since the backend last did.
    late: AtomicUsize,
    /// Wakes the worker.
    pub(super) work: Notify,
    /// Wakes the watch.
    pub(super) rouse: Notify,
    pub(super) counters: Counters,
    /// Failures of the backend that are logged.
    pub(super) failing: Mutex<Throttle>,
}

/// Who waits for the backend.
#[derive(Default)]
pub(super) struct Running {
    /// For the batch that the worker has, in its order.
    pub(super) deciding: Vec<Caller>,
    /// For batches that are committed and have not settled, by the batch's number.
    pub(super) settling: Vec<(u64, Vec<Caller>)>,
}

/// Who waits for the worker.
pub(super) struct Line {
    pub(super) waiting: VecDeque<Waiting>,
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

/// One update on its way to the worker.
pub(super) struct Waiting {
    request: Request,
    caller: Caller,
}

/// What is to be done.
pub(super) struct Request {
    pub(super) keys: Vec<Key>,
    /// So many of them, the last ones, are only read.
    pub(super) watched: usize,
    pub(super) job: Box<dyn Job>,
    pub(super) verdict: Verdict,
}

/// Who waits for it.
pub(super) struct Caller {
    /// Taken when the call has been answered.
    pub(super) answer: Option<Answer<Box<dyn Job>>>,
    asked: Instant,
}

/// How the worker means to answer an update, once the batch is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Open,
    /// Nobody waits for it any more.
    Abandoned,
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
            options: options.within_reason(),
            secret,
            line: Mutex::new(Line::new()),
            running: Mutex::default(),
            late: AtomicUsize::new(0),
            work: Notify::new(),
            rouse: Notify::new(),
            counters: Counters::default(),
            failing: Mutex::default(),
        }
    }

    /// Puts an update into the line.
    pub(super) fn enter(
        &self,
        Keys { all: keys, watched }: Keys,
        job: Box<dyn Job>,
    ) -> Result<Answered<Box<dyn Job>>, StoreError> {
        let (answer, answered) = oneshot::channel();
        let caller = Caller { answer: Some(answer), asked: Instant::now() };
        let request = Request { keys, watched, job, verdict: Verdict::Open };
        self.admit(|line| {
            let full = line.waiting.len() >= self.options.queue_jobs_max
                || line.keys_waiting + request.keys.len() > QUEUE_KEYS_MAX;
            if !full {
                line.keys_waiting += request.keys.len();
                line.waiting.push_back(Waiting { request, caller });
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

    /// Moves the next batch of up to `jobs_max` updates from the line into `batch` and its callers into
    /// `deciding`, both empty. Calls that nobody waits for any more are dropped unrun.
    pub(super) fn take_batch(&self, batch: &mut Vec<Request>, jobs_max: usize) {
        let mut gone: Vec<Waiting> = Vec::new();
        let mut running = self.running.lock();
        let mut line = self.line.lock();
        let mut keys = 0;
        while let Some(first) = line.waiting.front() {
            keys += first.request.keys.len();
            if batch.len() == jobs_max || (keys > BATCH_KEYS_MAX && !batch.is_empty()) {
                break;
            }
            let first = line.take_first();
            if first.caller.has_gone() {
                gone.push(first);
            } else {
                batch.push(first.request);
                running.deciding.push(first.caller);
            }
        }
        drop((running, line));
        // Dropping what a caller made may take time, or panic; not under the locks.
        discard(gone);
    }

    /// Marks the updates of `batch` that nobody waits for any more.
    pub(super) fn mark_abandoned(&self, batch: &mut [Request]) {
        let running = self.running.lock();
        for (request, caller) in batch.iter_mut().zip(&running.deciding) {
            if caller.has_gone() {
                request.verdict = Verdict::Abandoned;
            }
        }
    }

    /// Whether anybody waits for the batch that the worker has.
    pub(super) fn is_awaited(&self) -> bool {
        self.running.lock().deciding.iter().any(|caller| !caller.has_gone())
    }

    /// The backend has answered: who is late no longer waits for it.
    pub(super) fn caught_up(&self) {
        self.late.store(0, Ordering::Relaxed);
    }

    /// Answers every call that is past its deadline. Says when the next one will be, if any waits.
    pub(super) fn answer_overdue(&self, now: Instant) -> Option<Instant> {
        let mut next = None;
        for caller in self.running.lock().callers() {
            let at = caller.asked + self.options.deadline;
            if at > now {
                next = earliest(next, at);
            } else if let Some(answer) = caller.answer.take() {
                self.too_late(answer);
            }
        }
        let mut gone = Vec::new();
        let mut line = self.line.lock();
        while let Some(at) = line.waiting.front().map(|first| first.caller.asked + self.options.deadline) {
            if at > now {
                next = earliest(next, at);
                break;
            }
            let mut first = line.take_first();
            first.caller.answer.take().into_iter().for_each(|answer| self.too_late(answer));
            gone.push(first);
        }
        for sweeper in line.sweepers.extract_if(.., |sweeper| sweeper.asked + self.options.deadline <= now) {
            self.too_late(sweeper.answer);
        }
        if let Some(sweeper) = line.sweepers.first() {
            next = earliest(next, sweeper.asked + self.options.deadline);
        }
        drop(line);
        discard(gone);
        next
    }

    fn too_late<T>(&self, answer: Answer<T>) {
        self.late.fetch_add(1, Ordering::Relaxed);
        self.counters.deadline.add(1);
        // A caller that has gone needs no answer.
        let _ = answer.send(Err(Unavailable::Deadline.into()));
    }
}

impl Running {
    fn callers(&mut self) -> impl Iterator<Item = &mut Caller> {
        self.deciding.iter_mut().chain(self.settling.iter_mut().flat_map(|(_, callers)| callers))
    }

    /// Who waited for this batch, which has settled.
    pub(super) fn take_settling(&mut self, number: u64) -> Vec<Caller> {
        let at = self.settling.iter().position(|(batch, _)| *batch == number);
        at.map(|at| self.settling.swap_remove(at).1).unwrap_or_default()
    }
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

    /// Takes out the first that waits; there must be one.
    fn take_first(&mut self) -> Waiting {
        let first = self.waiting.pop_front().expect("whoever takes has just looked at it");
        self.keys_waiting -= first.request.keys.len();
        first
    }
}

impl Caller {
    fn has_gone(&self) -> bool {
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
