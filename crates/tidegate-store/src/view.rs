//! What an update sees of the rows it named, and how it changes them.

use smallvec::SmallVec;

use crate::{Invalid, LASTING_MS, LIFE_MS_MAX, NewState, VALUE_BYTES_MAX};

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
    /// The first of the keys that are only watched.
    watched_from: usize,
    undo: Vec<Undo>,
    growth: Growth,
    fault: Option<Invalid>,
}

/// How many live rows an update adds (positive) or removes (negative), by how they were written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Growth {
    /// With [`View::put`], and all that was deleted.
    pub(crate) own: i64,
    /// With [`View::put_beside`].
    pub(crate) beside: i64,
    /// With [`View::put_kept`].
    pub(crate) kept: i64,
}

/// Which part of the growth a write belongs to.
#[derive(Debug, Clone, Copy)]
enum Part {
    Own,
    Beside,
    Kept,
}

/// A point of an update to go back to; see [`View::mark`].
#[derive(Debug, Clone, Copy)]
pub struct Mark(usize);

/// One row of a batch: what the updates so far have made of it.
#[derive(Debug)]
pub(crate) struct Row {
    entry: Option<Entry>,
    /// Whether the store held the row, live or not, when the batch began.
    held: bool,
    changed: bool,
}

/// What a row was before it was written.
#[derive(Debug)]
pub(crate) struct Undo {
    place: u32,
    entry: Option<Entry>,
    changed: bool,
    part: Part,
}

impl<'a> View<'a> {
    /// A view of the rows at `places`. `undo` is an empty vector whose room is used; [`View::end`] gives it
    /// back.
    pub(crate) fn new(
        now_ms: u64,
        rows: &'a mut [Row],
        places: &'a [u32],
        watched: usize,
        undo: Vec<Undo>,
    ) -> Self {
        let watched_from = places.len() - watched;
        Self { now_ms, rows, places, watched_from, undo, growth: Growth::default(), fault: None }
    }

    /// The store's clock, in ms since the epoch.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// How many keys the update has.
    pub(crate) fn keys(&self) -> usize {
        self.places.len()
    }

    /// The live row of the `index`-th key. Rows at or past their expiry read as absent.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Entry> {
        self.entry(index).filter(|entry| entry.expires_at_ms > self.now_ms)
    }

    /// Writes the row of the `index`-th key. A value or an expiry out of bounds makes the whole update
    /// [`Invalid`], and nothing of it is written.
    pub fn put(&mut self, index: usize, value: impl Into<Value>, expires_at_ms: u64) {
        self.write(index, value.into(), expires_at_ms, Part::Own);
    }

    /// Writes a row that only goes with a change to others, such as the record of an operation.
    ///
    /// A store that is full of live entries still takes such rows, as many again as its bound: without them
    /// the keys that it holds could not go on counting.
    pub fn put_beside(&mut self, index: usize, value: impl Into<Value>, expires_at_ms: u64) {
        self.write(index, value.into(), expires_at_ms, Part::Beside);
    }

    /// Writes one of the few rows of a store's own keeping, whose names nobody outside can choose: however full
    /// the store is, it takes them. Whoever writes them bounds how many there are.
    pub fn put_kept(&mut self, index: usize, value: impl Into<Value>, expires_at_ms: u64) {
        self.write(index, value.into(), expires_at_ms, Part::Kept);
    }

    /// [`View::put_kept`] for a row that stays until it is written again or deleted.
    pub fn put_lasting(&mut self, index: usize, value: impl Into<Value>) {
        self.put_kept(index, value, LASTING_MS);
    }

    fn write(&mut self, index: usize, value: Value, expires_at_ms: u64, part: Part) {
        let lasting = expires_at_ms == LASTING_MS;
        if index >= self.watched_from {
            self.fault.get_or_insert(Invalid::Watched { index });
        } else if value.len() > VALUE_BYTES_MAX {
            self.fault.get_or_insert(Invalid::ValueTooLarge { index, bytes: value.len() });
        } else if expires_at_ms <= self.now_ms || (expires_at_ms - self.now_ms > LIFE_MS_MAX && !lasting) {
            self.fault.get_or_insert(Invalid::ExpiryOutOfRange { index });
        } else {
            self.replace(index, Some(Entry { value, expires_at_ms }), part);
        }
    }

    /// Removes the row of the `index`-th key.
    pub fn delete(&mut self, index: usize) {
        if index >= self.watched_from {
            self.fault.get_or_insert(Invalid::Watched { index });
        } else if self.entry(index).is_some() {
            self.replace(index, None, Part::Own);
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
            let row = &mut self.rows[undo.place as usize];
            self.growth.add(undo.part, row.entry.as_ref(), undo.entry.as_ref(), self.now_ms);
            row.entry = undo.entry;
            row.changed = undo.changed;
        }
    }

    /// Whether this update has written anything since `mark`.
    #[must_use]
    pub fn changed_since(&self, mark: Mark) -> bool {
        self.undo.len() > mark.0
    }

    /// Undoes all that this update has written.
    pub(crate) fn undo_all(&mut self) {
        self.rollback(Mark(0));
    }

    pub(crate) fn fault(&self) -> Option<Invalid> {
        self.fault
    }

    /// How many live rows this update adds and removes.
    pub(crate) fn growth(&self) -> Growth {
        self.growth
    }

    /// Ends the update; what it has written stays.
    pub(crate) fn end(mut self) -> Vec<Undo> {
        self.undo.clear();
        self.undo
    }

    fn replace(&mut self, index: usize, entry: Option<Entry>, part: Part) {
        let place = self.places[index];
        let row = &mut self.rows[place as usize];
        self.growth.add(part, row.entry.as_ref(), entry.as_ref(), self.now_ms);
        let before = std::mem::replace(&mut row.entry, entry);
        let changed = std::mem::replace(&mut row.changed, true);
        self.undo.push(Undo { place, entry: before, changed, part });
    }

    fn entry(&self, index: usize) -> Option<&Entry> {
        self.rows[self.places[index] as usize].entry.as_ref()
    }
}

