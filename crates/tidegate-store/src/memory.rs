//! The backend in memory: lost with the process, swept without looking at live rows.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    future::{Ready, ready},
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
};

use hashbrown::HashTable;
use parking_lot::Mutex;

use crate::{Backend, BackendError, Change, Entry, Key, Loaded, NewState, Scope, Swept, clock::Clock};

/// Rows in a hash table, on a clock of the process. [`crate::Driver`] bounds how many. A sweep costs nothing
/// for rows that live on untouched, so it may well run every second.
#[derive(Debug)]
pub struct MemoryBackend {
    clock: Arc<dyn Clock>,
    table: Mutex<Table>,
}

/// The rows, and when each is to be looked at.
#[derive(Debug)]
struct Table {
    rows: HashTable<Stored>,
    /// At least one entry for each row, at [`Stored::filed_ms`]; entries of rows that have gone or were filed
    /// elsewhere are skipped.
    queue: BinaryHeap<Reverse<(u64, Key)>>,
    seed: u64,
}

#[derive(Debug)]
struct Stored {
    key: Key,
    entry: Entry,
    /// When the row is looked at, in ms: not after its expiry. A row whose life was extended is filed anew
    /// only then, so that extending it, which every hit does, costs nothing.
    filed_ms: u64,
}

impl MemoryBackend {
    /// An empty store on `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, table: Mutex::new(Table::new()) }
    }
}

impl Backend for MemoryBackend {
    type Batch = ();
    type Settled = Ready<Result<(), BackendError>>;

    fn shared(&self) -> bool {
        false
    }

    async fn load(&self, keys: &[Key]) -> Result<Loaded<()>, BackendError> {
        let table = self.table.lock();
        let rows = keys.iter().map(|key| table.find(key).cloned()).collect();
        Ok(Loaded { now_ms: self.clock.now_ms(), rows, rows_held: Some(table.rows.len() as u64), batch: () })
    }

    async fn commit(&self, (): (), changes: Vec<Change>) -> Result<Self::Settled, BackendError> {
        let mut table = self.table.lock();
        for change in changes {
            match change.state {
                NewState::Put(entry) => table.put(change.key, entry),
                NewState::Deleted => table.remove(&change.key),
            }
        }
        table.forget_stale();
        Ok(ready(Ok(())))
    }

    async fn keys_in(&self, scope: Scope, keys_max: usize) -> Result<Vec<Key>, BackendError> {
        let now_ms = self.clock.now_ms();
        let table = self.table.lock();
        let live = table.rows.iter().filter(|row| row.entry.expires_at_ms > now_ms && scope.holds(&row.key));
        Ok(live.map(|row| row.key).take(keys_max).collect())
    }

    async fn sweep(&self, rows_max: usize) -> Result<Swept, BackendError> {
        let removed = self.table.lock().sweep(self.clock.now_ms(), rows_max);
        Ok(Swept::up_to(rows_max, removed))
    }

    async fn count(&self) -> Result<u64, BackendError> {
        Ok(self.table.lock().rows.len() as u64)
    }
}

impl Table {
    fn new() -> Self {
        Self {
            rows: HashTable::new(),
            queue: BinaryHeap::new(),
            seed: RandomState::new().build_hasher().finish(),
        }
    }

    fn find(&self, key: &Key) -> Option<&Entry> {
        self.rows.find(hash(self.seed, key), |row| row.key == *key).map(|row| &row.entry)
    }

    fn put(&mut self, key: Key, entry: Entry) {
        let (seed, expires_at_ms) = (self.seed, entry.expires_at_ms);
        let filed_ms = match self.rows.find_mut(hash(seed, &key), |row| row.key == key) {
            Some(row) => {
                row.entry = entry;
                let filed_ms = row.filed_ms;
                row.filed_ms = filed_ms.min(expires_at_ms);
                Some(filed_ms)
            }
            None => {
                let row = Stored { key, entry, filed_ms: expires_at_ms };
                self.rows.insert_unique(hash(seed, &key), row, |row| hash(seed, &row.key));
                None
            }
        };
        if filed_ms.is_none_or(|filed_ms| filed_ms > expires_at_ms) {
            self.queue.push(Reverse((expires_at_ms, key)));
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Ok(row) = self.rows.find_entry(hash(self.seed, key), |row| row.key == *key) {
            row.remove();
        }
    }

    fn sweep(&mut self, now_ms: u64, rows_max: usize) -> usize {
        let mut removed = 0;
        while removed < rows_max {
            let Some(&Reverse((filed_ms, key))) = self.queue.peek().filter(|due| due.0.0 <= now_ms) else {
                break;
            };
            self.queue.pop();
            let Ok(mut row) = self.rows.find_entry(hash(self.seed, &key), |row| row.key == key) else {
                continue;
            };
            let stored = row.get_mut();
            if stored.filed_ms != filed_ms {
                continue;
            }
            if stored.entry.expires_at_ms <= now_ms {
                row.remove();
                removed += 1;
            } else {
                stored.filed_ms = stored.entry.expires_at_ms;
                self.queue.push(Reverse((stored.filed_ms, key)));
            }
        }
        self.give_back_memory();
        removed
    }

    /// Files all rows anew when most of the queue is stale: rows that come and go, or whose lives are cut
    /// short, would let it grow without end.
    fn forget_stale(&mut self) {
        if self.queue.len() > 2 * self.rows.len() + SMALL {
            for row in &mut self.rows {
                row.filed_ms = row.entry.expires_at_ms;
            }
            self.queue = self.rows.iter().map(|row| Reverse((row.filed_ms, row.key))).collect();
        }
    }

    /// After a flood has expired its memory goes back, in steps so large that shrinking costs little a row.
    fn give_back_memory(&mut self) {
        let (rows, seed) = (self.rows.len(), self.seed);
        if self.rows.capacity() > 4 * rows + SMALL {
            self.rows.shrink_to(2 * rows, |row| hash(seed, &row.key));
        }
        if self.queue.capacity() > 4 * self.queue.len() + SMALL {
            self.queue.shrink_to(2 * self.queue.len());
        }
    }
}

/// Whoever can choose what is hashed into a key must not choose where it falls in the table: the seed and
/// both halves of the product see to that.
fn hash(seed: u64, key: &Key) -> u64 {
    let product = u128::from(key.hash_bits() ^ seed) * u128::from(ODD);
    #[expect(clippy::cast_possible_truncation, reason = "each half is wanted, and folded into the other")]
    let (low, high) = (product as u64, (product >> 64) as u64);
    low ^ high
}

/// The golden ratio's digits: odd, and with no pattern.
const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Rows below which memory is not worth giving back.
const SMALL: usize = 1024;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn key(number: u32) -> Key {
        let mut bytes = [0; Key::BYTES];
        bytes[8..12].copy_from_slice(&number.to_le_bytes());
        Key::from_bytes(bytes)
    }

