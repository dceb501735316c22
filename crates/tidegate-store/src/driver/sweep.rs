//! Sweeping: step by step in between batches, and at once where a batch needs room.

use tokio::time::Instant;
use tracing::{error, warn};

use super::{guarded::guarded, log::chain, rhythm::AfterFailure, shared::Sweeper, worker::Worker};
use crate::{Backend, BackendError, Swept, Unavailable};

/// Rows of one step: a request waits for at most one.
pub(super) const SWEEP_ROWS_MAX: usize = 1000;

impl<B: Backend> Worker<B> {
    /// Does one step of the sweep that is under way.
    pub(super) async fn sweep_step(&mut self) {
        for sweeper in &mut self.shared.line.lock().sweepers {
            sweeper.joined = true;
        }
        match self.sweep_rows().await {
            Ok(swept) => self.swept(swept),
            Err(error) => self.sweep_failed(&error),
        }
    }

    /// Removes expired rows until `missing` have gone or none is left, within a bound.
    pub(super) async fn make_room(&mut self, missing: u64) {
        let mut freed = 0;
        for _ in 0..MAKE_ROOM_STEPS_MAX {
            let Ok(swept) = self.sweep_rows().await else { return };
            freed += swept.removed as u64;
            if freed >= missing || swept.complete {
                return;
            }
        }
    }

    async fn sweep_rows(&mut self) -> Result<Swept, BackendError> {
        let swept = guarded("sweeping", self.shared.backend.sweep(SWEEP_ROWS_MAX)).await;
        self.shared.caught_up();
        if let Err(error) = &swept {
            self.shared.report_failure(error);
        }
        let swept = swept?;
        self.bound.swept(swept.removed as u64);
        if swept.complete {
            self.bound.swept_clean(self.now_ms);
        }
        self.shared.counters.swept.add(swept.removed);
        Ok(swept)
    }

    fn swept(&mut self, Swept { removed, complete }: Swept) {
        self.settle_sweepers(|sweeper| {
            sweeper.removed += removed as u64;
            complete.then_some(Ok(sweeper.removed))
        });
        if complete {
            self.sweeping = false;
            self.rhythm.succeeded();
            self.shared.counters.sweeps.add(1);
            self.bound.warn_if_filling(self.shared.options.name);
            self.sweep_again_at(Some(Instant::now() + self.shared.options.sweep_interval));
        }
    }

    fn sweep_failed(&mut self, error: &BackendError) {
        self.settle_sweepers(|_| Some(Err(Unavailable::Backend.into())));
        self.sweeping = false;
        self.bound.warn_if_filling(self.shared.options.name);
        let (store, error) = (self.shared.options.name, chain(error));
        match self.rhythm.failed() {
            AfterFailure::RetryIn(pause) => {
                warn!(kind = "sweep-retried", store, error, retry_in_s = pause.as_secs(), "a sweep failed");
                self.sweep_again_at(Some(Instant::now() + pause));
            }
            AfterFailure::Rest => {
                error!(
                    kind = "sweep-failing",
                    store, error, "sweeping keeps failing; it rests until the next write"
                );
                self.sweep_again_at(None);
            }
        }
    }

    /// Answers the callers who were there when the step began, where `settle` has an answer.
    fn settle_sweepers(
        &mut self,
        mut settle: impl FnMut(&mut Sweeper) -> Option<Result<u64, crate::StoreError>>,
    ) {
        let mut line = self.shared.line.lock();
        for mut sweeper in std::mem::take(&mut line.sweepers) {
            match if sweeper.joined { settle(&mut sweeper) } else { None } {
                // A caller that has gone needs no answer.
                Some(answer) => drop(sweeper.answer.send(answer)),
                None => line.sweepers.push(sweeper),
            }
        }
    }

    fn sweep_again_at(&self, at: Option<Instant>) {
        self.shared.line.lock().sweep_at = at;
        self.shared.rouse.notify_one();
    }
}

/// One batch waits for at most so many steps; a few free more than most batches add, but a backend may have to
/// look for what has expired first.
const MAKE_ROOM_STEPS_MAX: usize = 64;
