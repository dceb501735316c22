//! The guard: a request goes in, its steps run in one update of the limit store, an answer comes out.

use std::{collections::BTreeSet, fmt, sync::Arc};

use smallvec::SmallVec;
use thiserror::Error;
use tidegate_core::reservation::Receipt;
use tidegate_protocol::{
    name::{Family, ReceiptId},
    request::{BadRequest, Command, Request},
    response::Response,
};
use tidegate_store::{Key, LimitStore, LimitStoreExt, StoreError};

use crate::{
    Metrics,
    execute::{self, Inputs, Stopped},
    plan::{self, KnownReceipt, Plan},
};

/// The guard store's engine over a limit store. Cloning shares it.
#[derive(Clone)]
pub struct Guard {
    store: Arc<dyn LimitStore>,
    families: Arc<BTreeSet<Family>>,
    metrics: Arc<Metrics>,
}

/// Why the guard did not execute a request. Except for [`Refusal::Unavailable`], nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Something in the request is out of bounds.
    #[error(transparent)]
    BadRequest(#[from] BadRequest),
    /// A known operation id came with other commands.
    #[error("steps[{step}]: this operation id is known with other commands")]
    Conflict {
        /// The first step that differs.
        step: usize,
    },
    /// The store did not answer in time or failed: the request may or may not have been executed, and the
    /// same operation id tells.
    #[error("the guard store is unavailable")]
    Unavailable,
}

impl Guard {
    /// A guard for these families.
    #[must_use]
    pub fn new(
        store: Arc<dyn LimitStore>,
        families: impl IntoIterator<Item = Family>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { store, families: Arc::new(families.into_iter().collect()), metrics }
    }

    /// Executes a request whose caller is trusted or has been authenticated.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn run(&self, request: Request) -> Result<Response, Refusal> {
        request.validate()?;
        self.run_valid(request).await
    }

    /// [`Guard::run`] for a request that was parsed, and so is within every bound.
    pub(crate) async fn run_valid(&self, request: Request) -> Result<Response, Refusal> {
        if !self.families.contains(&request.family) {
            return Err(unknown_family(&self.families).into());
        }
        let known = self.known_receipts(&request).await?;
        let drawn = drawn_receipts(&request)?;
        let plan = Plan::of(&request, &known, &drawn);
        let keys = plan.keys.clone();
        let commands = request.commands();
        let inputs = Inputs { request, plan, drawn };
        let outcome = self.store.update(keys, move |view| execute::execute(&inputs, view)).await;
        let response = outcome.map_err(unavailable)?.map_err(|stopped| match stopped {
            Stopped::Conflict { step } => Refusal::Conflict { step },
            Stopped::Unreadable => {
                tracing::error!(kind = "row-unreadable", "a row of the store can't be decoded");
                Refusal::Unavailable
            }
        })?;
        self.metrics.commands.inc_by(commands as u64);
        let replayed = response.steps.iter().filter(|step| step.replayed).count();
        self.metrics.steps_replayed.inc_by(replayed as u64);
        Ok(response)
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
        f.debug_struct("Guard").field("families", &self.families).finish_non_exhaustive()
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

/// How long the row of a probe stays.
const PROBE_LIFE_MS: u64 = 60_000;

fn unavailable(error: StoreError) -> Refusal {
    if let StoreError::Invalid(invalid) = error {
        // The protocol's bounds keep every request within the store's.
        tracing::error!(kind = "update-out-of-bounds", error = %invalid, "an update was out of bounds");
    }
    Refusal::Unavailable
}

fn unknown_family(families: &BTreeSet<Family>) -> BadRequest {
    let known: SmallVec<[&str; 8]> = families.iter().map(Family::as_str).collect();
    BadRequest { place: "family".to_owned(), message: format!("must be one of {}", known.join(", ")) }
}
