//! What a family may spend, and how it is shared.

use alloc::vec::Vec;

use super::Axis;

/// The whole, in basis points.
pub const BASIS_POINTS: u64 = 10_000;

/// A family's budget and its shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilyRules {
    /// Commands a UTC day.
    pub budget: u64,
    /// The part of it that is kept for known-good identities, in basis points.
    pub reserve_bp: u64,
    /// What one identity may spend of it a day, in basis points, in the order of [`Axis::ALL`].
    pub shares_bp: [u64; Axis::COUNT],
    /// What every request of the family must carry.
    pub requires: Vec<Axis>,
}

impl FamilyRules {
    /// A budget with the default shares, no reserve and no requirement.
    #[must_use]
    pub fn of_budget(budget: u64) -> Self {
        let shares_bp = Axis::ALL.map(Axis::default_share_bp);
        Self { budget, reserve_bp: 0, shares_bp, requires: Vec::new() }
    }

    /// The commands that only known-good identities may spend.
    #[must_use]
    pub fn reserve(&self) -> u64 {
        part(self.budget, self.reserve_bp)
    }

    /// The commands that everybody may spend.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.budget - self.reserve()
    }

    /// The commands that one identity may spend.
    #[must_use]
    pub fn allowance(&self, axis: Axis) -> u64 {
        part(self.budget, self.shares_bp[axis as usize])
    }

    /// Whether 80 % of the budget are spent.
    pub(super) fn is_nearly_spent(&self, used: u64) -> bool {
        u128::from(used) * 5 >= u128::from(self.budget) * 4
    }
}

fn part(whole: u64, basis_points: u64) -> u64 {
    let part = u128::from(whole) * u128::from(basis_points.min(BASIS_POINTS)) / u128::from(BASIS_POINTS);
    u64::try_from(part).expect("a part is no larger than the whole")
}