    fn entry(expires_at_ms: u64) -> Entry {
        Entry { value: [1; 8].as_slice().into(), expires_at_ms }
    }

    #[test]
    fn memory_comes_back_after_a_flood() {
        let mut table = Table::new();
        for number in 0..100_000 {
            table.put(key(number), entry(1000 + u64::from(number)));
        }
        let (rows, queue) = (table.rows.capacity(), table.queue.capacity());
        for _ in 0..101 {
            table.sweep(200_000, 1000);
        }
        assert!(table.rows.is_empty() && table.queue.is_empty());
        assert!(table.rows.capacity() < rows / 20, "{} of {rows}", table.rows.capacity());
        assert!(table.queue.capacity() < queue / 20, "{} of {queue}", table.queue.capacity());
    }

    #[test]
    fn rows_that_come_and_go_leave_nothing_behind() {
        let mut table = Table::new();
        for turn in 0..100_000 {
            table.put(key(turn % 5), entry(1_000_000_000));
            table.remove(&key(turn % 5));
            table.forget_stale();
        }
        assert!(table.queue.len() <= SMALL + 1, "{} stale entries", table.queue.len());
    }

    #[test]
    fn a_row_whose_life_is_extended_is_filed_once() {
        let mut table = Table::new();
        for now_ms in 0..10_000 {
            table.put(key(1), entry(now_ms + 60_000));
        }
        assert_eq!(table.queue.len(), 1);
        assert_eq!(table.sweep(60_000, 10), 0);
        assert_eq!(table.sweep(69_999, 10), 1);
    }

    #[test]
    fn a_row_whose_life_was_cut_short_and_extended_again_is_filed_once() {
        let mut table = Table::new();
        for expires_at_ms in [100, 50, 1000] {
            table.put(key(1), entry(expires_at_ms));
        }
        assert_eq!(table.sweep(200, 10), 0);
        assert_eq!(table.queue.len(), 1, "where it was filed before is forgotten");
        assert_eq!(table.sweep(1000, 10), 1);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Put { number: u32, life_ms: u64 },
        Remove { number: u32 },
        Sweep { rows_max: usize },
        Pass { ms: u64 },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..20_u32, 1..100_u64).prop_map(|(number, life_ms)| Step::Put { number, life_ms }),
            2 => (0..20_u32).prop_map(|number| Step::Remove { number }),
            1 => (1..8_usize).prop_map(|rows_max| Step::Sweep { rows_max }),
            1 => (1..60_u64).prop_map(|ms| Step::Pass { ms }),
        ]
    }

    proptest! {
        #[test]
        fn a_sweep_removes_just_what_has_expired(steps in prop::collection::vec(step(), 1..200)) {
            let (mut table, mut model, mut now_ms) = (Table::new(), BTreeMap::new(), 0);
            for step in steps {
                match step {
                    Step::Put { number, life_ms } => {
                        table.put(key(number), entry(now_ms + life_ms));
                        model.insert(number, now_ms + life_ms);
                    }
                    Step::Remove { number } => {
                        table.remove(&key(number));
                        model.remove(&number);
                    }
                    Step::Sweep { rows_max } => {
                        let expired = model.values().filter(|at| **at <= now_ms).count();
                        let removed = table.sweep(now_ms, rows_max);
                        prop_assert_eq!(removed, expired.min(rows_max));
                        model.retain(|number, at| *at > now_ms || table.find(&key(*number)).is_some());
                        prop_assert_eq!(table.rows.len(), model.len());
                    }
                    Step::Pass { ms } => now_ms += ms,
                }
                for (number, expires_at_ms) in &model {
                    prop_assert_eq!(table.find(&key(*number)), Some(&entry(*expires_at_ms)));
                }
            }
        }
    }
}
