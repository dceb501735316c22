//! The rows of many keys.

use hashbrown::HashTable;

use super::{Cause, Limit, Row, Work};

/// A key: the 64-bit hash, under a secret seed, of a dimension and an identity in it.
///
/// Two identities with one hash share their row, so they never have more between them than one. Without the
/// seed nobody can find such a pair.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(pub u64);

/// The rows of the keys of one window and of all leases.
#[derive(Debug, Default)]
pub struct Table {
    rows: HashTable<Entry>,
    window: u64,
    active_rows: usize,
}

/// 24 bytes, so that a million of them at the worst load of the table stay under 64 bytes each.
#[derive(Debug, Clone, Copy)]
struct Entry {
    key: Key,
    row: Row,
}

impl Table {
    /// Goes on to `window`, if it is a later one: budgets are full again, and rows without leases go.
    /// Answers how many rows went. A window that has passed already changes nothing.
    pub fn enter(&mut self, window: u64) -> usize {
        if window <= self.window {
            return 0;
        }
        self.window = window;
        let before = self.rows.len();
        if self.active_rows == 0 {
            self.rows.clear();
        } else {
            self.rows.retain(|entry| {
                entry.row.clear_window();
                entry.row.is_active()
            });
        }
        before - self.rows.len()
    }

    /// The key's counts; nothing is counted for a key without a row.
    #[must_use]
    pub fn row(&self, key: Key) -> Option<Row> {
        self.rows.find(key.0, |entry| entry.key == key).map(|entry| entry.row)
    }

    /// Why one more piece of such work doesn't fit, and whether it would need a new row.
    #[must_use]
    pub fn check(&self, key: Key, limit: &Limit, work: Work) -> (Option<Cause>, bool) {
        let row = self.row(key);
        (row.unwrap_or_default().refusal(limit, work), row.is_none())
    }

    /// Spends one of the key's budget, and holds a lease if the work is `leased`.
    pub fn charge(&mut self, key: Key, work: Work, leased: bool) {
        // Not by the table's own entry, which makes room for a new key even if the key is there.
        if let Some(entry) = self.rows.find_mut(key.0, |entry| entry.key == key) {
            self.active_rows += usize::from(leased && !entry.row.is_active());
            entry.row.charge(work, leased);
            return;
        }
        let mut row = Row::default();
        row.charge(work, leased);
        self.active_rows += usize::from(leased);
        self.rows.insert_unique(key.0, Entry { key, row }, |entry| entry.key.0);
    }

    /// Ends one lease of the key. Answers whether its row went, since it counted nothing else.
    pub fn release(&mut self, key: Key, work: Work) -> bool {
        let Ok(mut found) = self.rows.find_entry(key.0, |entry| entry.key == key) else {
            return false;
        };
        let row = &mut found.get_mut().row;
        let was_active = row.is_active();
        row.release(work);
        self.active_rows -= usize::from(was_active && !row.is_active());
        let goes = row.is_unused();
        if goes {
            found.remove();
        }
        goes
    }

    /// How many keys have a row.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no key has a row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes that the rows take up, free places included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows.allocation_size()
    }
}

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key(…)")
    }
}
