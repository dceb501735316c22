//! A request's steps over the rows that its plan names: pure, and all in one update.

use std::sync::Arc;

use smallvec::SmallVec;
use tidegate_core::{
    admission::{Admitted, Refused},
    record::{self, Existing, IncrementError, SetOutcome},
    reservation::{self, Budget, BudgetRule, Receipt, Refund},
    window::{self, Rule, State},
};
use tidegate_protocol::{
    name::ReceiptId,
    request::{Command, Mode, Request, Step},
    response::{CommandResult, RefundReason, Response, Status, StepError, StepErrorCode, StepResult},
};
use tidegate_store::{Entry, Key, Value, View};

use crate::{
    admission::How,
    families::FamilyEntry,
    operation::{self, Fingerprint, RecordFault},
    plan::{Plan, StepPlan},
};

/// How long an operation record is kept: both sides of the 60 s that a signature's time may be off, and a margin.
pub(crate) const OPERATION_LIFE_MS: u64 = 180_000;

/// Why a request was not executed; nothing of its steps was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// Nobody was charged.
    NotAdmitted {
        refused: Refused,
        now_ms: u64,
        /// When the family's day ends.
        ends_at_ms: u64,
    },
    /// The lease does not do: the family's own row is needed, and perhaps the leases of the other holders.
    FamilyNeeded {
        /// Who they are.
        holders: Vec<u64>,
    },
    /// Instances watch the fence, and there is no row yet that a store could lock for them.
    FenceNeeded,
    /// The operation is known with other commands.
    Conflict { step: usize },
    /// A row can't be decoded. Nobody may take it for empty, nor for full.
    Unreadable,
}

/// What is drawn or looked up before an update, since an update is pure.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub(crate) request: Arc<Request>,
    pub(crate) family: Arc<FamilyEntry>,
    pub(crate) how: How,
    pub(crate) plan: Plan,
    /// Ids for the receipts of reservations, in order.
    pub(crate) drawn: Vec<ReceiptId>,
}

/// What an update made of a request.
#[derive(Debug)]
pub(crate) struct Executed {
    pub(crate) outcome: Result<Response, Stopped>,
    /// What it was charged, unless it was not admitted.
    pub(crate) admitted: Option<Admitted>,
}

/// Admits the request and runs every step of it. What was charged stays charged if it turns out to be in
/// conflict with an earlier one: the store has done the work.
pub(crate) fn execute(inputs: &Inputs, view: &mut View<'_>) -> Executed {
    let Inputs { request, plan, family, how, .. } = inputs;
    let start = view.mark();
    let admitted = match plan.admission.admit(request, family, how, view) {
        Ok(admitted) => admitted,
        Err(stopped) => return Executed { outcome: Err(stopped), admitted: None },
    };
    let charged = view.mark();
    match run_steps(inputs, view) {
        Ok(response) => {
            plan.admission.mark_good(request, &response, view);
            Executed { outcome: Ok(response), admitted: Some(admitted) }
        }
        Err(conflict @ Stopped::Conflict { .. }) => {
            view.rollback(charged);
            Executed { outcome: Err(conflict), admitted: Some(admitted) }
        }
        Err(stopped) => {
            view.rollback(start);
            Executed { outcome: Err(stopped), admitted: None }
        }
    }
}

fn run_steps(inputs: &Inputs, view: &mut View<'_>) -> Result<Response, Stopped> {
    let Inputs { request, plan, drawn, .. } = inputs;
    let known = known_operations(inputs, view)?;
    let mut drawn = drawn.as_slice();
    let mut steps = Vec::with_capacity(request.steps.len());
    let mut halted = false;
    for ((step, step_plan), known) in request.steps.iter().zip(&plan.steps).zip(known) {
        let reservations = step.commands.iter().filter(|command| matches!(command, Command::Reserve { .. }));
        let (receipts, rest) = drawn.split_at(reservations.count());
        drawn = rest;
        let result = match known {
            // It was executed, whatever its neighbours would let it do now.
            Known::Before(result) => result,
            Known::New(_) if halted => StepResult::skipped(),
            Known::New(fingerprint) => StepRun { step, plan: step_plan, keys: &plan.keys, receipts, view }
                .run(fingerprint.as_ref())?,
        };
        halted = request.mode == Mode::Sequential && result.status != Status::Ok;
        steps.push(result);
    }
    let denied = steps.iter().any(|step| step.status == Status::Denied);
    Ok(Response { op: request.op, now_ms: view.now_ms(), denied, steps })
}

