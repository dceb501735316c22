//! Where rows lie: one array, each row with its key beside it.
//!
//! A row is looked up far more often than the array fits into a core's cache. A general table reads its own
//! bytes first and then the entry, which is to wait for memory twice; here it is once. So it is worth to have.
//!
//! A row lies at the place that its key says, or at the next that was free. A place whose row counts nothing is
//! free, so there are no other marks. Keys are hashes that callers can't choose, so rows don't gather.

use alloc::{boxed::Box, vec};

use super::{Key, Row};

/// Rows by key. A row that counts nothing is not there.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Always with a free one, where there are any; as many as a power of two.
    entries: Box<[Entry]>,
    taken: usize,
}

/// 24 bytes: at the worst share of free places, under 60 bytes a row.
#[derive(Debug, Clone, Copy)]
struct Entry {
    key: Key,
    row: Row,
}

const FREE: Entry = Entry { key: Key(0), row: Row::UNUSED };
const PLACES_MIN: usize = 8;
/// 13 of 16 places may be taken: beyond, the search for a free one becomes long.
const SHARE_TAKEN: (usize, usize) = (13, 16);

impl Places {
    pub(super) const fn len(&self) -> usize {
        self.taken
    }

    pub(super) const fn bytes(&self) -> usize {
        size_of_val(&*self.entries)
    }

    /// Any bits of the place where the search for the key begins.
    pub(super) fn glance(&self, key: Key) -> u64 {
        let mask = self.entries.len().wrapping_sub(1);
        self.entries.get(home(key) & mask).map_or(0, |entry| entry.key.0)
    }

    pub(super) fn find(&self, key: Key) -> Option<usize> {
        self.place(key).ok()
    }

    pub(super) const fn at(&self, place: usize) -> &Row {
        &self.entries[place].row
    }

    pub(super) const fn at_mut(&mut self, place: usize) -> &mut Row {
        &mut self.entries[place].row
    }

    /// Adds the row of a key that has none. `row` must count something.
    pub(super) fn insert(&mut self, key: Key, row: Row) {
        if (self.taken + 1) * SHARE_TAKEN.1 > self.entries.len() * SHARE_TAKEN.0 {
            self.grow();
        }
        self.put(Entry { key, row });
    }

    /// Changes the key's row, if it has one. Answers whether it is gone, since it counts nothing any more.
    pub(super) fn change(&mut self, key: Key, change: impl FnOnce(&mut Row)) -> bool {
        let Ok(place) = self.place(key) else { return false };
        let row = &mut self.entries[place].row;
        change(row);
        let is_gone = row.is_unused();
        if is_gone {
            self.close(place);
        }
        is_gone
    }

    pub(super) fn clear(&mut self) {
        self.entries.fill(FREE);
        self.taken = 0;
    }

    /// Changes every row. Those that count nothing then are gone.
    pub(super) fn update(&mut self, change: impl Fn(&mut Row)) {
        let Some(free) = self.entries.iter().position(|entry| entry.row.is_unused()) else { return };
        self.taken = 0;
        // From behind a free place on, each row finds a place no later than its own, all before which are done.
        for step in 1..=self.entries.len() {
            let place = (free + step) & (self.entries.len() - 1);
            let mut entry = core::mem::replace(&mut self.entries[place], FREE);
            if !entry.row.is_unused() {
                change(&mut entry.row);
            }
            if !entry.row.is_unused() {
                self.put(entry);
            }
        }
    }

    fn grow(&mut self) {
        let places = (self.entries.len() * 2).max(PLACES_MIN);
        let old = core::mem::replace(&mut self.entries, vec![FREE; places].into_boxed_slice());
        self.taken = 0;
        old.iter().filter(|entry| !entry.row.is_unused()).for_each(|entry| self.put(*entry));
    }

    fn put(&mut self, entry: Entry) {
        let place = self.place(entry.key).unwrap_or_else(|free| free);
        self.entries[place] = entry;
        self.taken += 1;
    }

    /// Frees a place, and moves up what lies behind it, so that it is still found.
    fn close(&mut self, mut gap: usize) {
        let mask = self.entries.len() - 1;
        let mut place = gap;
        loop {
            place = (place + 1) & mask;
            let entry = self.entries[place];
            if entry.row.is_unused() {
                break;
            }
            let from_home = place.wrapping_sub(home(entry.key)) & mask;
            let from_gap = place.wrapping_sub(gap) & mask;
            if from_home >= from_gap {
                self.entries[gap] = entry;
                gap = place;
            }
        }
        self.entries[gap] = FREE;
        self.taken -= 1;
    }

    /// The place of the key's row, or the free one where it would go.
    fn place(&self, key: Key) -> Result<usize, usize> {
        let Some(mask) = self.entries.len().checked_sub(1) else { return Err(0) };
        let mut place = home(key) & mask;
        loop {
            let entry = &self.entries[place];
            if entry.row.is_unused() {
                return Err(place);
            }
            if entry.key == key {
                return Ok(place);
            }
            place = (place + 1) & mask;
        }
    }
}

/// The place that the key says, of as many as there ever are.
const fn home(key: Key) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are what is wanted")]
    let home = key.0 as usize;
    home
}
