//! The guard: a request goes in, it is admitted and its steps run in one update of the limit store, an answer
//! comes out.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{Arc, atomic::Ordering},
};

use smallvec::SmallVec;
use thiserror::Error;
use tidegate_core::{
    admission::{Admitted, Axis, FamilyRules, Phase, Refused},
    reservation::Receipt,
};
use tidegate_protocol::{
    name::{Family, ReceiptId},
    request::{BadRequest, Command, Request},
    response::{ErrorBody, ErrorCode, ErrorDetail, Response, StopReason},
};
use tidegate_store::{Key, Keys, LimitStore, LimitStoreExt, StoreError, clock::Clock};

use crate::{
    Metrics,
    admission::{How, Spending},
    execute::{self, Executed, Inputs, Stopped},
    families::{Families, FamilyEntry, Identity, identities},
    operator::{Operator, lay_fence},
    plan::{self, KnownReceipt, Plan},
    refusals::{Before, Refusals, Remembered},
};

/// The guard store's engine over a limit store. Cloning shares it.
#[derive(Clone)]
pub struct Guard {
    pub(crate) store: Arc<dyn LimitStore>,
    clock: Arc<dyn Clock>,
    pub(crate) families: Arc<Families>,
    pub(crate) refusals: Arc<Refusals>,
    /// Tells this guard from others on a store that they share.
    instance: u64,
    metrics: Arc<Metrics>,
}

/// What a guard serves, and what it keeps in memory.
#[derive(Debug, Clone)]
pub struct GuardOptions {
    /// Every family and what it may spend.
    pub families: BTreeMap<Family, FamilyRules>,
    /// How many refused identities are remembered until the UTC day ends; 0: none.
    pub refusals_max: usize,
}

/// How many refused identities are remembered: 1.5 MiB of them.
pub const REFUSALS_MAX: usize = 10_000;

/// Why the guard did not execute a request. Except for [`Refusal::Unavailable`], none of its steps ran.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Something in the request is out of bounds.
    #[error(transparent)]
    BadRequest(#[from] BadRequest),
    /// A known operation id came with other commands.
    #[error("steps[{step}]: this operation id is known with other commands; use a fresh one")]
    Conflict {
        /// The first step that differs.
        step: usize,
    },
    /// An identity's quota is spent; nothing was charged.
    #[error("the quota of this {} is spent for today", axis.as_str())]
    Limited {
        /// Which kind of identity.
        axis: Axis,
        /// Until the next UTC day.
        retry_after_ms: u64,
    },
    /// An operator or a spent budget stops it; nothing was charged.
    #[error("{}", stop_message(*reason))]
    Stopped {
        /// Which.
        reason: StopReason,
        /// When to ask again.
        retry_after_ms: u64,
    },
    /// The store did not answer in time or failed: the request may or may not have been executed, and the
    /// same operation id tells.
    #[error("the guard store can't answer now")]
    Unavailable,
}

impl Refusal {
    /// The refusal as it is answered.
    #[must_use]
    pub fn to_body(&self) -> ErrorBody {
        let (code, reason, axis, retry_after_ms) = match self {
            Self::BadRequest(_) => (ErrorCode::BadRequest, None, None, None),
            Self::Conflict { .. } => (ErrorCode::OperationConflict, None, None, None),
            Self::Limited { axis, retry_after_ms } => {
                (ErrorCode::GuardLimited, None, Some(*axis), Some(*retry_after_ms))
            }
            Self::Stopped { reason, retry_after_ms } => {
                (ErrorCode::GuardStopped, Some(*reason), None, Some(*retry_after_ms))
            }
            Self::Unavailable => (ErrorCode::GuardUnavailable, None, None, Some(RETRY_MS)),
        };
        ErrorBody { error: ErrorDetail { code, reason, axis, message: self.to_string(), retry_after_ms } }
    }
}

/// What a caller waits before it asks again where nothing says when it will be better.
pub const RETRY_MS: u64 = 30_000;

impl GuardOptions {
    /// These families, with the usual memory.
    #[must_use]
    pub fn of(families: impl IntoIterator<Item = (Family, FamilyRules)>) -> Self {
        Self { families: families.into_iter().collect(), refusals_max: REFUSALS_MAX }
    }
}

impl Guard {
    /// A guard over `store`, whose clock is `clock` or close to it.
    #[must_use]
    pub fn new(
        store: Arc<dyn LimitStore>,
        clock: Arc<dyn Clock>,
        options: GuardOptions,
        metrics: Arc<Metrics>,
    ) -> Self {
        // An operator's reset on another instance has to be found out.
        let memory_ms = if store.shared() { SHARED_MEMORY_MS } else { u64::MAX };
        let instance = RandomState::new().hash_one(std::process::id());
        let families = options.families.into_iter();
        let families =
            families.map(|(name, rules)| (name, Arc::new(FamilyEntry::new(name, rules, instance, &metrics))));
        Self {
            store,
            clock,
            families: Arc::new(families.collect()),
            refusals: Arc::new(Refusals::new(options.refusals_max, memory_ms)),
            instance,
            metrics,
        }
    }

