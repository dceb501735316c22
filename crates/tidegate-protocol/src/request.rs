//! A request: what it may say, how it is read, checked and written.
//!
//! [`Request::parse`] is the only way from bytes to a request, and it takes verified bytes alone. What it
//! gives is within every bound of [`crate::bounds`], so nobody behind it checks again.
//!
//! ```
//! use tidegate_core::secret::Secret;
//! use tidegate_protocol::{
//!     Command, Request, Verified,
//!     identity::{Pepper, Purpose, digest},
//!     name::{Family, OperationId},
//!     request::Window,
//! };
//!
//! let pepper = Pepper::new(&Secret::new("pepper-for-examples-0123456789abcdef")?);
//! let login = digest(&pepper, Purpose::Partition, "login:alice@example.com");
//! let minute = digest(&pepper, Purpose::Key, "1m");
//!
//! # let random = [7; 16];
//! let request = Request::new(OperationId::from_random(random), Family::parse("password")?)
//!     .step(login, [Command::hit([Window::sliding(minute, 5, 60_000)])]);
//! let json = request.to_json()?;
//! assert_eq!(Request::parse(Verified::trusted(&json))?, request);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod build;
mod check;
mod fingerprint;
mod parse;
mod wire;
mod words;

use alloc::{string::String, vec::Vec};
use core::fmt;

pub(crate) use parse::read_json;
use serde::Serialize;
use thiserror::Error;
pub use tidegate_core::{record::SetMode, window::Algorithm};

use crate::{
    identity::Digest,
    name::{Family, OperationId, ReceiptId},
    word,
};

/// One call: steps that are admitted together and run one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Request {
    /// Fresh and random for each logical call; the same again is a replay.
    pub op: OperationId,
    /// Which family's budget it spends.
    pub family: Family,
    /// What a denied step means for the next ones. Sequential if absent.
    #[serde(skip_serializing_if = "is_default")]
    pub mode: Mode,
    /// The caller vouches that this source and principal have just succeeded. False if absent.
    #[serde(skip_serializing_if = "is_default")]
    pub good: bool,
    /// Whom the call is charged to.
    #[serde(skip_serializing_if = "is_default")]
    pub fairness: Fairness,
    /// 1 to 16.
    pub steps: Vec<Step>,
}

/// What a denied or failed step means for the next ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// They are skipped.
    #[default]
    Sequential,
    /// Nothing: all steps run.
    Independent,
}

/// The identities that a call is charged to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Fairness {
    /// The caller's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Digest>,
    /// The networks around it, each prefix once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<Network>,
    /// The user, account or token's owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Digest>,
}

/// A network that the caller's address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Network {
    /// 24 (IPv4), 56 or 48 (IPv6).
    pub prefix: u8,
    /// Of its canonical text.
    pub digest: Digest,
}

/// One atomic transaction on one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Whose rows they are.
    pub partition: Digest,
    /// 1 to 8, all of which run.
    pub commands: Vec<Command>,
}

/// What to do with the rows of a partition. Rows of different kinds never collide, even under one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "cmd")]
pub enum Command {
    /// Charges all windows or none.
    #[serde(rename = "win.hit")]
    Hit {
        /// 1 to 4, keys distinct.
        windows: Vec<Window>,
        /// 1 if absent; 0 asks without charging.
        cost: u64,
    },
    /// Reads a record.
    #[serde(rename = "kv.get")]
    Get {
        /// Its key.
        key: Digest,
    },
    /// Writes a record.
    #[serde(rename = "kv.set")]
    Set {
        /// Its key.
        key: Digest,
        /// At most 2 KiB.
        value: String,
        /// Its life from now. Needed unless `keep_ttl` goes with `xx`.
        #[serde(skip_serializing_if = "Option::is_none")]
        ttl_ms: Option<u64>,
        /// Always if absent.
        #[serde(serialize_with = "word::serialize", skip_serializing_if = "is_default")]
        mode: SetMode,
        /// Keep the live expiry. False if absent.
        #[serde(skip_serializing_if = "is_default")]
        keep_ttl: bool,
    },
    /// Removes a record.
    #[serde(rename = "kv.del")]
    Delete {
        /// Its key.
        key: Digest,
    },
    /// Asks how long a record still lives.
    #[serde(rename = "kv.ttl")]
    Ttl {
        /// Its key.
        key: Digest,
    },
    /// Gives a record a new life.
    #[serde(rename = "kv.expire")]
    Expire {
        /// Its key.
        key: Digest,
        /// From now.
        ttl_ms: u64,
    },
    /// Adds to a counter.
    #[serde(rename = "kv.incr")]
    Increment {
        /// Its key.
        key: Digest,
        /// 1 if absent; may be negative.
        by: i64,
        /// Of a new counter; one that lives keeps its expiry.
        ttl_ms: u64,
    },
    /// Takes a cost from all budgets or from none, against a receipt.
    #[serde(rename = "res.reserve")]
    Reserve {
        /// 1 to 4, keys distinct.
        budgets: Vec<Budget>,
        /// The index of the budget that the receipt expires with. In JSON its index or its key; the last
        /// one if absent.
        target: usize,
        /// 1 if absent; 0 asks without reserving, and gives no receipt.
        cost: u64,
    },
    /// Gives a reservation back, at most once.
    #[serde(rename = "res.refund")]
    Refund {
        /// What [`Command::Reserve`] gave.
        receipt: ReceiptId,
    },
}

/// A rate window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Its key.
    pub key: Digest,
    /// 0 admits nothing.
    pub limit: u64,
    /// 1 s to 120 days; a sliding window's to 60 days.
    pub period_ms: u64,
    /// Sliding if absent.
    #[serde(serialize_with = "word::serialize")]
    pub algorithm: Algorithm,
}

/// A budget of attempts, whose window begins at its first reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Budget {
    /// Its key.
    pub key: Digest,
    /// 0 admits nothing.
    pub limit: u64,
    /// 1 s to 120 days.
    pub period_ms: u64,
}

/// Why a request is refused: 400, and nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct BadRequest {
    /// Where, as in `steps[2].commands[0].windows[1].limit`; empty for the request as a whole.
    pub place: String,
    /// What must be otherwise. No value that was sent is repeated.
    pub message: String,
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.place.is_empty() { "" } else { ": " };
        write!(f, "{}{separator}{}", self.place, self.message)
    }
}

impl Request {
    /// How many commands it spends.
    #[must_use]
    pub fn commands(&self) -> usize {
        self.steps.iter().map(|step| step.commands.len()).sum()
    }
}

impl Step {
    /// Whether it may change anything.
    #[must_use]
    pub fn is_mutating(&self) -> bool {
        self.commands.iter().any(is_mutating)
    }
}

/// Whether `command` may change anything. Reads don't, nor does a charge or a reservation of 0.
#[must_use]
pub fn is_mutating(command: &Command) -> bool {
    match command {
        Command::Get { .. } | Command::Ttl { .. } => false,
        Command::Hit { cost, .. } | Command::Reserve { cost, .. } => *cost > 0,
        Command::Set { .. }
        | Command::Delete { .. }
        | Command::Expire { .. }
        | Command::Increment { .. }
        | Command::Refund { .. } => true,
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests;
