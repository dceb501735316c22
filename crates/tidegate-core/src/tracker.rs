//! Fixed-window budgets and concurrency ceilings by key: what admission decides with.
//!
//! A key is one identity in one dimension: one source prefix, one tenant. It has one row, which counts what was
//! spent in the present window and how many leases are held. The row goes when the window ends and no lease is
//! left. Whoever calls hands in the number of the window, and holds the lock.

mod line;
mod places;
mod row;
mod table;

pub use places::Place;
pub use row::{Cause, Limit, Row, Share, Work};
pub use table::{Key, Table};

/// Windows of one length, laid end to end from time zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    length_ms: u64,
}

impl Windows {
    /// Windows of `length_ms`; a length of zero counts as one ms.
    #[must_use]
    pub const fn new(length_ms: u64) -> Self {
        Self { length_ms: if length_ms == 0 { 1 } else { length_ms } }
    }

    /// The number of the window that `now_ms` lies in.
    #[must_use]
    pub const fn number(self, now_ms: u64) -> u64 {
        now_ms / self.length_ms
    }

    /// Milliseconds from `now_ms` to the next window's start: one to the window's length.
    #[must_use]
    pub const fn left_ms(self, now_ms: u64) -> u64 {
        self.length_ms - now_ms % self.length_ms
    }
}

#[cfg(test)]
mod tests;
