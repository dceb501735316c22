//! What a request is for, and how it fares when there is too much.

use tidegate_core::tracker::Work;

use crate::{metrics::Stage, tracker::Decision};

/// What a request is for, as far as its head tells. Operations of one class and number share a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    class: Class,
    number: u8,
}

/// How an operation fares when there is too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Critical,
    Optional,
    Health,
}

impl Operation {
    /// Renewing, updating or deleting what the caller holds: it goes on while optional work is shed.
    #[must_use]
    pub const fn critical(number: u8) -> Self {
        Self { class: Class::Critical, number }
    }

    /// Anything else: it is shed first.
    #[must_use]
    pub const fn optional(number: u8) -> Self {
        Self { class: Class::Optional, number }
    }

    /// An orchestrator's probe: it has budgets of its own, whatever else goes on. Give it to the exact path and
    /// method of the probe alone.
    #[must_use]
    pub const fn health() -> Self {
        Self { class: Class::Health, number: 0 }
    }

    /// Places of operations, whatever their class and number.
    pub(crate) const PLACES: usize = 3 * NUMBERS;

    /// Where its budget lies.
    pub(crate) const fn place(self) -> usize {
        self.class as usize * NUMBERS + self.number as usize
    }

    pub(crate) const fn class(self) -> Class {
        self.class
    }

    pub(crate) const fn work(self) -> Work {
        match self.class {
            Class::Optional => Work::Optional,
            Class::Critical | Class::Health => Work::Critical,
        }
    }

    /// A decision of its kind, that charges nothing yet.
    pub(crate) const fn decision(self, stage: Stage) -> Decision<'static> {
        Decision { leased: true, ..Decision::of(stage, self.work()) }
    }
}

/// Of an operation: a byte.
const NUMBERS: usize = 1 + u8::MAX as usize;