impl Growth {
    /// Of all rows.
    pub(crate) fn total(self) -> i64 {
        self.own + self.beside + self.kept
    }

    fn add(&mut self, part: Part, before: Option<&Entry>, after: Option<&Entry>, now_ms: u64) {
        let part = match part {
            Part::Own => &mut self.own,
            Part::Beside => &mut self.beside,
            Part::Kept => &mut self.kept,
        };
        *part += live(after, now_ms) - live(before, now_ms);
    }
}

impl Row {
    /// A row as the store holds it.
    pub(crate) fn loaded(entry: Option<Entry>) -> Self {
        Self { held: entry.is_some(), entry, changed: false }
    }

    /// What the batch has made of the row, if anything.
    pub(crate) fn into_change(self) -> Option<NewState> {
        match self.entry {
            _ if !self.changed => None,
            Some(entry) => Some(NewState::Put(entry)),
            None if self.held => Some(NewState::Deleted),
            None => None,
        }
    }
}

fn live(entry: Option<&Entry>, now_ms: u64) -> i64 {
    i64::from(entry.is_some_and(|entry| entry.expires_at_ms > now_ms))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW_MS: u64 = 1000;

    fn entry(byte: u8, expires_at_ms: u64) -> Entry {
        Entry { value: [byte].as_slice().into(), expires_at_ms }
    }

    #[test]
    fn changes_are_what_differs_from_the_store() {
        type Write = fn(&mut View<'_>);
        let (live, dead) = (entry(1, NOW_MS + 1), entry(1, NOW_MS));
        let put = NewState::Put(entry(2, NOW_MS + 9));
        let table: [(&str, Option<Entry>, Write, Option<NewState>); 8] = [
            ("untouched", Some(entry(1, NOW_MS + 1)), |_| (), None),
            (
                "written",
                Some(live.clone()),
                |view| view.put(0, [2].as_slice(), NOW_MS + 9),
                Some(put.clone()),
            ),
            ("new", None, |view| view.put(0, [2].as_slice(), NOW_MS + 9), Some(put.clone())),
            ("renewed", Some(dead.clone()), |view| view.put(0, [2].as_slice(), NOW_MS + 9), Some(put)),
            ("deleted", Some(live), |view| view.delete(0), Some(NewState::Deleted)),
            ("deleted when expired", Some(dead), |view| view.delete(0), Some(NewState::Deleted)),
            ("deleted when absent", None, |view| view.delete(0), None),
            (
                "new and deleted",
                None,
                |view| {
                    view.put(0, [2].as_slice(), NOW_MS + 9);
                    view.delete(0);
                },
                None,
            ),
        ];
        for (what, stored, write, change) in table {
            let mut rows = [Row::loaded(stored)];
            write(&mut View::new(NOW_MS, &mut rows, &[0], 0, Vec::new()));
            let [row] = rows;
            assert_eq!(row.into_change(), change, "{what}");
        }
    }

    #[test]
    fn the_first_fault_is_told_and_changes_nothing() {
        let mut rows = [Row::loaded(None), Row::loaded(None)];
        let mut view = View::new(NOW_MS, &mut rows, &[1, 0], 0, Vec::new());
        view.put(1, [1].as_slice(), NOW_MS);
        view.put(0, vec![0; VALUE_BYTES_MAX + 1], NOW_MS + 1);
        assert_eq!(view.fault(), Some(Invalid::ExpiryOutOfRange { index: 1 }));
        assert!(!view.changed_since(Mark(0)));
    }

    #[derive(Debug, Clone)]
    enum Write {
        Put(usize, u8),
        PutBeside(usize, u8),
        PutKept(usize, u8),
        Delete(usize),
        Mark,
        Rollback,
    }

    fn write() -> impl Strategy<Value = Write> {
        prop_oneof![
            4 => (0..4_usize, any::<u8>()).prop_map(|(index, byte)| Write::Put(index, byte)),
            2 => (0..4_usize, any::<u8>()).prop_map(|(index, byte)| Write::PutBeside(index, byte)),
            2 => (0..4_usize, any::<u8>()).prop_map(|(index, byte)| Write::PutKept(index, byte)),
            3 => (0..4_usize).prop_map(Write::Delete),
            2 => Just(Write::Mark),
            2 => Just(Write::Rollback),
        ]
    }

    proptest! {
        #[test]
        fn a_rollback_restores_all_and_growth_is_what_live_rows_say(
            stored in prop::collection::vec(prop::option::of((any::<u8>(), NOW_MS - 1..NOW_MS + 3)), 4),
            writes in prop::collection::vec(write(), 0..40),
        ) {
            let stored: Vec<_> = stored.iter().map(|row| row.map(|(byte, at)| entry(byte, at))).collect();
            let mut rows: Vec<_> = stored.iter().cloned().map(Row::loaded).collect();
            let mut view = View::new(NOW_MS, &mut rows, &[2, 0, 3, 1], 0, Vec::new());
            let seen = |view: &View<'_>| -> Vec<_> { (0..4).map(|index| view.get(index).cloned()).collect() };
            let before = seen(&view);
            let mut marks = vec![(view.mark(), before.clone())];
            for write in writes {
                match write {
                    Write::Put(index, byte) => view.put(index, [byte].as_slice(), NOW_MS + 5),
                    Write::PutBeside(index, byte) => view.put_beside(index, [byte].as_slice(), NOW_MS + 5),
                    Write::PutKept(index, byte) => view.put_kept(index, [byte].as_slice(), NOW_MS + 5),
                    Write::Delete(index) => view.delete(index),
                    Write::Mark => marks.push((view.mark(), seen(&view))),
                    Write::Rollback => {
                        let (mark, state) = if marks.len() > 1 { marks.pop().unwrap() } else { marks[0].clone() };
                        view.rollback(mark);
                        prop_assert_eq!(seen(&view), state);
                        prop_assert!(!view.changed_since(mark));
                    }
                }
                let live = |rows: &[Option<Entry>]| i64::try_from(rows.iter().flatten().count()).unwrap();
                prop_assert_eq!(view.growth().total(), live(&seen(&view)) - live(&before));
            }
            view.undo_all();
            prop_assert_eq!(seen(&view), before);
            prop_assert_eq!(view.growth(), Growth::default());
            prop_assert!(view.end().is_empty());
            prop_assert!(rows.into_iter().all(|row| row.into_change().is_none()));
        }
    }
}
