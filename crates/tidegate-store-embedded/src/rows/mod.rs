//! The live rows, in memory.

mod arena;
mod partition;
mod slot;
#[cfg(test)]
mod tests;
mod wheel;

use std::hint::black_box;

pub(crate) use arena::Cursor;
pub(crate) use partition::{OutOfSlots, Partition};
pub(crate) use slot::{Name, Slot};

/// So that as many threads can fill them when a store is opened.
pub(crate) const PARTITIONS: usize = 4;
/// Rows that are fetched together; what a batch reads stays in the cache until it is written.
pub(crate) const FETCHED_AT_ONCE: usize = 64;

/// All rows.
#[derive(Debug)]
pub(crate) struct Rows {
    partitions: [Partition; PARTITIONS],
    /// The one whose turn it is to be swept.
    turn: usize,
}

/// Where a walk over all rows stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    partition: usize,
    cursor: Cursor,
}

/// A row that a walk met, to name it later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Met {
    partition: usize,
    row: u32,
}

impl Rows {
    pub(crate) fn new() -> Self {
        Self::from_partitions(std::array::from_fn(|_| Partition::new()))
    }

    pub(crate) fn from_partitions(partitions: [Partition; PARTITIONS]) -> Self {
        Self { partitions, turn: 0 }
    }

    /// The row, expired or not.
    pub(crate) fn find(&self, name: &Name) -> Option<Slot<'_>> {
        self.partitions[partition_of(name)].find(name)
    }

    /// Has the processor fetch rows into its cache, many at a time: looked up one by one, each would be waited
    /// for by itself.
    pub(crate) fn fetch(&self, names: impl Iterator<Item = Name>) {
        let mut slots = [None; FETCHED_AT_ONCE];
        for (slot, name) in slots.iter_mut().zip(names) {
            let partition = &self.partitions[partition_of(&name)];
            *slot = partition.likely(&name).map(|slot| (partition, slot));
        }
        let touched = slots.iter().flatten().map(|(partition, slot)| partition.touch(*slot));
        black_box(touched.fold(0, |sum, byte| sum ^ byte));
    }

    /// Writes a row whole, which the log has in `segment`.
    pub(crate) fn put(
        &mut self,
        name: &Name,
        expires_at_ms: u64,
        value: &[u8],
        segment: u32,
    ) -> Result<(), OutOfSlots> {
        self.partitions[partition_of(name)].put(name, expires_at_ms, value, segment)
    }

    /// Removes a row, if there is one.
    pub(crate) fn remove(&mut self, name: &Name) {
        self.partitions[partition_of(name)].remove(name);
    }

    /// Sorts rows by what is due, in about `steps_max` steps; answers whether all that has expired by `now_ms`
    /// is known. Removes nothing.
    pub(crate) fn advance(&mut self, now_ms: u64, steps_max: usize) -> bool {
        let steps_max = steps_max.div_ceil(PARTITIONS);
        let there = self
            .partitions
            .iter_mut()
            .filter_map(|partition| partition.advance(now_ms, steps_max).then_some(()));
        there.count() == PARTITIONS
    }

    /// Removes up to `rows_max` rows that are known to have expired by `now_ms`; answers how many.
    pub(crate) fn remove_expired(&mut self, now_ms: u64, rows_max: usize) -> usize {
        let mut removed = 0;
        let mut without = 0;
        while removed < rows_max && without < PARTITIONS {
            if self.partitions[self.turn].remove_expired(now_ms) {
                removed += 1;
                without = 0;
            } else {
                self.turn = (self.turn + 1) % PARTITIONS;
                without += 1;
            }
        }
        removed
    }

    /// Shows about `slots_max` slots to `visit`, from `place` on, until it answers false; answers where to go
    /// on, or nothing at the end.
    pub(crate) fn walk(
        &self,
        place: Place,
        mut slots_max: usize,
        mut visit: impl FnMut(Met, Slot<'_>) -> bool,
    ) -> Option<Place> {
        let mut cursor = place.cursor;
        for partition in place.partition..PARTITIONS {
            let rest = &self.partitions[partition];
            if let Some(cursor) =
                rest.walk(cursor, &mut slots_max, |row, slot| visit(Met { partition, row }, slot))
            {
                return Some(Place { partition, cursor });
            }
            cursor = Cursor::default();
        }
        None
    }

    /// Notes that the log has a row in `segment` too.
    pub(crate) fn copied(&mut self, met: Met, segment: u32) {
        self.partitions[met.partition].copied(met.row, segment);
    }

    /// The rows that were written under the secret with this tag.
    pub(crate) fn count_of_tag(&self, tag: u8) -> u64 {
        self.partitions.iter().map(|partition| partition.rows_of_tag(tag)).sum()
    }

    /// All rows.
    pub(crate) fn count(&self) -> u64 {
        self.partitions.iter().map(Partition::rows).sum()
    }

    /// Bytes that the rows take up in the log, about.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.partitions.iter().map(Partition::live_bytes).sum()
    }

    /// Bytes of memory, without the allocator's own.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.partitions.iter().map(Partition::memory_bytes).sum()
    }
}

/// In which partition a row belongs.
pub(crate) fn partition_of(name: &Name) -> usize {
    (name.key.hash_bits() >> 50) as usize % PARTITIONS
}