/// Whether a step has been executed before.
enum Known {
    /// It has; this was its result.
    Before(StepResult),
    /// It has not; a step that may change something is recorded under its fingerprint.
    New(Option<Fingerprint>),
}

/// Looks every step up before any runs, so that a conflict changes nothing.
fn known_operations(inputs: &Inputs, view: &View<'_>) -> Result<SmallVec<[Known; 1]>, Stopped> {
    let Inputs { request, plan, .. } = inputs;
    let mut known = SmallVec::with_capacity(request.steps.len());
    for (index, (step, plan)) in request.steps.iter().zip(&plan.steps).enumerate() {
        let fingerprint = || step.fingerprint(&request.family, index);
        known.push(match recorded(plan, view) {
            None => Known::New(step.is_mutating().then(fingerprint)),
            Some(record) => match operation::decode(&record, &fingerprint(), step) {
                Ok(result) => Known::Before(result),
                Err(RecordFault::OtherCommands) => return Err(Stopped::Conflict { step: index }),
                Err(RecordFault::Unreadable) => return Err(Stopped::Unreadable),
            },
        });
    }
    Ok(known)
}

/// The step's operation record, put together again.
fn recorded(plan: &StepPlan, view: &View<'_>) -> Option<Value> {
    let mut rows = plan.record.iter().map_while(|place| view.get(*place));
    let mut whole = rows.next()?.value.clone();
    rows.for_each(|row| whole.extend_from_slice(&row.value));
    Some(whole)
}

/// One step in work: a transaction of its own.
struct StepRun<'a, 'v, 'r> {
    step: &'a Step,
    plan: &'a StepPlan,
    keys: &'a [Key],
    /// Ids for the receipts of this step's reservations, in order.
    receipts: &'a [ReceiptId],
    view: &'v mut View<'r>,
}