    /// Executes a request whose caller is trusted or has been authenticated.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn run(&self, request: Request) -> Result<Response, Refusal> {
        request.validate()?;
        self.run_valid(request).await
    }

    /// What an operator may do.
    #[must_use]
    pub fn operator(&self) -> Operator<'_> {
        Operator::new(self)
    }

    /// [`Guard::run`] for a request that was parsed, and so is within every bound.
    pub(crate) async fn run_valid(&self, request: Request) -> Result<Response, Refusal> {
        let family = self.families.get(&request.family).ok_or_else(|| unknown_family(&self.families))?;
        family.check_required(&request.fairness)?;
        let identities = identities(&request.fairness);
        let now_ms = self.clock.now_ms();
        let commands = request.commands() as u64;
        let before = self
            .refusals
            .look(family.name, &identities, commands, now_ms)
            .map_err(|remembered| self.limited_by_memory(family, remembered, now_ms))?;
        let request = Arc::new(request);
        let mut how = self.first_way(family);
        for _ in 0..TRIES_MAX {
            let executed = self.update(&request, family, how.clone()).await?;
            match executed.outcome {
                Err(Stopped::NotAdmitted { refused: Refused::StandingNeeded, .. }) => {
                    family.looks_up_standing.store(true, Ordering::Relaxed);
                    how.look_up = true;
                }
                Err(Stopped::FamilyNeeded { holders }) => {
                    how.spending = Spending::Leasing { instance: self.instance, holders };
                }
                Err(Stopped::FenceNeeded) => lay_fence(&*self.store).await.map_err(unavailable)?,
                _ => return self.conclude(executed, family, &identities, before),
            }
        }
        tracing::error!(
            kind = "leases-in-motion",
            family = family.name.as_str(),
            "no lease could be settled"
        );
        Err(Refusal::Unavailable)
    }

    /// How a request is most likely to be admitted, from what is known here.
    fn first_way(&self, family: &FamilyEntry) -> How {
        let spending = if !self.store.shared() {
            Spending::Alone
        } else if family.is_leased.load(Ordering::Relaxed) {
            Spending::OnLease
        } else {
            Spending::Leasing { instance: self.instance, holders: Vec::new() }
        };
        How { look_up: family.looks_up_standing.load(Ordering::Relaxed), spending }
    }

    async fn update(
        &self,
        request: &Arc<Request>,
        family: &Arc<FamilyEntry>,
        how: How,
    ) -> Result<Executed, Refusal> {
        let known = self.known_receipts(request).await?;
        let drawn = drawn_receipts(request)?;
        let plan = Plan::of(request, &known, &drawn, family, &how);
        let keys = Keys::from(plan.keys.clone()).watching(plan.watched.iter().copied());
        let inputs = Inputs { request: Arc::clone(request), family: Arc::clone(family), how, plan, drawn };
        let executed = self.store.update_watching(keys, move |view| execute::execute(&inputs, view)).await;
        executed.map_err(unavailable)
    }

    /// Counts and tells what happened, once it is committed.
    fn conclude(
        &self,
        executed: Executed,
        family: &FamilyEntry,
        identities: &[Identity],
        before: Before,
    ) -> Result<Response, Refusal> {
        if let Some(admitted) = &executed.admitted {
            self.tell_of(admitted, family);
        }
        match executed.outcome {
            Ok(response) => {
                let replayed = response.steps.iter().filter(|step| step.replayed).count();
                self.metrics.steps_replayed.inc_by(replayed as u64);
                Ok(response)
            }
            Err(Stopped::Conflict { step }) => Err(Refusal::Conflict { step }),
            Err(Stopped::Unreadable) => {
                tracing::error!(kind = "row-unreadable", "a row of the store can't be decoded");
                Err(Refusal::Unavailable)
            }
            // Tried again before.
            Err(Stopped::FamilyNeeded { .. } | Stopped::FenceNeeded) => Err(Refusal::Unavailable),
            Err(Stopped::NotAdmitted { refused, now_ms, ends_at_ms }) => {
                let until_ms = ends_at_ms.saturating_sub(now_ms);
                let stopped = |reason, retry_after_ms| {
                    family.metrics.count_stop(reason);
                    Refusal::Stopped { reason, retry_after_ms }
                };
                Err(match refused {
                    Refused::Fenced => stopped(StopReason::OperatorStop, RETRY_MS),
                    Refused::Insufficient => stopped(StopReason::BudgetInsufficient, RETRY_MS),
                    Refused::Exhausted => stopped(StopReason::BudgetExhausted, until_ms),
                    Refused::Limited { index, remaining } => {
                        let identity = identities[index];
                        self.refusals.remember(before, family.name, identity, remaining, ends_at_ms, now_ms);
                        Self::limited(family, identity.0, until_ms, now_ms)
                    }
                    // It was looked up.
                    Refused::StandingNeeded => Refusal::Unavailable,
                })
            }
        }
    }

    fn limited_by_memory(&self, family: &FamilyEntry, remembered: Remembered, now_ms: u64) -> Refusal {
        self.metrics.refusals_remembered.inc();
        Self::limited(family, remembered.axis, remembered.until_ms.saturating_sub(now_ms), now_ms)
    }

    fn limited(family: &FamilyEntry, axis: Axis, retry_after_ms: u64, now_ms: u64) -> Refusal {
        family.metrics.count_denial(axis);
        if family.tells_of_denials(axis, now_ms) {
            let (family, axis) = (family.name.as_str(), axis.as_str());
            tracing::warn!(
                kind = "fairness-denied",
                family,
                axis,
                "an identity has spent its share of today"
            );
        }
        Refusal::Limited { axis, retry_after_ms }
    }

    fn tell_of(&self, admitted: &Admitted, family: &FamilyEntry) {
        let (name, budget, used) = (family.name.as_str(), family.rules.budget, admitted.day.used);
        self.metrics.commands.inc_by(admitted.commands);
        family.is_leased.store(admitted.day.holders.contains(&self.instance), Ordering::Relaxed);
        family.metrics.spent(used);
        if admitted.day.phase(&family.rules) == Phase::Open {
            family.looks_up_standing.store(false, Ordering::Relaxed);
        }
        if admitted.warned {
            tracing::warn!(
                kind = "budget-warning",
                family = name,
                used,
                budget,
                "80 % of the family's daily budget are spent"
            );
        }
        if admitted.entered_reserve {
            tracing::warn!(
                kind = "reserve-entered",
                family = name,
                used,
                budget,
                "the open part of the family's daily budget is spent; only known-good identities go on"
            );
        }
        if admitted.exhausted {
            tracing::error!(
                kind = "budget-exhausted",
                family = name,
                used,
                budget,
                "the family's daily budget is spent; it is stopped until the next UTC day or a resume"
            );
        }
    }

    /// Goes the way of a request that writes: whether the store takes an update within its deadline.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`]: it does not.
    pub async fn probe(&self) -> Result<(), Refusal> {
        let write = |view: &mut tidegate_store::View<'_>| {
            let expires_at_ms = view.now_ms() + PROBE_LIFE_MS;
            view.put_beside(0, tidegate_store::Value::new(), expires_at_ms);
        };
        self.store.update(vec![Key::of(&[b"probe"])], write).await.map_err(unavailable)
    }

    /// Looks up what the request's refunds name. A receipt never changes the budgets that it charged, so
    /// the update that follows finds their rows planned, whatever happens in between.
    async fn known_receipts(&self, request: &Request) -> Result<Vec<KnownReceipt>, Refusal> {
        let keys: Vec<Key> = request
            .steps
            .iter()
            .flat_map(|step| step.commands.iter().map(move |command| (step, command)))
            .filter_map(|(step, command)| match command {
                Command::Refund { receipt } => Some(plan::receipt_key(&step.partition, receipt)),
                _ => None,
            })
            .collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut distinct = keys.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let entries = self.store.read(distinct.clone()).await.map_err(unavailable)?;
        let receipt_of = |key: &Key| {
            let entry = distinct.binary_search(key).ok().and_then(|place| entries[place].as_ref());
            // What can't be decoded is reported by the update that follows.
            entry.and_then(|entry| Receipt::decode(&entry.value).ok())
        };
        Ok(keys.into_iter().map(|key| KnownReceipt { receipt: receipt_of(&key), key }).collect())
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("families", &self.families.keys()).finish_non_exhaustive()
    }
}

