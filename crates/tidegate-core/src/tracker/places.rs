//! Where rows lie: three to a line of a core's cache, each with its key beside it.
//!
//! A row is looked up far more often than the rows fit into a core's cache, so what a search costs is the lines that it
//! reads. A general table reads its own bytes first and then the entry; here it is one line, and few enough of them
//! that more of all rows stay in the cache. So it is worth to have.
//!
//! A row lies in the line that its key says, or in the next that had room. A line counts the rows that passed it by, so a
//! search knows where to end, and a row stays where it is until it goes. Keys are hashes that callers can't choose, so rows
//! don't gather.

use alloc::{boxed::Box, vec};

use super::{Key, Row, line::Line};

/// Rows by key. A row that counts nothing is not there.
#[derive(Debug, Default)]
pub(super) struct Places {
    lines: Box<[Line]>,
    rows: usize,
}

/// Where a row lies in its table.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    line: usize,
    slot: usize,
}

const LINES_MIN: usize = 4;
/// Two of three places may be taken: beyond, rows often lie in another line than where the search for them begins.
const SHARE_TAKEN: (usize, usize) = (2, 3);

impl Places {
    pub(super) const fn len(&self) -> usize {
        self.rows
    }

    pub(super) const fn bytes(&self) -> usize {
        size_of_val(&*self.lines)
    }

    /// Any bits of the line where the search for the key begins.
    pub(super) fn glance(&self, key: Key) -> u64 {
        self.lines.get(self.home(key)).map_or(0, Line::glance)
    }

    pub(super) fn find(&self, key: Key) -> Option<Place> {
        let mut line = self.home(key);
        // Once around at most, if rows have passed every line.
        for _ in 0..self.lines.len() {
            let here = self.lines.get(line)?;
            if let Some(slot) = here.find(key) {
                return Some(Place { line, slot });
            }
            if !here.was_passed() {
                return None;
            }
            line = self.after(line);
        }
        None
    }

    pub(super) fn at(&self, place: Place) -> Row {
        self.lines[place.line].row(place.slot)
    }

    /// Changes the row at a place that was found. It must go on to count something.
    pub(super) fn change_at(&mut self, place: Place, change: impl FnOnce(&mut Row)) {
        self.lines[place.line].change(place.slot, change);
    }

    /// Adds the row of a key that has none. `row` must count something.
    pub(super) fn insert(&mut self, key: Key, row: Row) {
        if (self.rows + 1) * SHARE_TAKEN.1 > self.lines.len() * Line::SLOTS * SHARE_TAKEN.0 {
            self.grow();
        }
        self.put(key, row);
    }

    /// Changes the key's row, if it has one. Answers whether it is gone, since it counts nothing any more.
    pub(super) fn change(&mut self, key: Key, change: impl FnOnce(&mut Row)) -> bool {
        let Some(place) = self.find(key) else { return false };
        let row = self.lines[place.line].change(place.slot, change);
        if row.is_unused() {
            self.remove(key, place);
        }
        row.is_unused()
    }

    pub(super) fn clear(&mut self) {
        self.lines.fill(Line::EMPTY);
        self.rows = 0;
    }

    /// Changes every row. Those that count nothing then are gone.
    pub(super) fn update(&mut self, change: impl Fn(&mut Row)) {
        for line in 0..self.lines.len() {
            for slot in self.lines[line].taken() {
                let row = self.lines[line].change(slot, &change);
                if row.is_unused() {
                    let key = self.lines[line].key(slot);
                    self.remove(key, Place { line, slot });
                }
            }
        }
    }

    /// A quarter more lines, so that a table has no more room than it needs.
    fn grow(&mut self) {
        let lines = (self.lines.len() * 5 / 4 + 1).max(LINES_MIN);
        let old = core::mem::replace(&mut self.lines, vec![Line::EMPTY; lines].into_boxed_slice());
        self.rows = 0;
        for line in &old {
            line.taken().for_each(|slot| self.put(line.key(slot), line.row(slot)));
        }
    }

    /// There is room.
    fn put(&mut self, key: Key, row: Row) {
        let mut line = self.home(key);
        while !self.lines[line].put(key, row) {
            self.lines[line].pass();
            line = self.after(line);
        }
        self.rows += 1;
    }

    fn remove(&mut self, key: Key, place: Place) {
        let mut line = self.home(key);
        while line != place.line {
            self.lines[line].unpass();
            line = self.after(line);
        }
        self.lines[line].free(place.slot);
        self.rows -= 1;
    }

    /// The line where the search begins: as far into the array as the key's lower half is into its numbers.
    const fn home(&self, key: Key) -> usize {
        let lower = key.0 & u32::MAX as u64;
        ((lower * self.lines.len() as u64) >> 32) as usize
    }

    const fn after(&self, line: usize) -> usize {
        if line + 1 == self.lines.len() { 0 } else { line + 1 }
    }
}
