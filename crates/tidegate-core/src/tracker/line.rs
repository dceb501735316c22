//! One line of a core's cache, with the rows that lie in it.

use super::{Key, Row, Share};

/// Rows and their keys, and how many rows lie further on, though the search for them passes here.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line {
    keys: [Key; Line::SLOTS],
    spent: [Share; Line::SLOTS],
    active: [Leases; Line::SLOTS],
    /// A bit for each slot.
    taken: u16,
    passed: u16,
}

/// [`Share`] of leases, in half the room.
#[derive(Debug, Clone, Copy)]
struct Leases {
    all: u16,
    optional: u16,
}

const _: () = assert!(size_of::<Line>() == 64, "it is one line of the cache");

impl Line {
    pub(super) const SLOTS: usize = 3;

    pub(super) const EMPTY: Self = Self {
        keys: [Key(0); Self::SLOTS],
        spent: [Share { all: 0, optional: 0 }; Self::SLOTS],
        active: [Leases { all: 0, optional: 0 }; Self::SLOTS],
        taken: 0,
        passed: 0,
    };

    /// Any of its bits.
    pub(super) const fn glance(&self) -> u64 {
        self.keys[0].0
    }

    pub(super) fn find(&self, key: Key) -> Option<usize> {
        // All are compared, since which one it is nobody foresees.
        let same = self.keys.iter().rev().fold(0, |same, other| same << 1 | u32::from(*other == key));
        let found = same & u32::from(self.taken);
        (found != 0).then(|| found.trailing_zeros() as usize)
    }

    pub(super) const fn was_passed(&self) -> bool {
        self.passed != 0
    }

    /// The slots with a row.
    pub(super) fn taken(&self) -> impl Iterator<Item = usize> + use<> {
        let taken = self.taken;
        (0..Self::SLOTS).filter(move |slot| taken >> slot & 1 != 0)
    }

    pub(super) const fn key(&self, slot: usize) -> Key {
        self.keys[slot]
    }

    pub(super) fn row(&self, slot: usize) -> Row {
        let Leases { all, optional } = self.active[slot];
        Row { spent: self.spent[slot], active: Share { all: u32::from(all), optional: u32::from(optional) } }
    }

    /// Changes the row of a slot, and answers what it is then.
    pub(super) fn change(&mut self, slot: usize, change: impl FnOnce(&mut Row)) -> Row {
        let mut row = self.row(slot);
        change(&mut row);
        self.set(slot, row);
        row
    }

    /// Takes a free slot, if there is one.
    pub(super) fn put(&mut self, key: Key, row: Row) -> bool {
        let slot = self.taken.trailing_ones() as usize;
        let has_room = slot < Self::SLOTS;
        if has_room {
            self.taken |= 1 << slot;
            self.keys[slot] = key;
            self.set(slot, row);
        }
        has_room
    }

    pub(super) const fn free(&mut self, slot: usize) {
        self.taken &= !(1 << slot);
    }

    /// A row is put further on. A count that has come to its end stays there, which costs searches and nothing else.
    pub(super) const fn pass(&mut self) {
        self.passed = self.passed.saturating_add(1);
    }

    /// Such a row goes.
    pub(super) const fn unpass(&mut self) {
        if self.passed < u16::MAX {
            self.passed -= 1;
        }
    }

    fn set(&mut self, slot: usize, row: Row) {
        self.spent[slot] = row.spent;
        self.active[slot] = Leases::from(row.active);
    }
}

impl From<Share> for Leases {
    fn from(share: Share) -> Self {
        let narrow = |count| u16::try_from(count).unwrap_or(u16::MAX);
        Self { all: narrow(share.all), optional: narrow(share.optional) }
    }
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn a_count_that_has_come_to_its_end_stays_there() {
        let mut line = Line::EMPTY;
        for _ in 0..3 {
            line.pass();
            line.unpass();
        }
        assert!(!line.was_passed());
        (0..u32::from(u16::MAX) + 3).for_each(|_| line.pass());
        (0..u32::from(u16::MAX) + 3).for_each(|_| line.unpass());
        assert!(line.was_passed(), "some may still lie further on");
    }
}
