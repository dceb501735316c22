//! Giving a reservation back.

use smallvec::SmallVec;

use super::{Budget, INLINE, Receipt, live};

/// The answer to a refund.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "an answer is taken apart at once; an allocation costs more")]
pub enum Refund {
    /// It is given back.
    Refunded {
        /// The receipt to write, with the expiry it has.
        receipt: Receipt,
        /// The budgets to write, each with its window's end as expiry, in the order of the receipt's
        /// charges; `None` where the charged window has ended, which is left alone.
        budgets: SmallVec<[Option<Budget>; INLINE]>,
    },
    /// It was given back before; nothing changes.
    AlreadyRefunded,
    /// There is no such receipt, or no longer; nothing changes.
    UnknownOrExpired,
}

/// Gives back what `receipt` says was taken: `budgets` are the rows of its charges, in their order.
///
/// Only the receipt's own cost returns, so a success never clears what others have used. A window's end
/// stays where it is even if nothing is left in it.
#[must_use]
pub fn refund(receipt: Option<Receipt>, budgets: &[Option<Budget>], now_ms: u64) -> Refund {
    let Some(receipt) = receipt else { return Refund::UnknownOrExpired };
    if receipt.refunded {
        return Refund::AlreadyRefunded;
    }
    let rows = budgets.iter().copied().chain(core::iter::repeat(None));
    let budgets = receipt
        .charges
        .iter()
        .zip(rows)
        .map(|((_, charged_ends_at_ms), budget)| {
            let budget = live(budget, now_ms).filter(|budget| budget.ends_at_ms == *charged_ends_at_ms)?;
            Some(Budget { used: budget.used.saturating_sub(receipt.cost), ..budget })
        })
        .collect();
    Refund::Refunded { receipt: Receipt { refunded: true, ..receipt }, budgets }
}
