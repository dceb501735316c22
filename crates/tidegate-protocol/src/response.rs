//! Answers: the results of a request's steps, or why there are none.

mod error;
mod result;

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};
use tidegate_core::window;

pub use error::{Axis, ErrorBody, ErrorCode, ErrorDetail, StopReason, retry_after_seconds};

use crate::{
    name::{OperationId, ReceiptId},
    word::{Word, word_in_json},
};

/// The answer to a request that was admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// The request's.
    pub op: OperationId,
    /// The store's clock, in ms since the epoch.
    pub now_ms: u64,
    /// Whether any step was denied.
    pub denied: bool,
    /// One for each of the request's.
    pub steps: Vec<StepResult>,
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepResult {
    /// In one word.
    pub status: Status,
    /// Whether the results are those of an earlier call with the same operation id; nothing changed now.
    pub replayed: bool,
    /// One for each command of a step that ran; none of a step that failed or was skipped.
    pub results: Vec<CommandResult>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StepError>,
}

/// What became of a step, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Everything was done.
    Ok,
    /// One of its windows or budgets had no room. Its other commands ran.
    Denied,
    /// A counter could not be counted. Nothing of the step was written.
    Failed,
    /// An earlier step of a sequential request was denied or failed.
    Skipped,
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepError {
    /// In one word.
    pub code: StepErrorCode,
    /// In a sentence.
    pub message: String,
    /// The index of the command at fault.
    pub command: usize,
}

/// Why a step failed, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepErrorCode {
    /// The record's value is no integer.
    NotAnInteger,
    /// The sum leaves ±(2^53 - 1).
    Overflow,
}

/// The result of a command; which one follows from the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandResult {
    /// Of `win.hit`.
    Hit {
        /// Whether the cost fitted into every window.
        allowed: bool,
        /// In the order of the command's.
        windows: Vec<Usage>,
        /// 0 when allowed; `None` if waiting can't help.
        retry_after_ms: Option<u64>,
    },
    /// Of `kv.get`.
    Get {
        /// `None` if there is no record.
        value: Option<String>,
        /// What is left of its life.
        ttl_ms: Option<u64>,
    },
    /// Of `kv.set`.
    Set {
        /// Whether it was.
        written: bool,
        /// The value that stands when a write was refused, if there is one.
        current: Option<String>,
    },
    /// Of `kv.del`.
    Delete {
        /// Whether there was a record.
        deleted: bool,
    },
    /// Of `kv.ttl`.
    Ttl {
        /// What is left of the record's life; `None` if there is no record.
        ttl_ms: Option<u64>,
    },
    /// Of `kv.expire`.
    Expire {
        /// Whether there was a record.
        updated: bool,
    },
    /// Of `kv.incr`.
    Increment {
        /// The sum.
        value: i64,
        /// What is left of the counter's life.
        ttl_ms: u64,
    },
    /// Of `res.reserve`, with room.
    Reserved {
        /// What gives it back; absent for a cost of 0, which takes nothing.
        receipt: Option<ReceiptId>,
        /// In the order of the command's.
        budgets: Vec<Usage>,
    },
    /// Of `res.reserve`, without.
    NotReserved {
        /// The indexes of the budgets that had none.
        denied_by: Vec<usize>,
        /// `None` if waiting can't help.
        retry_after_ms: Option<u64>,
        /// In the order of the command's.
        budgets: Vec<Usage>,
    },
    /// Of `res.refund`.
    Refund {
        /// Whether it was.
        refunded: bool,
        /// Why it wasn't.
        reason: Option<RefundReason>,
    },
}

/// Why nothing was refunded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefundReason {
    /// It was refunded before.
    AlreadyRefunded,
    /// There is no such receipt in the partition, or no longer.
    UnknownOrExpired,
}

/// How far a window or a budget is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The limit that was asked with.
    pub limit: u64,
    /// What is used of it.
    pub used: u64,
    /// What is left.
    pub remaining: u64,
    /// From now, in ms.
    pub reset_ms: u64,
}

impl Response {
    /// The JSON to answer with.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a response has string keys and plain values only")
    }

    /// Reads an answer. Fields that a later server may add are passed over.
    ///
    /// # Errors
    /// The bytes are no answer.
    pub fn from_json(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }
}

impl StepResult {
    /// A step that did not run.
    #[must_use]
    pub const fn skipped() -> Self {
        Self { status: Status::Skipped, replayed: false, results: Vec::new(), error: None }
    }
}

impl From<window::Usage> for Usage {
    fn from(usage: window::Usage) -> Self {
        let window::Usage { limit, used, remaining, reset_ms } = usage;
        Self { limit, used, remaining, reset_ms }
    }
}

impl CommandResult {
    /// Whether it denies its step.
    #[must_use]
    pub const fn is_denial(&self) -> bool {
        matches!(self, Self::Hit { allowed: false, .. } | Self::NotReserved { .. })
    }
}

impl Word for Status {
    const WHAT: &'static str = "a status";
    const NAMES: &'static [(&'static str, Self)] =
        &[("ok", Self::Ok), ("denied", Self::Denied), ("failed", Self::Failed), ("skipped", Self::Skipped)];
}

impl Word for StepErrorCode {
    const WHAT: &'static str = "an error of a step";
    const NAMES: &'static [(&'static str, Self)] =
        &[("not_an_integer", Self::NotAnInteger), ("overflow", Self::Overflow)];
}

impl Word for RefundReason {
    const WHAT: &'static str = "a reason";
    const NAMES: &'static [(&'static str, Self)] =
        &[("already_refunded", Self::AlreadyRefunded), ("unknown_or_expired", Self::UnknownOrExpired)];
}

word_in_json!(Status, StepErrorCode, RefundReason);

#[cfg(test)]
mod tests;
