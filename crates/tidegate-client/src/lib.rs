//! A client of the guard store: signed HTTP, a Unix socket, or the guard in the same process; the ready-made
//! limits that applications call; and the operator's calls: [`control`].
//!
//! A client never retries. Every failure is a [`GuardUnavailable`] that says why. A [`GuardClient`] leaves it
//! to its caller what that means; the ready-made limits ([`RouteLimiter`], [`BulkReadGuard`], [`ReplayFence`],
//! [`AttemptLimiter`]) know what it means for what they protect. Identities are hashed here, so that none
//! reaches the server.

mod client;
pub mod control;
mod error;
mod fairness;
mod http;
mod layer;
mod limits;
mod memory;
mod observer;
#[cfg(feature = "redis")]
pub mod redis;
mod refusal;
mod selection;
mod timestamp;
mod windows;

pub use client::{
    CALLS_MAX, GuardClient, RawAnswer, TIMEOUT_DEFAULT, TIMEOUT_MAX, TIMEOUT_MIN, operation_id,
};
pub use error::{Cause, ConfigurationFault, GuardUnavailable, Reason};
pub use fairness::{Caller, GuardView, Networks};
pub use layer::{RouteLimitLayer, RouteLimited};
pub use limits::{
    Attempt, AttemptBudget, AttemptLimiter, BULK_READS_A_DAY, BulkRead, BulkReadGuard, BulkReadLimits,
    InvalidLimit, LegacyAttempt, LegacyError, LegacyRead, LegacyRefund, LegacyRoute, LegacyToken, Pending,
    ReplayFence, RouteLimiter, Token, TokenUse,
};
pub use memory::ENTRIES_MAX;
pub use observer::{DecidedBy, Event, Observer, Outcome};
pub use refusal::{Refusal, RefusalCode, UNAVAILABLE_RETRY_MS, Verdict, WindowState};
pub use selection::{Backend, Family, Selection};
pub use windows::WindowLimit;

#[cfg(test)]
mod log;
#[cfg(test)]
mod vectors;
