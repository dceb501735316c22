//! The guard as a page of plain maps, written from its description and not from its code: windows are lists of
//! charges that are summed up anew each time, waits are found by trying.

use std::collections::HashMap;

use tidegate_protocol::{
    Command, CommandResult, Request, Response, StepResult,
    identity::Digest,
    name::{Family, OperationId, ReceiptId},
    request::{Algorithm, Budget, Mode, SetMode, Window},
    response::{RefundReason, Status, StepError, StepErrorCode, Usage},
};

const INTEGER_MAX: i64 = 9_007_199_254_740_991;
const OPERATION_LIFE_MS: u64 = 180_000;

/// What the guard should answer.
#[derive(Debug)]
pub(super) enum Outcome {
    Answer(Response),
    Conflict { step: usize },
}

#[derive(Default)]
pub(super) struct Model {
    partitions: HashMap<Digest, Partition>,
    operations: HashMap<(OperationId, Digest, usize), Operation>,
    issued: Vec<ReceiptId>,
}

struct Operation {
    family: Family,
    commands: Vec<Command>,
    result: StepResult,
    expires_at_ms: u64,
}

#[derive(Default, Clone, PartialEq)]
struct Partition {
    /// Every charge that there ever was, as (instant, cost).
    windows: HashMap<(Digest, u64, Algorithm), Vec<(u64, u64)>>,
    records: HashMap<Digest, (String, u64)>,
    /// Used, and the end of the window.
    budgets: HashMap<Digest, (u64, u64)>,
    receipts: HashMap<ReceiptId, Receipt>,
    /// Writes that leave a row as it is.
    touched: u64,
}

#[derive(Clone, PartialEq)]
struct Receipt {
    cost: u64,
    /// Budgets, and the end of the window of each that was charged.
    charges: Vec<(Digest, u64)>,
    expires_at_ms: u64,
    refunded: bool,
}

impl Model {
    /// All that were given out, in their order.
    pub(super) fn receipts(&self) -> &[ReceiptId] {
        &self.issued
    }

    /// `drawn` are the receipts that the guard gave out.
    pub(super) fn run(
        &mut self,
        request: &Request,
        now_ms: u64,
        drawn: &[Vec<Option<ReceiptId>>],
    ) -> Outcome {
        let place = |index: usize| (request.op, request.steps[index].partition, index);
        self.operations.retain(|_, operation| operation.expires_at_ms > now_ms);
        for (index, step) in request.steps.iter().enumerate() {
            if let Some(known) = self.operations.get(&place(index))
                && (known.family != request.family || known.commands != step.commands)
            {
                return Outcome::Conflict { step: index };
            }
        }
        let mut steps: Vec<StepResult> = Vec::new();
        let mut halted = false;
        for (index, step) in request.steps.iter().enumerate() {
            let drawn = drawn.get(index).map(Vec::as_slice).unwrap_or_default();
            let result = if let Some(known) = self.operations.get(&place(index)) {
                StepResult { replayed: true, ..known.result.clone() }
            } else if halted {
                StepResult::skipped()
            } else {
                let rows = self.partitions.entry(step.partition).or_default();
                let before = rows.clone();
                let result = rows.step(&step.commands, now_ms, drawn);
                self.issued.extend(result.results.iter().filter_map(|result| match result {
                    CommandResult::Reserved { receipt, .. } => *receipt,
                    _ => None,
                }));
                if result.status == Status::Failed {
                    *rows = before;
                } else if *rows != before {
                    let operation = Operation {
                        family: request.family,
                        commands: step.commands.clone(),
                        result: result.clone(),
                        expires_at_ms: now_ms + OPERATION_LIFE_MS,
                    };
                    self.operations.insert(place(index), operation);
                }
                result
            };
            halted |= request.mode == Mode::Sequential && result.status != Status::Ok;
            steps.push(result);
        }
        let denied = steps.iter().any(|step| step.status == Status::Denied);
        Outcome::Answer(Response { op: request.op, now_ms, denied, steps })
    }
}

impl Partition {
    fn step(&mut self, commands: &[Command], now_ms: u64, drawn: &[Option<ReceiptId>]) -> StepResult {
        let mut results = Vec::new();
        for (index, command) in commands.iter().enumerate() {
            match self.command(command, now_ms, drawn.get(index).copied().flatten()) {
                Ok(result) => results.push(result),
                Err(code) => {
                    let message = match code {
                        StepErrorCode::NotAnInteger => "the value is not an integer",
                        StepErrorCode::Overflow => "the counter would leave the range of ±9007199254740991",
                    };
                    let error = Some(StepError { code, message: message.to_owned(), command: index });
                    return StepResult { status: Status::Failed, replayed: false, results: vec![], error };
                }
            }
        }
        let denied = results.iter().any(CommandResult::is_denial);
        let status = if denied { Status::Denied } else { Status::Ok };
        StepResult { status, replayed: false, results, error: None }
    }

