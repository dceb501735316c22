//! A batch between its two round trips: what was loaded, and what the decisions make of it.

use tidegate_store::{Change, Entry, Key, NewState};
use tokio_postgres::{Row, types::ToSql};

use crate::{connection::Connection, error::Failure, sweep::sweep_at_ms};

/// A transaction that holds the rows of a batch. Dropping it ends the session, and with it the transaction.
pub struct Batch {
    pub(crate) connection: Connection,
    pub(crate) now_ms: u64,
    pub(crate) keys: Vec<Key>,
    /// For each key, when a sweep would remove its row; none: there was no row.
    pub(crate) held: Vec<Option<u64>>,
}

/// What a commit sends: the columns of the rows that it writes, and the keys of others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Writes<'a> {
    pub(crate) updated: Columns<'a>,
    pub(crate) inserted: Columns<'a>,
    pub(crate) deleted: Vec<&'a [u8]>,
    /// Keys that were absent and stay so: what was decided may follow from that.
    pub(crate) absent: Vec<&'a [u8]>,
}

/// Rows, column by column.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns<'a> {
    pub(crate) keys: Vec<&'a [u8]>,
    pub(crate) values: Vec<&'a [u8]>,
    pub(crate) expires_at_ms: Vec<i64>,
    pub(crate) sweep_at_ms: Vec<i64>,
}

impl<'a> Writes<'a> {
    /// Sorts `changes` (ascending by key, each of one of `keys`) by what each needs.
    pub(crate) fn of(keys: &'a [Key], held: &[Option<u64>], now_ms: u64, changes: &'a [Change]) -> Self {
        let mut writes = Self::default();
        let mut changes = changes.iter().peekable();
        for (key, held) in keys.iter().zip(held) {
            let change = changes.next_if(|change| change.key == *key);
            match (change.map(|change| &change.state), held) {
                (Some(NewState::Put(entry)), Some(_)) => writes.updated.push(key, *held, entry, now_ms),
                (Some(NewState::Put(entry)), None) => writes.inserted.push(key, None, entry, now_ms),
                (Some(NewState::Deleted), Some(_)) => writes.deleted.push(key.as_bytes()),
                (Some(NewState::Deleted) | None, None) => writes.absent.push(key.as_bytes()),
                (None, Some(_)) => {}
            }
        }
        debug_assert!(changes.next().is_none(), "changes come in the order of their keys");
        writes
    }

    /// Whether nothing is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.updated.keys.is_empty() && self.inserted.keys.is_empty() && self.deleted.is_empty()
    }

    /// How many rows it adds, less those that it removes.
    pub(crate) fn growth(&self) -> i64 {
        // At most as many as a batch has keys.
        self.inserted.keys.len() as i64 - self.deleted.len() as i64
    }
}

impl<'a> Columns<'a> {
    /// For the statements that write rows.
    pub(crate) fn parameters<'s>(&'s self, secret_id: &'s i64) -> [&'s (dyn ToSql + Sync); 5] {
        [secret_id, &self.keys, &self.values, &self.expires_at_ms, &self.sweep_at_ms]
    }

    fn push(&mut self, key: &'a Key, held: Option<u64>, entry: &'a Entry, now_ms: u64) {
        self.keys.push(key.as_bytes());
        self.values.push(&entry.value);
        self.expires_at_ms.push(entry.expires_at_ms.cast_signed());
        self.sweep_at_ms.push(sweep_at_ms(held, entry.expires_at_ms, now_ms).cast_signed());
    }
}

/// The rows for some keys, in their order, and when a sweep would remove each.
pub(crate) type InOrder = (Vec<Option<Entry>>, Vec<Option<u64>>);

/// Puts the rows that the server found beside `keys`; both ascend.
pub(crate) fn in_order<'a>(keys: &[Key], found: impl Iterator<Item = &'a Row>) -> Result<InOrder, Failure> {
    let mut found = found.peekable();
    let mut rows = Vec::with_capacity(keys.len());
    let mut held = Vec::with_capacity(keys.len());
    for key in keys {
        let row = found.next_if(|row| row.get::<_, &[u8]>(0) == key.as_bytes());
        held.push(row.map(|row| row.get::<_, i64>(3).cast_unsigned()));
        rows.push(row.map(|row| Entry {
            value: row.get::<_, &[u8]>(1).into(),
            expires_at_ms: row.get::<_, i64>(2).cast_unsigned(),
        }));
    }
    match found.next() {
        None => Ok((rows, held)),
        Some(_) => Err(Failure::Unexpected("the server found rows that were not asked for")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_accounted_for() {
        let keys: Vec<Key> = (0..6).map(|byte| Key::from_bytes([byte; Key::BYTES])).collect();
        let held = [Some(90), None, Some(90), None, Some(90), None];
        let entry = Entry { value: [7].as_slice().into(), expires_at_ms: 108 };
        let put = |index: usize| Change { key: keys[index], state: NewState::Put(entry.clone()) };
        let delete = |index: usize| Change { key: keys[index], state: NewState::Deleted };
        let changes = [put(0), put(1), delete(2), delete(3)];
        let writes = Writes::of(&keys, &held, 100, &changes);
        let bytes = |index: usize| -> &[u8] { keys[index].as_bytes() };
        let columns = |index, sweep_at_ms| Columns {
            keys: vec![bytes(index)],
            values: vec![&[7]],
            expires_at_ms: vec![108],
            sweep_at_ms: vec![sweep_at_ms],
        };
        let right = Writes {
            updated: columns(0, 109),
            inserted: columns(1, 108),
            deleted: vec![bytes(2)],
            absent: vec![bytes(3), bytes(5)],
        };
        assert_eq!(writes, right);
        assert_eq!((writes.growth(), writes.is_empty()), (0, false));
        assert!(Writes::of(&keys, &held, 100, &[]).is_empty());
    }
}
