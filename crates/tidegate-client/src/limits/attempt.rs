//! Attempts at passwords: reserved before the expensive check, given back after a success.

use std::{fmt, sync::Arc, time::Duration};

use tidegate_core::window::Algorithm;
use tidegate_protocol::{
    Command, CommandResult, Request, Step,
    identity::{Digest, Purpose},
    name::ReceiptId,
    request::Budget,
};

use super::{Core, Decision, InvalidLimit, LegacyPath, Pending, no_such_answer, options_of_every_limit, ran};
use crate::{
    Backend, Caller, DecidedBy, Family, GuardClient, GuardUnavailable, GuardView, Networks, Refusal,
    RefusalCode, Selection, Verdict, operation_id,
    windows::{Denials, check_limit, check_period, whole_ms},
};

/// Bounds how often a source may try, and how often a target may be tried.
///
/// While the store is unavailable it is shut: nobody logs in, and nobody guesses.
///
/// ```
/// # use tidegate_client::{AttemptLimiter, Caller, Refusal};
/// # async fn handler(limiter: &AttemptLimiter, password_is_right: bool) -> Result<(), Refusal> {
/// let attempt = limiter.begin(Caller::at("192.0.2.7"), "alice@example.com").await.into_result()?;
/// if password_is_right {
///     // Gives back what this attempt took, and nothing else.
///     let _given_back = attempt.succeeded().await;
/// }
/// # Ok(()) }
/// ```
pub struct AttemptLimiter {
    pub(super) core: Core,
    source: AttemptBudget,
    target: AttemptBudget,
    legacy: Option<LegacyPath<LegacyAttempt, Verdict<Option<LegacyRefund>>>>,
    denials: Denials,
}

/// So many attempts within a time that begins with the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptBudget {
    /// How many.
    pub limit: u64,
    /// Within what time.
    pub period: Duration,
}

/// An attempt that may be made. Dropped, it stays charged.
#[must_use = "say whether it succeeded; an attempt that is dropped stays charged"]
pub struct Attempt {
    reserved: Reserved,
}

enum Reserved {
    /// Nothing to give back: nobody decided, or a refusal was only observed.
    Nothing,
    InStore(Box<Reservation>),
    OnLegacyPath(LegacyRefund),
}

/// Where a reservation is, and as whom it was made.
struct Reservation {
    view: GuardView,
    partition: Digest,
    receipt: ReceiptId,
}

/// What the legacy path of an [`AttemptLimiter`] is asked.
#[derive(Clone, PartialEq, Eq)]
pub struct LegacyAttempt {
    /// The limit's scope.
    pub scope: String,
    /// The canonical source.
    pub source: String,
    /// Whose password is tried.
    pub target: String,
}

/// Gives an attempt back: run after a success only, and dropped otherwise. It tells whether it worked.
pub type LegacyRefund = Pending<bool>;

/// How long a denial is believed: another's success may give the target an attempt back at any time.
const DENIAL_MS_MAX: u64 = 1000;

impl AttemptBudget {
    /// So many attempts within so long.
    #[must_use]
    pub const fn new(limit: u64, period: Duration) -> Self {
        Self { limit, period }
    }

    pub(crate) fn check(self) -> Result<(), InvalidLimit> {
        check_limit(self.limit)?;
        check_period(whole_ms(self.period), Algorithm::Fixed)
    }

    fn hashed(self, client: &GuardClient, name: &str) -> Budget {
        Budget::new(client.digest(Purpose::Key, name), self.limit, whole_ms(self.period))
    }
}

impl AttemptLimiter {
    /// A limit named `scope`, which all instances share, with a budget for each source and for each target.
    ///
    /// # Errors
    /// A bad scope, or a budget out of bounds.
    pub fn new(
        selection: &Selection,
        scope: &str,
        source: AttemptBudget,
        target: AttemptBudget,
    ) -> Result<Self, InvalidLimit> {
        source.check()?;
        target.check()?;
        let core = Core::new("attempt", Family::Password, selection, scope)?;
        Ok(Self { core, source, target, legacy: None, denials: Denials::default() })
    }

    options_of_every_limit!();

