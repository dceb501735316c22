//! Operation records: what a mutating step answered, kept so that a retry never changes anything twice.
//!
//! A record holds the step's fingerprint and its results in a compact form. What a result repeats of its
//! command (a limit, say) is taken from the command again: a fingerprint that matches says that the commands
//! are the same, in whatever order and spacing their JSON came.

use tidegate_core::codec::{DecodeError, Reader, put_text, put_varint};
use tidegate_protocol::{
    name::ReceiptId,
    request::{Command, Step},
    response::{CommandResult, RefundReason, Status, StepResult, Usage},
};

/// See [`Step::fingerprint`].
pub(crate) type Fingerprint = [u8; 32];

/// Why a record does not answer a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordFault {
    /// The operation id was used with other commands.
    OtherCommands,
    /// The bytes make no sense.
    Unreadable,
}

/// The record of a step that ran.
pub(crate) fn encode(fingerprint: &Fingerprint, result: &StepResult) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.push(VERSION);
    out.extend_from_slice(fingerprint);
    out.push(u8::from(result.status == Status::Denied));
    for result in &result.results {
        put_result(&mut out, result);
    }
    out
}

/// What the step answered, from its record.
pub(crate) fn decode(
    record: &[u8],
    fingerprint: &Fingerprint,
    step: &Step,
) -> Result<StepResult, RecordFault> {
    let mut reader = Reader::new(record);
    if reader.byte()? != VERSION {
        return Err(RecordFault::Unreadable);
    }
    if reader.array::<32>()? != *fingerprint {
        return Err(RecordFault::OtherCommands);
    }
    let status = if take_bool(&mut reader)? { Status::Denied } else { Status::Ok };
    let results =
        step.commands.iter().map(|command| take_result(&mut reader, command)).collect::<Result<_, _>>()?;
    reader.end()?;
    Ok(StepResult { status, replayed: true, results, error: None })
}

const VERSION: u8 = 1;

impl From<DecodeError> for RecordFault {
    fn from(_: DecodeError) -> Self {
        Self::Unreadable
    }
}

fn put_result(out: &mut Vec<u8>, result: &CommandResult) {
    match result {
        CommandResult::Hit { allowed, windows, retry_after_ms } => {
            out.push(u8::from(*allowed));
            put_usages(out, windows);
            put_optional(out, *retry_after_ms);
        }
        CommandResult::Get { value, ttl_ms } => {
            put_text(out, value.as_deref());
            put_optional(out, *ttl_ms);
        }
        CommandResult::Set { written, current } => {
            out.push(u8::from(*written));
            put_text(out, current.as_deref());
        }
        CommandResult::Delete { deleted: done } | CommandResult::Expire { updated: done } => {
            out.push(u8::from(*done));
        }
        CommandResult::Ttl { ttl_ms } => put_optional(out, *ttl_ms),
        CommandResult::Increment { value, ttl_ms } => {
            put_varint(out, zigzag(*value));
            put_varint(out, *ttl_ms);
        }
        CommandResult::Reserved { receipt, budgets } => {
            out.push(1);
            put_text(out, receipt.as_ref().map(ReceiptId::as_str));
            put_usages(out, budgets);
        }
        CommandResult::NotReserved { denied_by, retry_after_ms, budgets } => {
            out.push(0);
            put_varint(out, denied_by.iter().fold(0, |bits, index| bits | 1 << index));
            put_optional(out, *retry_after_ms);
            put_usages(out, budgets);
        }
        CommandResult::Refund { refunded, reason } => {
            out.push(u8::from(*refunded));
            out.push(u8::from(*reason == Some(RefundReason::AlreadyRefunded)));
        }
    }
}

fn take_result(reader: &mut Reader<'_>, command: &Command) -> Result<CommandResult, RecordFault> {
    Ok(match command {
        Command::Hit { windows, .. } => CommandResult::Hit {
            allowed: take_bool(reader)?,
            windows: take_usages(reader, windows.iter().map(|window| window.limit))?,
            retry_after_ms: take_optional(reader)?,
        },
        Command::Get { .. } => {
            CommandResult::Get { value: reader.text(usize::MAX)?, ttl_ms: take_optional(reader)? }
        }
        Command::Set { .. } => {
            CommandResult::Set { written: take_bool(reader)?, current: reader.text(usize::MAX)? }
        }
        Command::Delete { .. } => CommandResult::Delete { deleted: take_bool(reader)? },
        Command::Expire { .. } => CommandResult::Expire { updated: take_bool(reader)? },
        Command::Ttl { .. } => CommandResult::Ttl { ttl_ms: take_optional(reader)? },
        Command::Increment { .. } => {
            CommandResult::Increment { value: unzigzag(reader.varint()?), ttl_ms: reader.varint()? }
        }
        Command::Reserve { budgets, .. } => {
            let limits = budgets.iter().map(|budget| budget.limit);
            if take_bool(reader)? {
                let receipt = reader.text(usize::MAX)?.map(|id| ReceiptId::parse(&id)).transpose();
                let receipt = receipt.map_err(|_| RecordFault::Unreadable)?;
                CommandResult::Reserved { receipt, budgets: take_usages(reader, limits)? }
            } else {
                let bits = reader.varint()?;
                CommandResult::NotReserved {
                    denied_by: (0..budgets.len()).filter(|index| bits >> index & 1 == 1).collect(),
                    retry_after_ms: take_optional(reader)?,
                    budgets: take_usages(reader, limits)?,
                }
            }
        }
        Command::Refund { .. } => {
            let (refunded, already) = (take_bool(reader)?, take_bool(reader)?);
            let reason = if already { RefundReason::AlreadyRefunded } else { RefundReason::UnknownOrExpired };
            CommandResult::Refund { refunded, reason: (!refunded).then_some(reason) }
        }
    })
}

fn put_usages(out: &mut Vec<u8>, usages: &[Usage]) {
    for usage in usages {
        put_varint(out, usage.used);
        put_varint(out, usage.reset_ms);
    }
}

fn take_usages(
    reader: &mut Reader<'_>,
    limits: impl Iterator<Item = u64>,
) -> Result<Vec<Usage>, RecordFault> {
    limits
        .map(|limit| {
            let (used, reset_ms) = (reader.varint()?, reader.varint()?);
            Ok(Usage { limit, used, remaining: limit.saturating_sub(used), reset_ms })
        })
        .collect()
}

/// One more than the number, 0 for none.
fn put_optional(out: &mut Vec<u8>, number: Option<u64>) {
    put_varint(out, number.map_or(0, |number| number.saturating_add(1)));
}

fn take_optional(reader: &mut Reader<'_>) -> Result<Option<u64>, RecordFault> {
    Ok(reader.varint()?.checked_sub(1))
}

fn take_bool(reader: &mut Reader<'_>) -> Result<bool, RecordFault> {
    match reader.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(RecordFault::Unreadable),
    }
}

/// Small numbers of either sign become small ones without.
const fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

#[cfg(test)]
mod tests;
