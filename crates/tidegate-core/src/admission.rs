//! Admission: what a request may spend before any of its steps runs.
//!
//! A family of commands has a budget for each UTC day, and each identity a share of it. [`admit`] charges the
//! family and every identity that a request carries, or refuses and charges nobody. Nothing is ever given
//! back: what an attacker made the store do, it did.
//!
//! A part of the budget can be kept for identities that are known to be good. They spend the open part
//! first, so that a family under attack degrades to them instead of stopping.

mod audit;
mod axis;
mod day;
mod fence;
mod lease;
mod quota;
mod rules;

use smallvec::SmallVec;

pub use self::{
    audit::{AUDIT_LIFE_MS, AUDIT_ROWS_MAX, Action, AuditEntry, AuditHead},
    axis::Axis,
    day::{DAY_MS, FamilyDay, Phase},
    fence::{Fence, REASON_BYTES_MAX},
    lease::{LEASE_HOLDERS_MAX, Lease, Leased, Leases, NotLeased, admit_and_lease, admit_on_lease},
    quota::Quota,
    rules::{BASIS_POINTS, FamilyRules},
};

/// How long an identity stays known to be good: 30 days, in ms.
pub const GOOD_LIFE_MS: u64 = 30 * DAY_MS;

/// The row of an identity that is known to be good: that it is there says all.
pub const GOOD_ROW: [u8; 1] = [crate::codec::first_byte::GOOD];

/// Whether a request's source or principal is known to be good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// One of them is.
    Good,
    /// None of them is.
    Stranger,
    /// It was not looked up. [`Refused::StandingNeeded`] says when that has to be made up for.
    NotLookedUp,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// How many commands it has: at least one.
    pub commands: u64,
    /// Whether it may spend the reserve.
    pub standing: Standing,
    /// Every identity that it carries, with what it has spent so far.
    pub identities: &'a [(Axis, Option<Quota>)],
}

/// What admitting a request makes of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// The family's new row.
    pub day: FamilyDay,
    /// The new row of each identity, in the order of [`Ask::identities`].
    pub quotas: SmallVec<[Quota; 4]>,
    /// What was charged.
    pub commands: u64,
    /// 80 % of the budget are spent, for the first time today.
    pub warned: bool,
    /// The open part of the budget is spent, just now; the reserve is not.
    pub entered_reserve: bool,
    /// The budget is spent, just now.
    pub exhausted: bool,
}

/// Why a request is not admitted. Nothing is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refused {
    /// An operator has stopped everything.
    Fenced,
    /// Nothing is left for this request's kind of caller.
    Exhausted,
    /// Less is left than the request asks for.
    Insufficient,
    /// The identity at this place of [`Ask::identities`] has less left than the request asks for.
    Limited {
        /// Which one.
        index: usize,
        /// What it may still spend today.
        remaining: u64,
    },
    /// The reserve would do, so whether the caller is good has to be looked up first.
    StandingNeeded,
}

/// Admits a request, or says why not. `now_ms` is the store's clock.
///
/// # Errors
/// See [`Refused`].
pub fn admit(
    rules: &FamilyRules,
    fence: &Fence,
    family: Option<&FamilyDay>,
    ask: &Ask<'_>,
    now_ms: u64,
) -> Result<Admitted, Refused> {
    if fence.stopped {
        return Err(Refused::Fenced);
    }
    let before = FamilyDay::on(family, now_ms);
    check_budget(rules, &before, ask)?;
    let quotas = charge_identities(rules, &before, ask)?;
    let mut day = FamilyDay { used: before.used + ask.commands, ..before };
    let spent_open = |used: u64| used >= rules.open();
    day.warned |= rules.is_nearly_spent(day.used);
    day.stopped |= day.used >= rules.budget;
    let exhausted = day.stopped && !before.stopped;
    Ok(Admitted {
        commands: ask.commands,
        warned: day.warned && !before.warned,
        entered_reserve: spent_open(day.used) && !spent_open(before.used) && !day.stopped,
        exhausted,
        day,
        quotas,
    })
}

fn check_budget(rules: &FamilyRules, day: &FamilyDay, ask: &Ask<'_>) -> Result<(), Refused> {
    if day.stopped || day.used >= rules.budget {
        return Err(Refused::Exhausted);
    }
    let left = rules.budget - day.used;
    let open_left = rules.open().saturating_sub(day.used);
    if ask.commands <= open_left {
        return Ok(());
    }
    match ask.standing {
        _ if ask.commands > left && open_left > 0 => Err(Refused::Insufficient),
        Standing::Good if ask.commands <= left => Ok(()),
        Standing::Good => Err(Refused::Insufficient),
        Standing::NotLookedUp if rules.reserve() > 0 => Err(Refused::StandingNeeded),
        _ if open_left == 0 => Err(Refused::Exhausted),
        _ => Err(Refused::Insufficient),
    }
}

fn charge_identities(
    rules: &FamilyRules,
    day: &FamilyDay,
    ask: &Ask<'_>,
) -> Result<SmallVec<[Quota; 4]>, Refused> {
    let identities = ask.identities.iter().enumerate();
    identities
        .map(|(index, (axis, quota))| {
            let spent = Quota::on(quota.as_ref(), day, *axis);
            let remaining = rules.allowance(*axis).saturating_sub(spent.used);
            if ask.commands > remaining {
                return Err(Refused::Limited { index, remaining });
            }
            Ok(Quota { used: spent.used + ask.commands, ..spent })
        })
        .collect()
}

#[cfg(test)]
mod tests;
