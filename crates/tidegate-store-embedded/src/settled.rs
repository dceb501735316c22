//! Batches that are in the log and wait for the disk.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering},
    task::{Context, Poll},
};

use parking_lot::{Condvar, Mutex};
use tidegate_store::BackendError;
use tokio::sync::oneshot;

use crate::engine::failed;

/// What the answers to a batch wait for: that it is as durable as the store was told to make it.
#[derive(Debug)]
pub struct Settled(Option<oneshot::Receiver<Outcome>>);

type Outcome = Result<(), BackendError>;

/// Who waits for a flush.
#[derive(Debug)]
pub(crate) struct Unsettled {
    state: Mutex<State>,
    /// Wakes who flushes.
    work: Condvar,
    /// Wakes who answers.
    flushed: Condvar,
}

#[derive(Debug)]
struct State {
    /// In the order of their frames, each with the number of its own.
    batches: VecDeque<(u64, oneshot::Sender<Outcome>)>,
    durable_lsn: u64,
    /// Whether a flush was asked for that no batch waits for.
    wanted: bool,
    closed: bool,
    /// Whether there will be no other flush.
    ended: bool,
}

impl Settled {
    /// There is nothing to wait for.
    pub(crate) const NOW: Self = Self(None);
}

impl Future for Settled {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let Some(settled) = &mut self.0 else { return Poll::Ready(Ok(())) };
        // Whoever flushes answers before it goes, unless it panicked.
        let gone = |_| Err(failed("waiting for a flush")(Gone));
        Pin::new(settled).poll(context).map(|settled| settled.unwrap_or_else(gone))
    }
}

/// The thread that flushes is gone, which it is not while the store is open, unless it panicked.
#[derive(Debug, thiserror::Error)]
#[error("the flushing thread is gone")]
struct Gone;

impl Unsettled {
    /// Nothing waits, and frames up to `durable_lsn` are on the disk.
    pub(crate) fn new(durable_lsn: u64) -> Self {
        let state =
            State { batches: VecDeque::new(), durable_lsn, wanted: false, closed: false, ended: false };
        Self { state: Mutex::new(state), work: Condvar::new(), flushed: Condvar::new() }
    }

    /// Waits for the frame with this number, or a later one. `check` tells whether there will be another flush.
    pub(crate) fn settle(
        &self,
        lsn: &AtomicU64,
        check: impl FnOnce() -> Outcome,
    ) -> Result<Settled, BackendError> {
        let mut state = self.state.lock();
        // Under the lock, so that batches are in the order of their frames.
        let lsn = lsn.load(Ordering::Acquire);
        if lsn <= state.durable_lsn {
            return Ok(Settled::NOW);
        }
        // Under the lock: whoever fails all that wait comes before or after.
        check()?;
        let (sender, receiver) = oneshot::channel();
        state.batches.push_back((lsn, sender));
        drop(state);
        self.work.notify_one();
        Ok(Settled(Some(receiver)))
    }

    /// Asks for a flush.
    pub(crate) fn want_flush(&self) {
        self.state.lock().wanted = true;
        self.work.notify_one();
    }

    /// Waits until there is something to flush; false: there will be nothing any more.
    pub(crate) fn wait_for_work(&self) -> bool {
        let mut state = self.state.lock();
        while !state.wanted && !state.has_unsettled() && !state.closed {
            self.work.wait(&mut state);
        }
        std::mem::take(&mut state.wanted) || state.has_unsettled()
    }

    /// All frames up to this one are on the disk. [`Unsettled::answer`] has to follow.
    pub(crate) fn flushed(&self, lsn: u64) {
        let mut state = self.state.lock();
        state.durable_lsn = state.durable_lsn.max(lsn);
        self.flushed.notify_one();
    }

    /// Answers those whose frames are on the disk.
    pub(crate) fn answer(&self) {
        let settled = self.state.lock().settled();
        send(settled);
    }

    /// Waits for a flush, and answers those who have waited for it; false: there will be none any more.
    pub(crate) fn answer_next(&self) -> bool {
        let mut state = self.state.lock();
        while !state.has_settled() && !state.ended {
            self.flushed.wait(&mut state);
        }
        let goes_on = state.has_settled();
        let settled = state.settled();
        drop(state);
        send(settled);
        goes_on
    }

    /// There will be no other flush.
    pub(crate) fn fail(&self, error: impl Fn() -> BackendError) {
        let batches = std::mem::take(&mut self.state.lock().batches);
        for (_, batch) in batches {
            let _ = batch.send(Err(error()));
        }
    }

    /// Ends [`Unsettled::wait_for_work`] once nothing waits.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.work.notify_one();
    }

    /// Ends [`Unsettled::answer_next`] once nobody is to be answered.
    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
        self.flushed.notify_one();
    }
}

type Settling = Vec<(u64, oneshot::Sender<Outcome>)>;

impl State {
    /// Whether a batch waits for a flush that has not been done.
    fn has_unsettled(&self) -> bool {
        self.batches.back().is_some_and(|(lsn, _)| *lsn > self.durable_lsn)
    }

    fn has_settled(&self) -> bool {
        self.batches.front().is_some_and(|(lsn, _)| *lsn <= self.durable_lsn)
    }

    fn settled(&mut self) -> Settling {
        let count = self.batches.partition_point(|(lsn, _)| *lsn <= self.durable_lsn);
        self.batches.drain(..count).collect()
    }
}

fn send(settled: Settling) {
    for (_, batch) in settled {
        // Whoever asked may have gone.
        drop(batch.send(Ok(())));
    }
}
