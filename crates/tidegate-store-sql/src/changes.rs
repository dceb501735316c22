//! The changes of a batch, sorted by what has to be done for them.

use tidegate_store::{Change, Entry, Key, NewState};

/// What a batch does to the rows that it loaded.
#[derive(Debug, Default)]
pub(crate) struct Sorted<'a> {
    /// Rows that were not there.
    pub(crate) inserts: Vec<(&'a Key, &'a Entry)>,
    /// Rows that were.
    pub(crate) updates: Vec<(&'a Key, &'a Entry)>,
    /// Rows that were there.
    pub(crate) deletes: Vec<&'a Key>,
    /// Keys without a row, which still have none: others may have inserted one since.
    pub(crate) left_absent: Vec<&'a Key>,
}

impl<'a> Sorted<'a> {
    /// Sorts `changes` to rows of which those of `absent` (ascending) were not there.
    pub(crate) fn new(absent: &'a [Key], changes: &'a [Change]) -> Self {
        let mut sorted = Self::default();
        let mut inserted = vec![false; absent.len()];
        for change in changes {
            match (absent.binary_search(&change.key), &change.state) {
                (Ok(place), NewState::Put(entry)) => {
                    inserted[place] = true;
                    sorted.inserts.push((&change.key, entry));
                }
                (Ok(_), NewState::Deleted) => {}
                (Err(_), NewState::Put(entry)) => sorted.updates.push((&change.key, entry)),
                (Err(_), NewState::Deleted) => sorted.deletes.push(&change.key),
            }
        }
        let left = absent.iter().zip(inserted).filter(|(_, inserted)| !inserted);
        sorted.left_absent = left.map(|(key, _)| key).collect();
        sorted
    }

    /// How many rows more there are afterwards.
    pub(crate) fn growth(&self) -> i64 {
        difference(self.inserts.len(), self.deletes.len())
    }
}

/// How many rows more `added` are than `removed`.
pub(crate) fn difference(added: usize, removed: usize) -> i64 {
    let rows = |rows| i64::try_from(rows).expect("no batch has so many rows");
    rows(added) - rows(removed)
}

/// The keys without a row: `keys` and `rows` go together.
pub(crate) fn absent(keys: &[Key], rows: &[Option<Entry>]) -> Vec<Key> {
    keys.iter().zip(rows).filter(|(_, row)| row.is_none()).map(|(key, _)| *key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_follows_from_what_was_there() {
        let keys: Vec<Key> = (1..=6).map(|byte| Key::from_bytes([byte; Key::BYTES])).collect();
        let entry = Entry { value: b"x".as_slice().into(), expires_at_ms: 5 };
        let rows = [None, None, None, Some(entry.clone()), Some(entry.clone()), Some(entry.clone())];
        let change = |place: usize, state| Change { key: keys[place], state };
        let changes = [
            change(0, NewState::Put(entry.clone())),
            change(1, NewState::Deleted),
            change(3, NewState::Put(entry.clone())),
            change(4, NewState::Deleted),
        ];
        let absent = absent(&keys, &rows);
        assert_eq!(absent, keys[..3]);
        let sorted = Sorted::new(&absent, &changes);
        assert_eq!(sorted.inserts, [(&keys[0], &entry)]);
        assert_eq!(sorted.updates, [(&keys[3], &entry)]);
        assert_eq!(sorted.deletes, [&keys[4]]);
        assert_eq!(sorted.left_absent, [&keys[1], &keys[2]]);
        assert_eq!(sorted.growth(), 0);
        assert_eq!(Sorted::new(&absent, &changes[..1]).growth(), 1);
        assert_eq!(Sorted::new(&absent, &changes[3..]).growth(), -1);
    }
}
