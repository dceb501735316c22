//! Refusals of a whole request: their codes, their HTTP status, their JSON.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

pub use tidegate_core::admission::Axis;

use crate::word::{self, Word, word_in_json};

/// The body of every answer that is not a 200.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The one thing in it.
    pub error: ErrorDetail,
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDetail {
    /// In one word.
    pub code: ErrorCode,
    /// Which kind of stop, for [`ErrorCode::GuardStopped`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<StopReason>,
    /// Whose quota is spent, for [`ErrorCode::GuardLimited`].
    #[serde(default, with = "word::optional", skip_serializing_if = "Option::is_none")]
    pub axis: Option<Axis>,
    /// In a sentence.
    pub message: String,
    /// How long to wait, where waiting helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// Why a request was refused, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Malformed or out of bounds.
    BadRequest,
    /// The signature.
    Unauthenticated,
    /// A known operation id with other commands.
    OperationConflict,
    /// Over 16 KiB, with or without Content-Length.
    BodyTooLarge,
    /// An identity's quota is spent.
    GuardLimited,
    /// By an operator, or for want of budget.
    GuardStopped,
    /// The configuration is invalid, or the store can't answer.
    GuardUnavailable,
}

/// What stopped the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// An operator did.
    OperatorStop,
    /// The family's budget is spent; it is stopped until the next UTC day or an operator's resume.
    BudgetExhausted,
    /// The request is larger than what is left of the family's budget; the family is not stopped.
    BudgetInsufficient,
}

impl ErrorCode {
    /// The HTTP status that goes with it.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthenticated => 401,
            Self::OperationConflict => 409,
            Self::BodyTooLarge => 413,
            Self::GuardLimited => 429,
            Self::GuardStopped | Self::GuardUnavailable => 503,
        }
    }

    /// Its name, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        word::name(&self)
    }
}

impl StopReason {
    /// Its name, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        word::name(&self)
    }
}

impl ErrorBody {
    /// A refusal that waiting does not help.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { error: ErrorDetail { code, reason: None, axis: None, message, retry_after_ms: None } }
    }

    /// Reads a refusal. Fields that a later server may add are passed over.
    ///
    /// # Errors
    /// The bytes are no refusal.
    pub fn from_json(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    /// The JSON to answer with.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an error has string keys and plain values only")
    }
}

/// The value of a `Retry-After` header: whole seconds, rounded up, never 0.
#[must_use]
pub const fn retry_after_seconds(retry_after_ms: u64) -> u64 {
    let seconds = retry_after_ms.div_ceil(1000);
    if seconds == 0 { 1 } else { seconds }
}

impl Word for ErrorCode {
    const WHAT: &'static str = "an error code";
    const NAMES: &'static [(&'static str, Self)] = &[
        ("bad_request", Self::BadRequest),
        ("unauthenticated", Self::Unauthenticated),
        ("operation_conflict", Self::OperationConflict),
        ("body_too_large", Self::BodyTooLarge),
        ("guard_limited", Self::GuardLimited),
        ("guard_stopped", Self::GuardStopped),
        ("guard_unavailable", Self::GuardUnavailable),
    ];
}

impl Word for StopReason {
    const WHAT: &'static str = "a reason to stop";
    const NAMES: &'static [(&'static str, Self)] = &[
        ("operator_stop", Self::OperatorStop),
        ("budget_exhausted", Self::BudgetExhausted),
        ("budget_insufficient", Self::BudgetInsufficient),
    ];
}

impl Word for Axis {
    const WHAT: &'static str = "an axis";
    const NAMES: &'static [(&'static str, Self)] = &[
        (Self::Source.as_str(), Self::Source),
        (Self::Network24.as_str(), Self::Network24),
        (Self::Network56.as_str(), Self::Network56),
        (Self::Network48.as_str(), Self::Network48),
        (Self::Principal.as_str(), Self::Principal),
    ];
}

word_in_json!(ErrorCode, StopReason);