    fn command(
        &mut self,
        command: &Command,
        now_ms: u64,
        drawn: Option<ReceiptId>,
    ) -> Result<CommandResult, StepErrorCode> {
        let live = |rows: &Self, key: &Digest| rows.records.get(key).filter(|row| row.1 > now_ms).cloned();
        Ok(match command {
            Command::Hit { windows, cost } => self.hit(windows, *cost, now_ms),
            Command::Get { key } => {
                let (value, ends) = live(self, key).unzip();
                CommandResult::Get { value, ttl_ms: ends.map(|ends| ends - now_ms) }
            }
            Command::Ttl { key } => CommandResult::Ttl { ttl_ms: live(self, key).map(|row| row.1 - now_ms) },
            Command::Set { key, value, ttl_ms, mode, keep_ttl } => {
                let old = live(self, key);
                let may = match mode {
                    SetMode::Always => true,
                    SetMode::Nx => old.is_none(),
                    SetMode::Xx => old.is_some(),
                };
                if !may {
                    return Ok(CommandResult::Set { written: false, current: old.map(|row| row.0) });
                }
                let ends = match old {
                    Some((_, ends)) if *keep_ttl => ends,
                    _ => now_ms + ttl_ms.unwrap_or_default(),
                };
                self.put(*key, value.clone(), ends);
                CommandResult::Set { written: true, current: None }
            }
            Command::Delete { key } => {
                let deleted = live(self, key).is_some();
                self.touched += u64::from(deleted);
                self.records.retain(|other, row| other != key || row.1 <= now_ms);
                CommandResult::Delete { deleted }
            }
            Command::Expire { key, ttl_ms } => {
                let old = live(self, key);
                if let Some((value, _)) = &old {
                    self.put(*key, value.clone(), now_ms + ttl_ms);
                }
                CommandResult::Expire { updated: old.is_some() }
            }
            Command::Increment { key, by, ttl_ms } => {
                let (text, ends) = live(self, key).unwrap_or_else(|| ("0".to_owned(), now_ms + ttl_ms));
                let value = text.parse::<i64>().map_err(|_| StepErrorCode::NotAnInteger)? + by;
                if value.abs() > INTEGER_MAX {
                    return Err(StepErrorCode::Overflow);
                }
                self.put(*key, value.to_string(), ends);
                CommandResult::Increment { value, ttl_ms: ends - now_ms }
            }
            Command::Reserve { budgets, target, cost } => {
                self.reserve(budgets, *target, *cost, now_ms, drawn)
            }
            Command::Refund { receipt } => self.refund(receipt, now_ms),
        })
    }

    fn put(&mut self, key: Digest, value: String, ends: u64) {
        self.touched += 1;
        self.records.insert(key, (value, ends));
    }

    fn hit(&mut self, windows: &[Window], cost: u64, now_ms: u64) -> CommandResult {
        let never = windows.iter().any(|window| window.limit == 0 || window.limit < cost);
        let fits = |at_ms| windows.iter().all(|window| self.used(window, at_ms) + cost <= window.limit);
        // Nobody charges meanwhile, so what fits at an instant fits ever after.
        let wait_ms = (!never).then(|| first(|wait_ms| fits(now_ms + wait_ms)));
        let allowed = wait_ms == Some(0);
        if allowed && cost > 0 {
            for window in windows {
                let place = (window.key, window.period_ms, window.algorithm);
                self.windows.entry(place).or_default().push((now_ms, cost));
            }
        }
        let usages = windows.iter().map(|window| {
            let used = self.used(window, now_ms);
            let reset_ms = match window.algorithm {
                Algorithm::Bucket => first(|wait_ms| self.used(window, now_ms + wait_ms) == 0),
                Algorithm::Sliding | Algorithm::Fixed => window.period_ms - now_ms % window.period_ms,
            };
            Usage { limit: window.limit, used, remaining: window.limit.saturating_sub(used), reset_ms }
        });
        CommandResult::Hit { allowed, windows: usages.collect(), retry_after_ms: wait_ms }
    }

