//! The ready-made limits, and what they have in common.

mod attempt;
mod bulk_read;
mod replay;
mod route;

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use thiserror::Error;
use tidegate_protocol::{
    Request, Response, Step, StepResult,
    identity::{Digest, Purpose},
    response::Status,
};
use tidegate_store::clock::{Clock, SystemClock};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::{
    Backend, Cause, DecidedBy, Event, Family, GuardClient, GuardUnavailable, Observer, Outcome, Reason,
    Refusal, RefusalCode, Selection, Verdict, memory::Fingerprints, operation_id,
};

pub use attempt::{Attempt, AttemptBudget, AttemptLimiter, LegacyAttempt, LegacyRefund};
pub use bulk_read::{BULK_READS_A_DAY, BulkRead, BulkReadGuard, BulkReadLimits, LegacyRead};
pub use replay::{LegacyError, LegacyToken, ReplayFence, Token, TokenUse};
pub use route::{LegacyRoute, RouteLimiter};

/// What a function of the legacy path gives.
pub type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An application's own way of deciding.
pub(crate) type LegacyPath<A, T> = Arc<dyn Fn(A) -> Pending<T> + Send + Sync>;

/// A limit can't be made of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidLimit {
    /// The scope.
    #[error("a scope must be 1 to 64 characters of a-z, 0-9, _ and -")]
    Scope,
    /// The number of windows.
    #[error("a limit takes 1 to 4 windows, the daily ones of a bulk read included")]
    Windows,
    /// Two windows of one period, which would be one row.
    #[error("each period must stand once")]
    PeriodTwice,
    /// A period or a life that the protocol does not take.
    #[error("a period must be from 1 s to 120 days, of a sliding window to 60 days")]
    Period,
    /// A limit that the protocol does not take.
    #[error("a limit must be from 0 to 2^53 - 1")]
    Number,
}

/// What all limits are made of.
pub(crate) struct Core {
    limit: &'static str,
    family: Family,
    scope: Box<str>,
    backend: Backend,
    observes: bool,
    observer: Option<Arc<dyn Observer>>,
    clock: Arc<dyn Clock>,
    names: Fingerprints,
    /// Whether the last call got no answer: told once when it begins, once when it ends.
    is_away: AtomicBool,
}

/// A verdict, and how it came about.
pub(crate) struct Decision<T> {
    verdict: Verdict<T>,
    by: DecidedBy,
    unavailable: Option<Reason>,
    is_grace: bool,
}

impl<T> Decision<T> {
    pub(crate) const fn allowed(value: T, by: DecidedBy) -> Self {
        Self { verdict: Verdict::Allowed(value), by, unavailable: None, is_grace: false }
    }

    pub(crate) const fn refused(refusal: Refusal, by: DecidedBy) -> Self {
        Self { verdict: Verdict::Refused(refusal), by, unavailable: None, is_grace: false }
    }

    /// Shut, since the store can't be asked.
    pub(crate) const fn closed(error: &GuardUnavailable) -> Self {
        let verdict = Verdict::Refused(Refusal::unavailable());
        Self { verdict, by: DecidedBy::Instance, unavailable: Some(error.reason()), is_grace: false }
    }

    pub(crate) fn legacy(verdict: Verdict<T>) -> Self {
        Self { verdict, by: DecidedBy::Legacy, unavailable: None, is_grace: false }
    }

    pub(crate) fn because(self, error: &GuardUnavailable) -> Self {
        Self { unavailable: Some(error.reason()), ..self }
    }

    pub(crate) fn in_grace(self) -> Self {
        Self { is_grace: true, ..self }
    }
}

