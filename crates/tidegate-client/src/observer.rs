//! Hooks: what the limits decided, without saying about whom.

use std::time::Duration;

use crate::{Family, Reason, RefusalCode};

/// Is told of every decision of a ready-made limit. Meant for metrics, so it must be quick.
pub trait Observer: Send + Sync {
    /// A limit has decided.
    fn decided(&self, event: &Event<'_>);
}

/// A decision. Nothing in it names a caller, and none of its fields takes more values than there are limits.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// `route`, `bulk_read`, `replay` or `attempt`.
    pub limit: &'static str,
    /// The limit's scope.
    pub scope: &'a str,
    /// The limit's family.
    pub family: Family,
    /// What it decided.
    pub outcome: Outcome,
    /// Where that was known.
    pub decided_by: DecidedBy,
    /// Whether a refusal was only told, here, and the request went on.
    pub observed_only: bool,
    /// Why the guard store gave no answer, if it was asked and gave none.
    pub unavailable: Option<Reason>,
    /// How long it took.
    pub elapsed: Duration,
}

/// What a limit decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The request goes on.
    Allowed,
    /// It goes on although its token was used just now.
    Grace,
    /// It is refused.
    Refused(RefusalCode),
}

/// Where a decision was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecidedBy {
    /// In the guard store.
    Store,
    /// From what this instance remembers of it.
    Memory,
    /// By this instance alone.
    Instance,
    /// On the legacy path.
    Legacy,
    /// Nowhere: the family is not assigned, and there is no legacy path.
    Nobody,
}

impl Outcome {
    /// In one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Grace => "grace",
            Self::Refused(code) => code.as_str(),
        }
    }
}

impl DecidedBy {
    /// In one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Memory => "memory",
            Self::Instance => "instance",
            Self::Legacy => "legacy",
            Self::Nobody => "none",
        }
    }
}
