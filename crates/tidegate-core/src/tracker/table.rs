//! The rows of many keys.

use super::{
    Cause, Limit, Row, Work,
    places::{Place, Places},
};

/// A key: the 64-bit hash, under a secret seed, of a dimension and an identity in it.
///
/// Two identities with one hash share their row, so they never have more between them than one. Without the
/// seed nobody can find such a pair.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(pub u64);

/// The rows of the keys of one window and of all leases.
#[derive(Debug, Default)]
pub struct Table {
    rows: Places,
    window: u64,
    active_rows: usize,
}

impl Table {
    /// The most leases that one row holds.
    pub const LEASES_MAX: u32 = u16::MAX as u32;

    /// Goes on to `window`, if it is a later one: budgets are full again, and rows without leases go.
    /// Answers how many rows went. A window that has passed already changes nothing.
    #[inline]
    pub fn enter(&mut self, window: u64) -> usize {
        if window <= self.window { 0 } else { self.turn(window) }
    }

    #[cold]
    fn turn(&mut self, window: u64) -> usize {
        self.window = window;
        let before = self.rows.len();
        if self.active_rows == 0 {
            self.rows.clear();
        } else {
            self.rows.update(Row::clear_window);
        }
        before - self.rows.len()
    }

    /// The key's counts; `None` if nothing is counted for it.
    #[must_use]
    pub fn row(&self, key: Key) -> Option<Row> {
        self.find(key).map(|place| self.row_at(place))
    }

    /// Looks where the search for the key begins, and answers nothing that means anything. Looking for several keys
    /// before the first search has them come from memory together.
    #[must_use]
    pub fn glance(&self, key: Key) -> u64 {
        self.rows.glance(key)
    }

    /// Where the key's row lies, if it has one, until it goes or another is added.
    #[must_use]
    pub fn find(&self, key: Key) -> Option<Place> {
        self.rows.find(key)
    }

    /// The counts at a place that was found.
    #[must_use]
    pub fn row_at(&self, place: Place) -> Row {
        self.rows.at(place)
    }

    /// Why one more piece of such work doesn't fit at a place that was found; `None` if it does. Whatever the limit,
    /// a row holds at most [`Table::LEASES_MAX`].
    #[must_use]
    pub fn refusal_at(&self, place: Place, limit: &Limit, work: Work) -> Option<Cause> {
        let row = self.row_at(place);
        let refusal = row.refusal(limit, work);
        if row.active() >= Self::LEASES_MAX { refusal.or(Some(Cause::Concurrency)) } else { refusal }
    }

    /// Spends one of the budget at a place that was found, and holds a lease if the work is `leased`.
    pub fn charge_at(&mut self, place: Place, work: Work, leased: bool) {
        let active_rows = &mut self.active_rows;
        self.rows.change_at(place, |row| {
            *active_rows += usize::from(leased && !row.is_active());
            row.charge(work, leased);
        });
    }

    /// Spends one of the key's budget, and holds a lease if the work is `leased`.
    pub fn charge(&mut self, key: Key, work: Work, leased: bool) {
        if let Some(place) = self.find(key) {
            return self.charge_at(place, work, leased);
        }
        let mut row = Row::default();
        row.charge(work, leased);
        self.active_rows += usize::from(leased);
        self.rows.insert(key, row);
    }

    /// Ends one lease of the key. Answers whether its row went, since it counted nothing else.
    pub fn release(&mut self, key: Key, work: Work) -> bool {
        let mut ended = false;
        let is_gone = self.rows.change(key, |row| {
            let was_active = row.is_active();
            row.release(work);
            ended = was_active && !row.is_active();
        });
        self.active_rows -= usize::from(ended);
        is_gone
    }

    /// How many keys have a row.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no key has a row.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rows.len() == 0
    }

    /// Bytes that the rows take up, free places included.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.rows.bytes()
    }
}

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key(…)")
    }
}