    /// What decides while the family is not assigned. Without it every attempt passes.
    #[must_use]
    pub fn with_legacy<F>(mut self, path: impl Fn(LegacyAttempt) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Verdict<Option<LegacyRefund>>> + Send + 'static,
    {
        self.legacy = Some(Arc::new(move |attempt| Box::pin(path(attempt))));
        self
    }

    /// Reserves an attempt at the password of `target`, spelled as the login folds it: each spelling that
    /// reaches this has a budget of its own.
    pub async fn begin(&self, caller: Caller<'_>, target: &str) -> Verdict<Attempt> {
        let started = self.core.started();
        let decision = match &self.core.backend {
            Backend::Legacy => self.by_legacy(caller, target).await,
            Backend::Guard(client) => self.by_guard(client, caller, target).await,
            Backend::Off(cause) => Decision::closed(&self.core.failed(cause.clone().into())),
        };
        self.core.settle(started, decision, || Attempt { reserved: Reserved::Nothing })
    }

    /// How many denials are remembered, at most 10 000.
    #[must_use]
    pub fn denials_remembered(&self) -> usize {
        self.denials.len()
    }

    async fn by_legacy(&self, caller: Caller<'_>, target: &str) -> Decision<Attempt> {
        let Some(path) = &self.legacy else {
            return Decision::allowed(Attempt { reserved: Reserved::Nothing }, DecidedBy::Nobody);
        };
        let (scope, target) = (self.core.scope.to_string(), target.to_owned());
        let verdict = path(LegacyAttempt { scope, source: caller.source(), target }).await;
        Decision::legacy(match verdict {
            Verdict::Allowed(refund) => {
                let reserved = refund.map_or(Reserved::Nothing, Reserved::OnLegacyPath);
                Verdict::Allowed(Attempt { reserved })
            }
            Verdict::Refused(refusal) => Verdict::Refused(refusal),
        })
    }

    async fn by_guard(&self, client: &GuardClient, caller: Caller<'_>, target: &str) -> Decision<Attempt> {
        let key = self.core.names.of(&[&caller.source(), target]);
        if let Some(refusal) = self.denials.standing(key, self.core.now_ms()) {
            return Decision::refused(refusal, DecidedBy::Memory);
        }
        match self.core.noted(self.ask(client, caller, target).await) {
            Ok(Answer::Reserved(reserved)) => Decision::allowed(Attempt { reserved }, DecidedBy::Store),
            Ok(Answer::Denied(refusal)) => {
                self.denials.remember(key, self.core.now_ms(), refusal.clone(), DENIAL_MS_MAX);
                Decision::refused(refusal, DecidedBy::Store)
            }
            Err(error) => Decision::closed(&error),
        }
    }

    async fn ask(
        &self,
        client: &GuardClient,
        caller: Caller<'_>,
        target: &str,
    ) -> Result<Answer, GuardUnavailable> {
        let partition = self.core.partition(client, &[]);
        let reserve = Command::reserve([
            self.source.hashed(client, &format!("source:{}", caller.source())),
            self.target.hashed(client, &format!("target:{target}")),
        ]);
        let request = self.core.request([Step { partition, commands: vec![reserve] }])?;
        let view = client.view(caller, Networks::Around);
        let response = view.run(&request).await?;
        match ran(&response, 0)?.results.first() {
            Some(CommandResult::Reserved { receipt: Some(receipt), .. }) => {
                let reservation = Reservation { view, partition, receipt: *receipt };
                Ok(Answer::Reserved(Reserved::InStore(Box::new(reservation))))
            }
            Some(CommandResult::NotReserved { retry_after_ms, .. }) => {
                // A budget of nothing has no end: nothing changes before its period is over.
                let longest_ms = whole_ms(self.source.period.max(self.target.period));
                let wait_ms = retry_after_ms.unwrap_or(longest_ms).max(1);
                Ok(Answer::Denied(Refusal::after(RefusalCode::AttemptsSpent, wait_ms)))
            }
            _ => Err(no_such_answer()),
        }
    }
}

enum Answer {
    Reserved(Reserved),
    Denied(Refusal),
}

impl Attempt {
    /// It succeeded: gives back what this attempt took, from both budgets, and marks the caller as good.
    ///
    /// Whether it was given back is for the record: the login has succeeded either way.
    ///
    /// # Errors
    /// There is no answer; the budgets stay charged until they end, or are given back after all.
    pub async fn succeeded(self) -> Result<bool, GuardUnavailable> {
        match self.reserved {
            Reserved::Nothing => Ok(false),
            Reserved::OnLegacyPath(refund) => Ok(refund.await),
            Reserved::InStore(reservation) => {
                let Reservation { view, partition, receipt } = *reservation;
                let request = Request::new(operation_id()?, Family::Password.name())
                    .step(partition, [Command::refund(receipt)]);
                let response = view.run(&request).await?;
                match ran(&response, 0)?.results.first() {
                    Some(CommandResult::Refund { refunded, .. }) => Ok(*refunded),
                    _ => Err(no_such_answer()),
                }
            }
        }
    }

    /// It failed: it stays charged.
    pub fn failed(self) {}
}

impl fmt::Debug for AttemptLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptLimiter").field("core", &self.core).finish_non_exhaustive()
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attempt(…)")
    }
}

impl fmt::Debug for LegacyAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LegacyAttempt({}, …)", self.scope)
    }
}
