//! Leases: how several instances share one budget without waiting for each other at every request.
//!
//! An instance takes a slice of the open part in advance and spends it on its own row, which no other instance
//! writes. What is left of a slice is counted as spent until it is given back or recalled, so that no slice can be
//! spent twice, whatever crashes; and every spending is written together with what it pays for, so that whoever
//! recalls a lease knows to the last command what is left of it. No clock has a part in it: an instance that was
//! away for an hour finds that its lease is no more, in the same update in which it would have spent it.
//!
//! Slices are small parts of what is left, so they shrink as the budget runs out; before a request is refused, or a
//! flag of the day is set, all leases are recalled. So the last command is still admitted, exactly once.

use smallvec::SmallVec;

use super::{Admitted, Ask, FamilyDay, FamilyRules, Fence, Quota, Refused, admit, charge_identities};
use crate::codec::{DecodeError, Reader, first_byte, put_varint};

/// Instances that may hold a lease of one family at once; others go without, and are slower for it.
pub const LEASE_HOLDERS_MAX: usize = 64;

/// What is left of the open part is worth this many slices for each instance that may want one.
const SLICES_OF_REST: u64 = 16;
/// A slice is at most this part of a budget.
const SLICES_OF_BUDGET: u64 = 200;
/// A smaller slice is not worth its writes.
const SLICE_MIN: u64 = 16;

/// What one instance may spend of a family's budget by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lease {
    /// The family's day that it counts for.
    pub day: u64,
    /// See [`FamilyDay::epoch`].
    pub epoch: u64,
    /// Commands that were taken in advance.
    pub granted: u64,
    /// How many of them are spent.
    pub spent: u64,
}

/// What a request finds of leases.
#[derive(Debug, Clone, Copy)]
pub struct Leases<'a> {
    /// Whose request it is.
    pub instance: u64,
    /// Its own lease.
    pub own: Option<Lease>,
    /// Those of the other holders, in the order of [`FamilyDay::holders`]; none if they were not looked up.
    pub others: Option<&'a [Option<Lease>]>,
}

/// What admitting a request makes of the rows, with leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leased {
    /// As without leases; `day.used` counts what is leased, too.
    pub admitted: Admitted,
    /// The instance's new lease.
    pub own: Lease,
    /// The others' new leases, where they were recalled.
    pub others: SmallVec<[Lease; 4]>,
}

/// Why a request is not admitted with leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotLeased {
    /// As without leases.
    Refused(Refused),
    /// The lease does not do; the family's own row is needed.
    FamilyNeeded,
    /// The leases of the other holders are needed.
    OthersNeeded,
}

impl From<Refused> for NotLeased {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl Lease {
    /// What is left of it on the family's day; nothing if it is of another day, or was ended since.
    #[must_use]
    pub fn left(row: Option<&Self>, family: &FamilyDay) -> u64 {
        let current = row.filter(|row| row.day == family.day && row.epoch == family.epoch);
        current.map_or(0, |row| row.granted.saturating_sub(row.spent))
    }

    /// Appends the row's bytes.
    pub fn encode(&self, out: &mut impl Extend<u8>) {
        out.extend([first_byte::LEASE]);
        for number in [self.day, self.epoch, self.granted, self.spent] {
            put_varint(out, number);
        }
    }

    /// Reads a row back.
    ///
    /// # Errors
    /// The bytes are not a lease's row, whole and in bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::of_kind(bytes, first_byte::LEASE)?;
        let row = Self {
            day: reader.varint()?,
            epoch: reader.varint()?,
            granted: reader.varint()?,
            spent: reader.varint()?,
        };
        reader.end().map(|()| row)
    }
}

/// Admits a request on the instance's own lease, looking at the family's row without writing it. Answers the
/// new lease and quotas.
///
/// # Errors
/// See [`NotLeased`].
pub fn admit_on_lease(
    rules: &FamilyRules,
    fence: &Fence,
    family: Option<&FamilyDay>,
    own: Option<&Lease>,
    ask: &Ask<'_>,
    now_ms: u64,
) -> Result<(Lease, SmallVec<[Quota; 4]>), NotLeased> {
    if fence.stopped {
        return Err(Refused::Fenced.into());
    }
    let day = FamilyDay::on(family, now_ms);
    match own {
        Some(lease) if ask.commands <= Lease::left(Some(lease), &day) => {
            let quotas = charge_identities(rules, &day, ask)?;
            Ok((Lease { spent: lease.spent + ask.commands, ..*lease }, quotas))
        }
        _ => Err(NotLeased::FamilyNeeded),
    }
}

/// Admits a request on the family's own row, and takes a lease for the next ones.
///
/// # Errors
/// See [`NotLeased`].
pub fn admit_and_lease(
    rules: &FamilyRules,
    fence: &Fence,
    family: Option<&FamilyDay>,
    leases: &Leases<'_>,
    ask: &Ask<'_>,
    now_ms: u64,
) -> Result<Leased, NotLeased> {
    let mut day = FamilyDay::on(family, now_ms);
    // What is left of the own lease is given back first.
    day.used -= Lease::left(leases.own.as_ref(), &day).min(day.used);
    day.holders.retain(|holder| *holder != leases.instance);
    let mut others = SmallVec::new();
    if !day.holders.is_empty() && day.used + ask.commands >= rules.open() {
        let rows = leases.others.filter(|rows| rows.len() == day.holders.len());
        others = recall(&mut day, rows.ok_or(NotLeased::OthersNeeded)?);
    }
    let mut admitted = admit(rules, fence, Some(&day), ask, now_ms)?;
    let granted = slice(rules, &admitted.day);
    let own = Lease { day: admitted.day.day, epoch: admitted.day.epoch, granted, spent: 0 };
    if granted > 0 {
        admitted.day.used += granted;
        admitted.day.holders.push(leases.instance);
    }
    Ok(Leased { admitted, own, others })
}

/// Takes back what is left of the leases of all holders.
fn recall(day: &mut FamilyDay, rows: &[Option<Lease>]) -> SmallVec<[Lease; 4]> {
    let mut recalled = SmallVec::with_capacity(rows.len());
    for row in rows {
        let left = Lease::left(row.as_ref(), day);
        day.used -= left.min(day.used);
        let lease = row.unwrap_or_default();
        recalled.push(Lease { granted: lease.spent.min(lease.granted), ..lease });
    }
    day.holders.clear();
    recalled
}

/// How many commands an instance may take in advance; 0: it is not worth it.
fn slice(rules: &FamilyRules, day: &FamilyDay) -> u64 {
    if day.stopped || day.holders.len() >= LEASE_HOLDERS_MAX {
        return 0;
    }
    let rest = rules.open().saturating_sub(day.used);
    let holders = day.holders.len() as u64 + 1;
    let size = (rest / (SLICES_OF_REST * holders)).min(rules.budget / SLICES_OF_BUDGET);
    // The warning at 80 % is for what is spent, not for what is leased.
    let warns = rules.is_nearly_spent(day.used + size) && !day.warned;
    if size < SLICE_MIN || warns { 0 } else { size }
}
