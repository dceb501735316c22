//! What a family has spent on a UTC day.

use smallvec::SmallVec;

use super::{Axis, FamilyRules, LEASE_HOLDERS_MAX};
use crate::codec::{DecodeError, Reader, first_byte, put_varint};

/// A UTC day, in ms.
pub const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// What a family has spent on a day, and what has become of it.
///
/// A day begins once. When the clock shows an earlier one than the row, because it stepped back, the row's
/// day goes on: no day's budget is handed out twice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FamilyDay {
    /// Days since the epoch.
    pub day: u64,
    /// Commands spent since the day began, or since an operator's resume.
    pub used: u64,
    /// The warning of the day was given.
    pub warned: bool,
    /// The budget was spent. It stays so until the next day or an operator's resume, also when the budget is
    /// raised meanwhile.
    pub stopped: bool,
    /// How often the quotas of each axis were reset today: those of an earlier generation count as unspent.
    pub generations: [u64; Axis::COUNT],
    /// How often usage was reset today: leases of an earlier epoch are worth nothing.
    pub epoch: u64,
    /// The instances that hold a lease.
    pub holders: SmallVec<[u64; 4]>,
}

/// What a family still admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Everybody.
    Open,
    /// Known-good identities.
    Reserve,
    /// Nobody.
    Stopped,
}

impl FamilyDay {
    /// The row as it stands at `now_ms`: fresh if another day has begun.
    #[must_use]
    pub fn on(row: Option<&Self>, now_ms: u64) -> Self {
        let today = now_ms / DAY_MS;
        match row {
            Some(row) if row.day >= today => row.clone(),
            _ => Self { day: today, ..Self::default() },
        }
    }

    /// The row after an operator's resume: usage and stop are gone; quotas stay, and so does that the warning of the day
    /// was given. A day that a clock ahead of
    /// its time has begun is given up, so that a resume mends that too.
    #[must_use]
    pub fn resumed(row: Option<&Self>, now_ms: u64) -> Self {
        let day = Self::on(row, now_ms);
        let today = now_ms / DAY_MS;
        if day.day > today {
            return Self { day: today, epoch: day.epoch + 1, ..Self::default() };
        }
        let epoch = day.epoch + 1;
        Self { used: 0, stopped: false, epoch, holders: SmallVec::new(), ..day }
    }

    /// The row after a reset of the quotas of `axis`, or of all axes.
    #[must_use]
    pub fn with_quotas_reset(row: Option<&Self>, axis: Option<Axis>, now_ms: u64) -> Self {
        let mut day = Self::on(row, now_ms);
        for each in Axis::ALL.into_iter().filter(|each| axis.is_none_or(|axis| axis == *each)) {
            day.generations[each as usize] = day.generations[each as usize].saturating_add(1);
        }
        day
    }

    /// When the day ends, in ms since the epoch.
    #[must_use]
    pub const fn ends_at_ms(&self) -> u64 {
        (self.day + 1).saturating_mul(DAY_MS)
    }

    /// What the family still admits.
    #[must_use]
    pub fn phase(&self, rules: &FamilyRules) -> Phase {
        if self.stopped || self.used >= rules.budget {
            Phase::Stopped
        } else if self.used >= rules.open() {
            Phase::Reserve
        } else {
            Phase::Open
        }
    }

    /// Appends the row's bytes.
    pub fn encode(&self, out: &mut impl Extend<u8>) {
        let flags = u8::from(self.warned) | u8::from(self.stopped) << 1;
        out.extend([first_byte::FAMILY_DAY, flags]);
        put_varint(out, self.day);
        put_varint(out, self.used);
        self.generations.iter().for_each(|generation| put_varint(out, *generation));
        put_varint(out, self.epoch);
        put_varint(out, self.holders.len() as u64);
        self.holders.iter().for_each(|holder| out.extend(holder.to_le_bytes()));
    }

    /// Reads a row back.
    ///
    /// # Errors
    /// The bytes are not a family's row, whole and in bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::of_kind(bytes, first_byte::FAMILY_DAY)?;
        let flags = reader.byte()?;
        if flags > 3 {
            return Err(DecodeError::OutOfRange);
        }
        let mut row = Self {
            warned: flags & 1 == 1,
            stopped: flags & 2 == 2,
            day: reader.varint_to(u64::MAX / DAY_MS - 1)?,
            used: reader.varint()?,
            ..Self::default()
        };
        for generation in &mut row.generations {
            *generation = reader.varint()?;
        }
        row.epoch = reader.varint()?;
        for _ in 0..reader.varint_to(LEASE_HOLDERS_MAX as u64)? {
            row.holders.push(u64::from_le_bytes(reader.array()?));
        }
        reader.end().map(|()| row)
    }
}