/// An id for the receipt of each reservation.
fn drawn_receipts(request: &Request) -> Result<Vec<ReceiptId>, Refusal> {
    let reservations = request.steps.iter().flat_map(|step| &step.commands);
    reservations
        .filter(|command| matches!(command, Command::Reserve { .. }))
        .map(|_| draw_receipt())
        .collect()
}

fn draw_receipt() -> Result<ReceiptId, Refusal> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(kind = "no-randomness", %error, "the system gives no random bytes");
        Refusal::Unavailable
    })?;
    Ok(ReceiptId::from_random(bytes))
}

/// How long a refusal is remembered where other instances may reset quotas.
const SHARED_MEMORY_MS: u64 = 10_000;

/// The fence, a lease, the family's row, standing, and the leases of holders that come and go meanwhile.
const TRIES_MAX: usize = 12;

/// How long the row of a probe stays.
const PROBE_LIFE_MS: u64 = 60_000;

pub(crate) fn unavailable(error: StoreError) -> Refusal {
    if let StoreError::Invalid(invalid) = error {
        // The protocol's bounds keep every request within the store's.
        tracing::error!(kind = "update-out-of-bounds", error = %invalid, "an update was out of bounds");
    }
    Refusal::Unavailable
}

fn unknown_family(families: &Families) -> BadRequest {
    let known: SmallVec<[&str; 8]> = families.keys().map(Family::as_str).collect();
    BadRequest { place: "family".to_owned(), message: format!("must be one of {}", known.join(", ")) }
}

const fn stop_message(reason: StopReason) -> &'static str {
    match reason {
        StopReason::OperatorStop => "an operator has stopped the guard store",
        StopReason::BudgetExhausted => "the family's budget of today is spent",
        StopReason::BudgetInsufficient => "the request has more commands than the family's budget has left",
    }
}
