//! What an update sees of the rows it named, and how it changes them.

use smallvec::SmallVec;

use crate::{Invalid, LIFE_MS_MAX, VALUE_BYTES_MAX};

/// The bytes of a value. Windows and counters fit without an allocation.
pub type Value = SmallVec<[u8; 40]>;

/// A live row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// At most [`VALUE_BYTES_MAX`] bytes.
    pub value: Value,
    /// In ms since the epoch on the store's clock. The entry is gone when the clock shows this instant.
    pub expires_at_ms: u64,
}

/// The rows of one update, in the order of its keys, at one instant of the store's clock.
///
/// A view is handed to `apply`, which may run more than once: whatever it does must follow from what it
/// reads here and from what it was made with.
#[derive(Debug)]
pub struct View<'a> {
    now_ms: u64,
    rows: &'a mut [Row],
    /// Which of `rows` is the n-th key's.
    places: &'a [u32],
    undo: Vec<Undo>,
    fault: Option<Invalid>,
}

/// A point of an update to go back to; see [`View::mark`].
#[derive(Debug, Clone, Copy)]
pub struct Mark(usize);

/// One row of a batch: what the updates so far have made of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) entry: Option<Entry>,
    pub(crate) changed: bool,
}

#[derive(Debug)]
struct Undo {
    index: usize,
    before: Row,
}

impl<'a> View<'a> {
    pub(crate) fn new(now_ms: u64, rows: &'a mut [Row], places: &'a [u32]) -> Self {
        Self { now_ms, rows, places, undo: Vec::new(), fault: None }
    }

    /// The store's clock, in ms since the epoch.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The live row of the `index`-th key. Rows at or past their expiry read as absent.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Entry> {
        self.row(index).entry.as_ref().filter(|entry| entry.expires_at_ms > self.now_ms)
    }

    /// Writes the row of the `index`-th key. A value or an expiry out of bounds makes the whole update
    /// [`Invalid`], and nothing of it is written.
    pub fn put(&mut self, index: usize, value: impl Into<Value>, expires_at_ms: u64) {
        let value = value.into();
        if value.len() > VALUE_BYTES_MAX {
            self.fault.get_or_insert(Invalid::ValueTooLarge { index, bytes: value.len() });
        } else if expires_at_ms <= self.now_ms || expires_at_ms - self.now_ms > LIFE_MS_MAX {
            self.fault.get_or_insert(Invalid::ExpiryOutOfRange { index });
        } else {
            self.replace(index, Some(Entry { value, expires_at_ms }));
        }
    }

    /// Removes the row of the `index`-th key.
    pub fn delete(&mut self, index: usize) {
        if self.row(index).entry.is_some() {
            self.replace(index, None);
        }
    }

    /// The present state of this update, to go back to with [`View::rollback`].
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.undo.len())
    }

    /// Undoes what this update has written since `mark`.
    pub fn rollback(&mut self, mark: Mark) {
        while self.undo.len() > mark.0 {
            let undo = self.undo.pop().expect("the loop's condition says that one is left");
            *self.row_mut(undo.index) = undo.before;
        }
    }

    /// Whether this update has written anything since `mark`.
    #[must_use]
    pub fn changed_since(&self, mark: Mark) -> bool {
        self.undo.len() > mark.0
    }

    pub(crate) fn fault(&self) -> Option<Invalid> {
        self.fault
    }

    /// How many rows this update adds (positive) or removes (negative), counting live rows only.
    pub(crate) fn growth(&self) -> i64 {
        let live = |row: &Row| row.entry.as_ref().is_some_and(|entry| entry.expires_at_ms > self.now_ms);
        let mut seen: SmallVec<[usize; 16]> = SmallVec::new();
        let mut growth = 0;
        for undo in &self.undo {
            if !seen.contains(&undo.index) {
                seen.push(undo.index);
                growth += i64::from(live(self.row(undo.index))) - i64::from(live(&undo.before));
            }
        }
        growth
    }

    fn replace(&mut self, index: usize, entry: Option<Entry>) {
        let before = std::mem::replace(self.row_mut(index), Row { entry, changed: true });
        self.undo.push(Undo { index, before });
    }

    fn row(&self, index: usize) -> &Row {
        &self.rows[self.places[index] as usize]
    }

    fn row_mut(&mut self, index: usize) -> &mut Row {
        &mut self.rows[self.places[index] as usize]
    }
}