    fn used(&self, window: &Window, at_ms: u64) -> u64 {
        let period_ms = window.period_ms;
        let place = (window.key, period_ms, window.algorithm);
        let charges = self.windows.get(&place).map(Vec::as_slice).unwrap_or_default();
        let now = at_ms / period_ms;
        let sum_of = |bucket: u64| -> u64 {
            charges.iter().filter(|charge| charge.0 / period_ms == bucket).map(|charge| charge.1).sum()
        };
        match window.algorithm {
            Algorithm::Fixed => sum_of(now),
            Algorithm::Sliding => sum_of(now - 1) * (period_ms - at_ms % period_ms) / period_ms + sum_of(now),
            Algorithm::Bucket => {
                // A token is `period_ms` parts, of which `limit` flow back each ms.
                let refilled = |level: u64, ms: u64| level.saturating_sub(ms * window.limit);
                let (mut level, mut since_ms) = (0, 0);
                for (charged_ms, cost) in charges {
                    level = refilled(level, charged_ms - since_ms) + cost * period_ms;
                    since_ms = *charged_ms;
                }
                refilled(level, at_ms - since_ms).div_ceil(period_ms)
            }
        }
    }

    fn reserve(
        &mut self,
        budgets: &[Budget],
        target: usize,
        cost: u64,
        now_ms: u64,
        drawn: Option<ReceiptId>,
    ) -> CommandResult {
        let state = |rows: &Self, budget: &Budget| {
            let live = rows.budgets.get(&budget.key).filter(|row| row.1 > now_ms);
            live.copied().unwrap_or((0, now_ms))
        };
        let usages = |rows: &Self| -> Vec<Usage> {
            let usage = |budget: &Budget| {
                let (used, ends) = state(rows, budget);
                let remaining = budget.limit.saturating_sub(used);
                Usage { limit: budget.limit, used, remaining, reset_ms: ends - now_ms }
            };
            budgets.iter().map(usage).collect()
        };
        let has_room = |budget: &Budget| budget.limit > 0 && state(self, budget).0 + cost <= budget.limit;
        let denied_by: Vec<usize> = (0..budgets.len()).filter(|index| !has_room(&budgets[*index])).collect();
        if !denied_by.is_empty() {
            let never = budgets.iter().any(|budget| budget.limit == 0 || budget.limit < cost);
            let longest = denied_by.iter().map(|index| state(self, &budgets[*index]).1 - now_ms).max();
            let retry_after_ms = if never { None } else { longest };
            return CommandResult::NotReserved { denied_by, retry_after_ms, budgets: usages(self) };
        }
        if cost == 0 {
            return CommandResult::Reserved { receipt: None, budgets: usages(self) };
        }
        let mut charges = Vec::new();
        for budget in budgets {
            let (used, ends) = state(self, budget);
            let ends = if ends > now_ms { ends } else { now_ms + budget.period_ms };
            self.budgets.insert(budget.key, (used + cost, ends));
            charges.push((budget.key, ends));
        }
        // An id that the guard did not draw shows as a difference.
        let receipt = drawn.unwrap_or_else(|| ReceiptId::from_random([0; 16]));
        let expires_at_ms = charges[target].1;
        self.receipts.insert(receipt, Receipt { cost, charges, expires_at_ms, refunded: false });
        CommandResult::Reserved { receipt: Some(receipt), budgets: usages(self) }
    }

    fn refund(&mut self, id: &ReceiptId, now_ms: u64) -> CommandResult {
        let refused = |reason| CommandResult::Refund { refunded: false, reason: Some(reason) };
        let Some(receipt) = self.receipts.get_mut(id).filter(|receipt| receipt.expires_at_ms > now_ms) else {
            return refused(RefundReason::UnknownOrExpired);
        };
        if receipt.refunded {
            return refused(RefundReason::AlreadyRefunded);
        }
        receipt.refunded = true;
        for (key, charged_ends) in &receipt.charges {
            let budget = self.budgets.get_mut(key).filter(|row| row.1 == *charged_ends && row.1 > now_ms);
            if let Some((used, _)) = budget {
                *used = used.saturating_sub(receipt.cost);
            }
        }
        CommandResult::Refund { refunded: true, reason: None }
    }
}

/// The first number of ms for which `holds` is true, given that it then stays so.
fn first(holds: impl Fn(u64) -> bool) -> u64 {
    let (mut below, mut above) = (0, 1 << 20);
    assert!(holds(above), "no wait of the test is so long");
    while below < above {
        let middle = (below + above) / 2;
        if holds(middle) {
            above = middle;
        } else {
            below = middle + 1;
        }
    }
    above
}
