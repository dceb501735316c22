//! Answers: at once where nothing is to be waited for, and otherwise from a task of each batch, so that the
//! worker goes on with the next one while the last ones settle.

use std::{
    future::{Future, poll_fn},
    sync::Arc,
    task::Poll,
};

use tokio::{sync::OwnedSemaphorePermit, time::Instant};
use tracing::error;

use super::{
    guarded::{discard, guarded},
    log::chain,
    shared::{Caller, Request, Shared, Verdict},
    worker::Worker,
};
use crate::{Backend, BackendError, Unavailable};

/// What the disk is busy with, what waits for it, what is being answered, and what is being decided: enough for the
/// disk never to wait. While all places are taken callers gather.
pub(super) const SETTLING_MAX: u32 = 8;
/// Smaller batches would cost more than they hasten.
const JOBS_FEW: usize = 16;

impl<B: Backend> Worker<B> {
    /// A place among the batches that settle, once there is one.
    pub(super) async fn place(&mut self) -> OwnedSemaphorePermit {
        let places = Arc::clone(&self.places);
        places.acquire_owned().await.expect("the worker never closes its own places")
    }

    /// Waits until there is a place for a batch; answers how many updates it may have. Where it had to wait the
    /// disk is what is slow, and gets more of them at once. Otherwise it shall get some sooner. So deciding a
    /// batch comes to take as long as flushing one.
    pub(super) async fn jobs_of_next_batch(&mut self) -> usize {
        let jobs_max = self.shared.options.batch_jobs_max;
        let waits = self.places.available_permits() == 0;
        if waits {
            drop(self.place().await);
        }
        self.jobs_at_once = match (self.settles_later, waits) {
            (false, _) => jobs_max,
            (true, false) => (self.jobs_at_once / 2).max(JOBS_FEW),
            (true, true) => self.jobs_at_once * 2,
        }
        .min(jobs_max);
        self.jobs_at_once
    }

    /// Waits until all batches have settled.
    pub(super) async fn all_settled(&mut self) {
        drop(self.places.acquire_many(SETTLING_MAX).await);
    }

    pub(super) fn nothing_settles(&self) -> bool {
        self.places.available_permits() == SETTLING_MAX as usize
    }

    /// Answers every update of the batch but those that wait for room, once `settled` is there. The batch was
    /// brought to be committed when it `began`.
    pub(super) async fn settle(&mut self, settled: B::Settled, began: Instant, place: OwnedSemaphorePermit) {
        let mut settled = Box::pin(guarded("settling a batch", settled));
        let at_once = poll_fn(|context| Poll::Ready(settled.as_mut().poll(context))).await;
        if at_once.is_pending() && !self.settles_later {
            self.jobs_at_once = JOBS_FEW;
        }
        self.settles_later = at_once.is_pending();
        let mut running = self.shared.running.lock();
        let (requests, callers) = split_decided(&mut self.batch, &mut running.deciding);
        if let Poll::Ready(outcome) = at_once {
            drop(running);
            self.shared.counters.commit_micros.add_micros(began.elapsed());
            self.shared.answer_batch(outcome, requests, callers);
            return;
        }
        self.settled_later += 1;
        let number = self.settled_later;
        running.settling.push((number, callers));
        drop(running);
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let outcome = settled.await;
            shared.counters.commit_micros.add_micros(began.elapsed());
            let callers = shared.running.lock().take_settling(number);
            shared.answer_batch(outcome, requests, callers);
            // The place says that nothing is held any more.
            drop(shared);
            drop(place);
        });
    }

    /// Answers every update of the batch that the backend failed.
    pub(super) fn fail(&mut self, error: &BackendError) {
        let callers = std::mem::take(&mut self.shared.running.lock().deciding);
        self.shared.refuse_batch(error, std::mem::take(&mut self.batch), callers);
    }
}

impl<B> Shared<B> {
    /// Answers as was decided, if the batch has settled.
    fn answer_batch(&self, settled: Result<(), BackendError>, requests: Vec<Request>, callers: Vec<Caller>) {
        match settled {
            Ok(()) => {
                self.caught_up();
                requests.into_iter().zip(callers).for_each(|(request, caller)| request.answer(caller));
            }
            Err(error) => self.refuse_batch(&error, requests, callers),
        }
    }

    fn refuse_batch(&self, error: &BackendError, requests: Vec<Request>, callers: Vec<Caller>) {
        self.report_failure(error);
        for (mut request, caller) in requests.into_iter().zip(callers) {
            request.verdict = Verdict::Refused(Unavailable::Backend.into());
            request.answer(caller);
        }
    }

    pub(super) fn report_failure(&self, error: &BackendError) {
        self.caught_up();
        self.counters.backend_failures.add(1);
        if self.failing.lock().passes(Instant::now()) {
            let (store, error) = (self.options.name, chain(error));
            error!(kind = "limit-store-failing", store, error, "the limit store's backend failed");
        }
    }
}

/// Takes out what is decided, updates and callers, and leaves what waits for room.
fn split_decided(batch: &mut Vec<Request>, callers: &mut Vec<Caller>) -> (Vec<Request>, Vec<Caller>) {
    let all = batch.drain(..).zip(callers.drain(..));
    let (waiting, decided): (Vec<_>, Vec<_>) =
        all.partition(|(request, _)| matches!(request.verdict, Verdict::NeedsRoom(_)));
    (*batch, *callers) = waiting.into_iter().unzip();
    decided.into_iter().unzip()
}

impl Request {
    /// Answers its caller as was decided.
    fn answer(self, caller: Caller) {
        let unwanted = match (self.verdict, caller.answer) {
            // Who has gone meanwhile gets nothing; the job comes back.
            (Verdict::Done, Some(answer)) => answer.send(Ok(self.job)).err().and_then(Result::ok),
            (Verdict::Refused(error), Some(answer)) => {
                let _ = answer.send(Err(error));
                Some(self.job)
            }
            _ => Some(self.job),
        };
        discard(unwanted);
    }
}
