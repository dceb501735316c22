//! One key's counts, and what they may come to.

/// The most that one key may have, for all work and for optional work within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Requests or datagrams of one window.
    pub spent: Share,
    /// Leases held at the same time.
    pub active: Share,
}

/// A number for all work, and a number for the optional work among it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Critical and optional work together.
    pub all: u32,
    /// Optional work alone. Where it may be less than `all`, the rest is kept for critical work.
    pub optional: u32,
}

/// Whether work is given up first when there is too much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// It spends the share of optional work too.
    Optional,
    /// It may spend all there is.
    Critical,
}

/// Why a row admits no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The window's budget is spent.
    Rate,
    /// As many leases are held as may be.
    Concurrency,
    /// No row is left for a new key.
    TrackedKeys,
}

/// The counts of one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Row {
    pub(super) spent: Share,
    pub(super) active: Share,
}

impl Limit {
    /// The same numbers for optional work as for all.
    #[must_use]
    pub const fn even(spent: u32, active: u32) -> Self {
        Self { spent: Share::even(spent), active: Share::even(active) }
    }

    /// A budget without leases.
    #[must_use]
    pub const fn rate(spent: u32) -> Self {
        Self::even(spent, u32::MAX)
    }
}

impl Share {
    /// The same number for optional work as for all.
    #[must_use]
    pub const fn even(all: u32) -> Self {
        Self { all, optional: all }
    }

    const fn has_room(self, limit: Self, work: Work) -> bool {
        // Both are looked at, since what the work is nobody foresees.
        (self.all < limit.all) & (matches!(work, Work::Critical) | (self.optional < limit.optional))
    }

    const fn add(&mut self, work: Work) {
        self.all = self.all.saturating_add(1);
        self.optional = self.optional.saturating_add(matches!(work, Work::Optional) as u32);
    }

    const fn take(&mut self, work: Work) {
        self.all = self.all.saturating_sub(1);
        self.optional = self.optional.saturating_sub(matches!(work, Work::Optional) as u32);
    }
}

impl Row {
    /// What a row counts that isn't there: nothing.
    pub const UNUSED: Self =
        Self { spent: Share { all: 0, optional: 0 }, active: Share { all: 0, optional: 0 } };

    /// Why one more piece of such work doesn't fit; `None` if it does.
    #[must_use]
    pub const fn refusal(&self, limit: &Limit, work: Work) -> Option<Cause> {
        if !self.spent.has_room(limit.spent, work) {
            Some(Cause::Rate)
        } else if !self.active.has_room(limit.active, work) {
            Some(Cause::Concurrency)
        } else {
            None
        }
    }

    /// Spends one, and holds a lease if the work is `leased`.
    pub const fn charge(&mut self, work: Work, leased: bool) {
        self.spent.add(work);
        if leased {
            self.active.add(work);
        }
    }

    /// Ends one lease of such work.
    pub const fn release(&mut self, work: Work) {
        self.active.take(work);
    }

    /// Begins the next window: nothing is spent, leases are still held.
    pub const fn clear_window(&mut self) {
        self.spent = Share { all: 0, optional: 0 };
    }

    /// Whether leases are held.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.active.all > 0
    }

    /// Whether it says no more than a row that isn't there.
    #[must_use]
    pub const fn is_unused(&self) -> bool {
        self.spent.all == 0 && self.active.all == 0
    }

    /// Leases held now.
    #[must_use]
    pub const fn active(&self) -> u32 {
        self.active.all
    }
}
