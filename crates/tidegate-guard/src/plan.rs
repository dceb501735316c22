//! Which rows a request needs, before any of them is read.

use smallvec::SmallVec;
use tidegate_core::{reservation::Receipt, window::Algorithm};
use tidegate_protocol::{
    bounds::VALUE_BYTES_MAX,
    identity::Digest,
    name::{OperationId, ReceiptId},
    request::{Command, Request, SetMode, Step},
};
use tidegate_store::{Group, Key, Member, Scope, VALUE_BYTES_MAX as ROW_BYTES_MAX};

use crate::{
    admission::{AdmissionPlan, How},
    families::FamilyEntry,
};

/// The rows of a request: every key once, and where each step finds its own.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) keys: Vec<Key>,
    /// Rows that are only looked at; their places come after those of `keys`.
    pub(crate) watched: SmallVec<[Key; 2]>,
    pub(crate) steps: SmallVec<[StepPlan; 2]>,
    pub(crate) admission: AdmissionPlan,
}

/// The rows of one step, as places in [`Plan::keys`].
#[derive(Debug)]
pub(crate) struct StepPlan {
    /// The rows of its operation record. A step that can't change anything leaves none, but looks whether
    /// another one did under its operation id.
    pub(crate) record: SmallVec<[usize; 1]>,
    /// The rows of each command, in the command's own order.
    pub(crate) commands: SmallVec<[SmallVec<[usize; 2]>; 2]>,
}

/// A receipt that a refund names: where it is kept, and what it said when it was looked up.
#[derive(Debug)]
pub(crate) struct KnownReceipt {
    pub(crate) key: Key,
    pub(crate) receipt: Option<Receipt>,
}

impl Plan {
    /// The plan of `request`. `known` are the receipts that its refunds name, `drawn` the ids for those that
    /// its reservations may give out, each in order. `how` it is to be admitted.
    pub(crate) fn of(
        request: &Request,
        known: &[KnownReceipt],
        drawn: &[ReceiptId],
        family: &FamilyEntry,
        how: &How,
    ) -> Self {
        let mut keys = Keys::default();
        let (mut known, mut drawn) = (known.iter(), drawn.iter());
        let steps = (0..).zip(&request.steps).map(|(index, step)| {
            let rows = Rows::of(&step.partition);
            let commands = step
                .commands
                .iter()
                .map(|command| match command {
                    Command::Refund { .. } => {
                        known.next().map_or_else(SmallVec::new, |known| keys.refund(known))
                    }
                    Command::Reserve { .. } => {
                        let receipt = drawn.next().map(|id| rows.key(RECEIPT, &[id.as_str().as_bytes()]));
                        rows.of_command(command)
                            .into_iter()
                            .chain(receipt)
                            .map(|key| keys.place(key))
                            .collect()
                    }
                    _ => rows.of_command(command).into_iter().map(|key| keys.place(key)).collect(),
                })
                .collect();
            let record =
                rows.of_record(request.op, index, step).into_iter().map(|key| keys.place(key)).collect();
            StepPlan { record, commands }
        });
        let steps = steps.collect();
        let admission = AdmissionPlan::of(request, family, how, &mut keys);
        let watched = admission.watched(family, how);
        Self { keys: keys.0, watched, steps, admission }
    }
}

/// The key of the receipt called `id` in a partition.
pub(crate) fn receipt_key(partition: &Digest, id: &ReceiptId) -> Key {
    Rows::of(partition).key(RECEIPT, &[id.as_str().as_bytes()])
}

/// What an operator may forget: everything of a partition, or of one key of it.
pub(crate) fn scope(partition: &Digest, key: Option<&Digest>) -> Scope {
    let member = key.map(|key| Member::of(key.as_bytes()));
    Scope { group: Group::of(partition.as_bytes()), member }
}

/// How many rows an operation record of this step may fill.
pub(crate) fn record_rows(step: &Step) -> usize {
    let bytes: usize = step.commands.iter().map(result_bytes_max).sum();
    (RECORD_HEAD_BYTES + bytes).div_ceil(ROW_BYTES_MAX)
}