impl StepRun<'_, '_, '_> {
    fn run(mut self, fingerprint: Option<&Fingerprint>) -> Result<StepResult, Stopped> {
        let start = self.view.mark();
        let mut results = Vec::with_capacity(self.step.commands.len());
        for (index, (command, places)) in self.step.commands.iter().zip(&self.plan.commands).enumerate() {
            match self.command(command, places)? {
                Ok(result) => results.push(result),
                Err(fault) => {
                    self.view.rollback(start);
                    return Ok(failed(index, fault));
                }
            }
        }
        let denied = results.iter().any(CommandResult::is_denial);
        let status = if denied { Status::Denied } else { Status::Ok };
        let result = StepResult { status, replayed: false, results, error: None };
        if let Some(fingerprint) = fingerprint
            && self.view.changed_since(start)
        {
            self.record(&operation::encode(fingerprint, &result));
        }
        Ok(result)
    }

    fn record(&mut self, bytes: &[u8]) {
        let expires_at_ms = self.view.now_ms() + OPERATION_LIFE_MS;
        for (place, chunk) in self.plan.record.iter().zip(bytes.chunks(tidegate_store::VALUE_BYTES_MAX)) {
            self.view.put_beside(*place, Value::from_slice(chunk), expires_at_ms);
        }
    }

    /// One command: its result, or why the step fails.
    fn command(
        &mut self,
        command: &Command,
        places: &[usize],
    ) -> Result<Result<CommandResult, IncrementError>, Stopped> {
        let now_ms = self.view.now_ms();
        let result = match command {
            Command::Hit { windows, cost } => {
                let rules = windows.iter().map(|window| Rule {
                    limit: window.limit,
                    period_ms: window.period_ms,
                    algorithm: window.algorithm,
                });
                self.hit(rules, *cost, places)?
            }
            Command::Get { .. } => {
                let entry = self.view.get(places[0]);
                CommandResult::Get { value: entry.map(text).transpose()?, ttl_ms: ttl_left(entry, now_ms) }
            }
            Command::Set { value, ttl_ms, mode, keep_ttl, .. } => {
                let set = record::Set { mode: *mode, ttl_ms: *ttl_ms, keep_ttl: *keep_ttl };
                self.set(value, set, places[0])?
            }
            Command::Delete { .. } => {
                let deleted = self.view.get(places[0]).is_some();
                // An expired row that is still there is the sweep's: removing it changes nothing.
                if deleted {
                    self.view.delete(places[0]);
                }
                CommandResult::Delete { deleted }
            }
            Command::Ttl { .. } => CommandResult::Ttl { ttl_ms: ttl_left(self.view.get(places[0]), now_ms) },
            Command::Expire { ttl_ms, .. } => self.expire(*ttl_ms, places[0]),
            Command::Increment { by, ttl_ms, .. } => {
                return self.increment(*by, *ttl_ms, places[0]);
            }
            Command::Reserve { budgets, target, cost } => {
                let rules = budgets
                    .iter()
                    .map(|budget| BudgetRule { limit: budget.limit, period_ms: budget.period_ms });
                self.reserve(rules, *target, *cost, places)?
            }
            Command::Refund { .. } => self.refund(places)?,
        };
        Ok(Ok(result))
    }

    fn hit(
        &mut self,
        rules: impl Iterator<Item = Rule>,
        cost: u64,
        places: &[usize],
    ) -> Result<CommandResult, Stopped> {
        let mut windows: SmallVec<[(Rule, Option<State>); 4]> = SmallVec::new();
        for (rule, place) in rules.zip(places) {
            let state = self.view.get(*place).map(|entry| State::decode(&entry.value)).transpose();
            windows.push((rule, state.map_err(|_| Stopped::Unreadable)?));
        }
        let hit = window::hit(&windows, cost, self.view.now_ms());
        for (place, charge) in places.iter().zip(hit.charged.iter().flatten()) {
            let mut row = Value::new();
            charge.state.encode(&mut row);
            self.view.put(*place, row, charge.expires_at_ms);
        }
        let windows = hit.usages.iter().copied().map(Into::into).collect();
        Ok(CommandResult::Hit { allowed: hit.allowed, windows, retry_after_ms: hit.retry_after_ms })
    }

    fn set(&mut self, value: &str, set: record::Set, place: usize) -> Result<CommandResult, Stopped> {
        let entry = self.view.get(place);
        match record::set(entry.map(existing), set, self.view.now_ms()) {
            SetOutcome::Written { expires_at_ms } => {
                let mut row = Value::new();
                record::encode(value.as_bytes(), &mut row);
                self.view.put(place, row, expires_at_ms);
                Ok(CommandResult::Set { written: true, current: None })
            }
            SetOutcome::Refused => {
                Ok(CommandResult::Set { written: false, current: entry.map(text).transpose()? })
            }
        }
    }

    fn expire(&mut self, ttl_ms: u64, place: usize) -> CommandResult {
        let entry = self.view.get(place).cloned();
        let expires_at_ms = record::expire(entry.as_ref().map(existing), ttl_ms, self.view.now_ms());
        if let (Some(entry), Some(expires_at_ms)) = (entry, expires_at_ms) {
            self.view.put(place, entry.value, expires_at_ms);
        }
        CommandResult::Expire { updated: expires_at_ms.is_some() }
    }

    fn increment(
        &mut self,
        by: i64,
        ttl_ms: u64,
        place: usize,
    ) -> Result<Result<CommandResult, IncrementError>, Stopped> {
        let now_ms = self.view.now_ms();
        let entry = self.view.get(place);
        let counter = entry.map(|entry| decoded(entry).map(|value| Existing { value, ..existing(entry) }));
        let sum = match record::increment(counter.transpose()?, by, ttl_ms, now_ms) {
            Ok(sum) => sum,
            Err(fault) => return Ok(Err(fault)),
        };
        let mut row = Value::new();
        record::encode(record::write_integer(sum.value).as_bytes(), &mut row);
        self.view.put(place, row, sum.expires_at_ms);
        Ok(Ok(CommandResult::Increment { value: sum.value, ttl_ms: sum.expires_at_ms - now_ms }))
    }

    /// `places`: the budgets' rows, then the receipt's.
    fn reserve(
        &mut self,
        rules: impl Iterator<Item = BudgetRule>,
        target: usize,
        cost: u64,
        places: &[usize],
    ) -> Result<CommandResult, Stopped> {
        let mut budgets: SmallVec<[(BudgetRule, Option<Budget>); 4]> = SmallVec::new();
        for (rule, place) in rules.zip(places) {
            budgets.push((rule, self.budget(*place)?));
        }
        let reserve = reservation::reserve(&budgets, target, cost, self.view.now_ms());
        let usages = reserve.usages.iter().copied().map(Into::into).collect();
        let (id, rest) = self.receipts.split_first().ok_or(Stopped::Unreadable)?;
        self.receipts = rest;
        if !reserve.allowed() {
            return Ok(CommandResult::NotReserved {
                denied_by: reserve.denied_by.to_vec(),
                retry_after_ms: reserve.retry_after_ms,
                budgets: usages,
            });
        }
        let Some(reserved) = reserve.reserved else {
            return Ok(CommandResult::Reserved { receipt: None, budgets: usages });
        };
        let mut charges = SmallVec::new();
        for (place, budget) in places.iter().zip(&reserved.budgets) {
            charges.push((self.keys[*place], budget.ends_at_ms));
            self.put_budget(*place, budget);
        }
        let mut row = Value::new();
        Receipt { refunded: false, cost, charges }.encode(&mut row);
        self.view.put(places[reserved.budgets.len()], row, reserved.receipt_expires_at_ms);
        Ok(CommandResult::Reserved { receipt: Some(*id), budgets: usages })
    }

    /// `places`: the receipt's row, then those of the budgets that it charged.
    fn refund(&mut self, places: &[usize]) -> Result<CommandResult, Stopped> {
        let entry = self.view.get(places[0]);
        let receipt = entry.map(|entry| Receipt::decode(&entry.value)).transpose();
        let receipt = receipt.map_err(|_| Stopped::Unreadable)?;
        let expires_at_ms = entry.map_or(0, |entry| entry.expires_at_ms);
        let budgets =
            places[1..].iter().map(|place| self.budget(*place)).collect::<Result<SmallVec<[_; 4]>, _>>()?;
        let refused = |reason| CommandResult::Refund { refunded: false, reason: Some(reason) };
        Ok(match reservation::refund(receipt, &budgets, self.view.now_ms()) {
            Refund::UnknownOrExpired => refused(RefundReason::UnknownOrExpired),
            Refund::AlreadyRefunded => refused(RefundReason::AlreadyRefunded),
            Refund::Refunded { receipt, budgets } => {
                let mut row = Value::new();
                receipt.encode(&mut row);
                self.view.put(places[0], row, expires_at_ms);
                for (place, budget) in places[1..].iter().zip(&budgets) {
                    if let Some(budget) = budget {
                        self.put_budget(*place, budget);
                    }
                }
                CommandResult::Refund { refunded: true, reason: None }
            }
        })
    }

    fn budget(&self, place: usize) -> Result<Option<Budget>, Stopped> {
        let budget = self.view.get(place).map(|entry| Budget::decode(&entry.value));
        budget.transpose().map_err(|_| Stopped::Unreadable)
    }

    fn put_budget(&mut self, place: usize, budget: &Budget) {
        let mut row = Value::new();
        budget.encode(&mut row);
        self.view.put(place, row, budget.ends_at_ms);
    }
}

fn existing(entry: &Entry) -> Existing<'_> {
    Existing { value: &entry.value, expires_at_ms: entry.expires_at_ms }
}

fn ttl_left(entry: Option<&Entry>, now_ms: u64) -> Option<u64> {
    record::ttl_left(entry.map(existing), now_ms)
}

fn decoded(entry: &Entry) -> Result<&[u8], Stopped> {
    record::decode(&entry.value).map_err(|_| Stopped::Unreadable)
}

fn text(entry: &Entry) -> Result<String, Stopped> {
    let text = str::from_utf8(decoded(entry)?).map_err(|_| Stopped::Unreadable)?;
    Ok(text.to_owned())
}

fn failed(command: usize, fault: IncrementError) -> StepResult {
    let code = match fault {
        IncrementError::NotAnInteger => StepErrorCode::NotAnInteger,
        IncrementError::Overflow => StepErrorCode::Overflow,
    };
    let error = StepError { code, message: fault.to_string(), command };
    StepResult { status: Status::Failed, replayed: false, results: Vec::new(), error: Some(error) }
}