impl Core {
    pub(crate) fn new(
        limit: &'static str,
        family: Family,
        selection: &Selection,
        scope: &str,
    ) -> Result<Self, InvalidLimit> {
        // A scope is written as a family's name is.
        tidegate_protocol::name::Family::parse(scope).map_err(|_| InvalidLimit::Scope)?;
        Ok(Self {
            limit,
            family,
            scope: scope.into(),
            backend: selection.backend(family),
            observes: false,
            observer: None,
            clock: Arc::new(SystemClock::new()),
            names: Fingerprints::default(),
            is_away: AtomicBool::new(false),
        })
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// When a decision began, if anybody wants to know.
    pub(crate) fn started(&self) -> Option<Instant> {
        self.observer.as_ref().map(|_| Instant::now())
    }

    /// The text of a partition: `family:scope:rest`. Only the last part may hold a colon.
    pub(crate) fn partition(&self, client: &GuardClient, rest: &[&str]) -> Digest {
        let head = [self.family.as_str(), &self.scope];
        let text = [&head, rest].concat().join(":");
        client.digest(Purpose::Partition, &text)
    }

    /// A request of these steps under a fresh operation id.
    pub(crate) fn request(&self, steps: impl IntoIterator<Item = Step>) -> Result<Request, GuardUnavailable> {
        let mut request = Request::new(operation_id()?, self.family.name());
        request.steps.extend(steps);
        Ok(request)
    }

    /// Tells once when the store goes away, and once when it is back.
    pub(crate) fn noted<T>(&self, answer: Result<T, GuardUnavailable>) -> Result<T, GuardUnavailable> {
        let answer = answer.map_err(|error| self.failed(error))?;
        if self.is_away.swap(false, Ordering::Relaxed) {
            info!(limit = self.limit, scope = %self.scope, "the guard store is back");
        }
        Ok(answer)
    }

    /// The same for what is known to have failed.
    pub(crate) fn failed(&self, error: GuardUnavailable) -> GuardUnavailable {
        if !self.is_away.swap(true, Ordering::Relaxed) {
            let cause = &error.cause;
            warn!(limit = self.limit, scope = %self.scope, %cause, "the guard store is unavailable");
        }
        error
    }

    /// Tells what was decided; in observe mode a refusal goes on as `otherwise`.
    pub(crate) fn settle<T>(
        &self,
        started: Option<Instant>,
        decision: Decision<T>,
        otherwise: impl FnOnce() -> T,
    ) -> Verdict<T> {
        let outcome = match &decision.verdict {
            Verdict::Allowed(_) if decision.is_grace => Outcome::Grace,
            Verdict::Allowed(_) => Outcome::Allowed,
            Verdict::Refused(refusal) => Outcome::Refused(refusal.code),
        };
        let observed_only = self.observes && matches!(outcome, Outcome::Refused(_));
        debug!(
            limit = self.limit,
            scope = %self.scope,
            outcome = outcome.as_str(),
            decided_by = decision.by.as_str(),
            observed_only,
            "decided"
        );
        if let (Some(observer), Some(started)) = (&self.observer, started) {
            observer.decided(&Event {
                limit: self.limit,
                scope: &self.scope,
                family: self.family,
                outcome,
                decided_by: decision.by,
                observed_only,
                unavailable: decision.unavailable,
                elapsed: started.elapsed(),
            });
        }
        match decision.verdict {
            Verdict::Refused(_) if observed_only => Verdict::Allowed(otherwise()),
            verdict => verdict,
        }
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("limit", &self.limit)
            .field("scope", &self.scope)
            .field("backend", &self.backend)
            .field("observes", &self.observes)
            .finish_non_exhaustive()
    }
}

/// The step at `index`, if it ran.
pub(crate) fn ran(response: &Response, index: usize) -> Result<&StepResult, GuardUnavailable> {
    let ran = |step: &&StepResult| matches!(step.status, Status::Ok | Status::Denied);
    response.steps.get(index).filter(ran).ok_or_else(no_such_answer)
}

/// What answered did not answer what was asked.
pub(crate) fn no_such_answer() -> GuardUnavailable {
    Cause::NotAGuard { status: 200 }.into()
}

/// A refusal for a token or a session, which no waiting helps.
pub(crate) const fn plain<T>(code: RefusalCode, by: DecidedBy) -> Decision<T> {
    Decision::refused(Refusal::new(code), by)
}

/// What is set on every limit in the same way.
macro_rules! options_of_every_limit {
    () => {
        /// Decides, spends and remembers the same, but refuses nothing: what it would have refused is told to
        /// the observer and the log.
        #[must_use]
        pub fn observing(mut self) -> Self {
            self.core.observes = true;
            self
        }

        /// Tells this observer of every decision.
        #[must_use]
        pub fn with_observer(mut self, observer: std::sync::Arc<dyn $crate::Observer>) -> Self {
            self.core.observer = Some(observer);
            self
        }

        /// With another clock: for tests.
        #[must_use]
        pub fn with_clock(mut self, clock: std::sync::Arc<dyn tidegate_store::clock::Clock>) -> Self {
            self.core.clock = clock;
            self
        }
    };
}
pub(crate) use options_of_every_limit;

#[cfg(test)]
mod tests;