/// Names what a row holds, so that rows of different kinds never collide, even under one key.
const WINDOW: &[u8] = b"window";
const RECORD: &[u8] = b"record";
const BUDGET: &[u8] = b"budget";
const RECEIPT: &[u8] = b"receipt";
const OPERATION: &[u8] = b"operation";

/// Version, fingerprint, status and lengths of an operation record.
const RECORD_HEAD_BYTES: usize = 64;

/// The most that the result of a command takes in an operation record.
fn result_bytes_max(command: &Command) -> usize {
    match command {
        Command::Get { .. } => VALUE_BYTES_MAX + 16,
        Command::Set { mode: SetMode::Nx | SetMode::Xx, .. } => VALUE_BYTES_MAX + 16,
        _ => 128,
    }
}

/// The names of a partition's rows.
struct Rows<'a> {
    partition: &'a [u8],
    group: Group,
}

impl<'a> Rows<'a> {
    fn of(partition: &'a Digest) -> Self {
        let partition = partition.as_bytes();
        Self { partition, group: Group::of(partition) }
    }

    /// A row of the partition as a whole.
    fn key(&self, kind: &[u8], parts: &[&[u8]]) -> Key {
        self.group.key(&self.name(kind, parts))
    }

    /// A row of one key of the partition, so that it can be forgotten with the others of that key.
    fn key_of(&self, key: &'a Digest, kind: &'a [u8], parts: &[&'a [u8]]) -> Key {
        let mut name = self.name(kind, parts);
        name.push(key.as_bytes());
        self.group.key_of(Member::of(key.as_bytes()), &name)
    }

    fn name<'b>(&'b self, kind: &'b [u8], parts: &[&'b [u8]]) -> SmallVec<[&'b [u8]; 6]> {
        let mut name = SmallVec::from_slice(&[self.partition, kind]);
        name.extend_from_slice(parts);
        name
    }

    fn of_command(&self, command: &Command) -> SmallVec<[Key; 2]> {
        match command {
            Command::Hit { windows, .. } => windows
                .iter()
                .map(|window| {
                    // The algorithm and the period are part of the row's name: a rule whose period or
                    // algorithm is changed counts anew, and two rules that differ in them never share a
                    // count, also while old and new instances run side by side.
                    let algorithm = match window.algorithm {
                        Algorithm::Sliding => b"sliding".as_slice(),
                        Algorithm::Fixed => b"fixed",
                        Algorithm::Bucket => b"bucket",
                    };
                    let period = window.period_ms.to_le_bytes();
                    self.key_of(&window.key, WINDOW, &[algorithm, &period])
                })
                .collect(),
            Command::Get { key }
            | Command::Set { key, .. }
            | Command::Delete { key }
            | Command::Ttl { key }
            | Command::Expire { key, .. }
            | Command::Increment { key, .. } => SmallVec::from_slice(&[self.key_of(key, RECORD, &[])]),
            Command::Reserve { budgets, .. } => {
                budgets.iter().map(|budget| self.key_of(&budget.key, BUDGET, &[])).collect()
            }
            Command::Refund { .. } => SmallVec::new(),
        }
    }

    fn of_record(&self, op: OperationId, index: u8, step: &Step) -> SmallVec<[Key; 1]> {
        let rows = if step.is_mutating() { record_rows(step) } else { 1 };
        let rows = u8::try_from(rows).expect("eight commands of 2 KiB fit in a few rows of 4 KiB");
        (0..rows).map(|row| self.key(OPERATION, &[op.as_str().as_bytes(), &[index, row]])).collect()
    }
}

/// Keys in the order in which they were first named.
#[derive(Default)]
pub(crate) struct Keys(Vec<Key>);

impl Keys {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn place(&mut self, key: Key) -> usize {
        // A request names few rows, and nearly always distinct ones: looking along them is the fastest.
        self.0.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.0.push(key);
            self.0.len() - 1
        })
    }

    /// The receipt's row, then those of the budgets that it charged.
    fn refund(&mut self, known: &KnownReceipt) -> SmallVec<[usize; 2]> {
        let charged = known.receipt.iter().flat_map(|receipt| receipt.charges.iter().map(|charge| charge.0));
        std::iter::once(known.key).chain(charged).map(|key| self.place(key)).collect()
    }
}

#[cfg(test)]
mod tests;
