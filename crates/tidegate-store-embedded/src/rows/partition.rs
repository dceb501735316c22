//! A part of the rows, by hash: tables of slot ids over an arena, and the wheel.

use std::hash::{BuildHasher, Hasher, RandomState};

use hashbrown::{HashTable, hash_table::Entry};

use super::{
    arena::{Arena, Cursor},
    slot::{EXPIRES_AT_MS_MAX, Name, Slot},
    wheel::Wheel,
};
use crate::format::record_bytes;

/// Small enough that a table that grows moves its ids in well under a millisecond.
const TABLES: usize = 256;
/// Tags are seven bits.
const TAGS: usize = 128;

const CACHE_LINE_BYTES: usize = 64;
/// Of a larger slot the processor fetches the rest by itself.
const FETCHED_BYTES_MAX: usize = 256;

/// Rows that share some bits of their hash.
#[derive(Debug)]
pub(crate) struct Partition {
    tables: Box<[HashTable<u32>]>,
    /// Whoever can choose keys must not choose where they fall in the tables.
    seed: u64,
    arena: Arena,
    wheel: Wheel,
    rows_of_tag: [u64; TAGS],
    live_bytes: u64,
}

/// No memory can be had for another row of this size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfSlots;

impl Partition {
    pub(crate) fn new() -> Self {
        Self {
            tables: (0..TABLES).map(|_| HashTable::new()).collect(),
            seed: RandomState::new().build_hasher().finish(),
            arena: Arena::new(),
            wheel: Wheel::new(),
            rows_of_tag: [0; TAGS],
            live_bytes: 0,
        }
    }

    pub(crate) fn find(&self, name: &Name) -> Option<Slot<'_>> {
        let hash = mix(self.seed, name.key.hash_bits());
        let row = self.tables[table_of(hash)].find(hash, |&row| self.arena.slot(row).holds(name))?;
        Some(self.arena.slot(*row))
    }

    /// A slot that is most likely the row's, if there is one: its name was not looked at.
    pub(crate) fn likely(&self, name: &Name) -> Option<u32> {
        let hash = mix(self.seed, name.key.hash_bits());
        self.tables[table_of(hash)].find(hash, |_| true).copied()
    }

    /// Reads a little of every cache line that a slot of common size has.
    pub(crate) fn touch(&self, slot: u32) -> u8 {
        let bytes = self.arena.slot(slot).0;
        bytes.iter().take(FETCHED_BYTES_MAX).step_by(CACHE_LINE_BYTES).fold(0, |sum, byte| sum ^ byte)
    }

    /// Writes the row whole. `segment` is where the log has it.
    pub(crate) fn put(
        &mut self,
        name: &Name,
        expires_at_ms: u64,
        value: &[u8],
        segment: u32,
    ) -> Result<(), OutOfSlots> {
        let expires_at_ms = expires_at_ms.min(EXPIRES_AT_MS_MAX);
        let seed = self.seed;
        let hash = mix(seed, name.key.hash_bits());
        let arena = &mut self.arena;
        let found = self.tables[table_of(hash)].find_entry(hash, |&row| arena.slot(row).holds(name));
        if let Ok(mut entry) = found {
            let row = *entry.get();
            let old = arena.slot(row);
            let (old_expires_at_ms, old_value_bytes) = (old.expires_at_ms(), old.value_bytes());
            if Arena::suits(row, value.len()) {
                arena.slot_mut(row).set_row(expires_at_ms, value, segment);
                if expires_at_ms < old_expires_at_ms {
                    self.wheel.unfile(arena, row);
                    self.wheel.file(arena, row);
                }
            } else {
                let moved = new_row(arena, name, expires_at_ms, value, segment)?;
                *entry.get_mut() = moved;
                self.wheel.unfile(arena, row);
                arena.free(row);
                self.wheel.file(arena, moved);
            }
            self.live_bytes -= record_bytes(old_value_bytes);
        } else {
            let row = new_row(arena, name, expires_at_ms, value, segment)?;
            self.wheel.file(arena, row);
            self.tables[table_of(hash)]
                .insert_unique(hash, row, |&row| mix(seed, arena.slot(row).hash_bits()));
            self.rows_of_tag[usize::from(name.tag)] += 1;
        }
        self.live_bytes += record_bytes(value.len());
        Ok(())
    }

    /// Removes the row, if there is one.
    pub(crate) fn remove(&mut self, name: &Name) {
        let seed = self.seed;
        let hash = mix(seed, name.key.hash_bits());
        let (tables, arena) = (&mut self.tables, &mut self.arena);
        let table = &mut tables[table_of(hash)];
        let hash_of = |&row: &u32| mix(seed, arena.slot(row).hash_bits());
        let Entry::Occupied(entry) = table.entry(hash, |&row| arena.slot(row).holds(name), hash_of) else {
            return;
        };
        let row = entry.remove().0;
        if table.len() < table.capacity() / 8 {
            table.shrink_to(table.len() * 2, hash_of);
        }
        self.live_bytes -= record_bytes(arena.slot(row).value_bytes());
        self.rows_of_tag[usize::from(name.tag)] -= 1;
        self.wheel.unfile(arena, row);
        arena.free(row);
    }

    /// Sorts rows by what is due, in at most `steps_max` steps; answers whether everything that has expired
    /// by `now_ms` is known. Removes nothing.
    pub(crate) fn advance(&mut self, now_ms: u64, steps_max: usize) -> bool {
        self.wheel.advance(&mut self.arena, now_ms, steps_max)
    }

    /// Removes one row that is known to have expired by `now_ms`; answers whether there was one.
    pub(crate) fn remove_expired(&mut self, now_ms: u64) -> bool {
        let expired = self.wheel.first_expired(&mut self.arena, now_ms);
        expired.map(|row| self.arena.slot(row).name()).inspect(|name| self.remove(name)).is_some()
    }

    pub(crate) fn walk(
        &self,
        cursor: Cursor,
        slots_max: &mut usize,
        visit: impl FnMut(u32, Slot<'_>) -> bool,
    ) -> Option<Cursor> {
        self.arena.walk(cursor, slots_max, visit)
    }

    /// Notes that the log has the row in this slot in `segment` too, if the slot still holds one.
    pub(crate) fn copied(&mut self, row: u32, segment: u32) {
        if self.arena.row(row).is_some() {
            self.arena.slot_mut(row).set_segment(segment);
        }
    }

    pub(crate) fn rows_of_tag(&self, tag: u8) -> u64 {
        self.rows_of_tag[usize::from(tag)]
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows_of_tag.iter().sum()
    }

    /// Bytes that the rows take up in the log, about.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Bytes of memory, without the allocator's own.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let tables: usize = self.tables.iter().map(HashTable::allocation_size).sum();
        self.arena.page_bytes() + tables as u64
    }
}

fn new_row(
    arena: &mut Arena,
    name: &Name,
    expires_at_ms: u64,
    value: &[u8],
    segment: u32,
) -> Result<u32, OutOfSlots> {
    let row = arena.allocate(value.len()).ok_or(OutOfSlots)?;
    let mut slot = arena.slot_mut(row);
    slot.set_name(name);
    slot.set_row(expires_at_ms, value, segment);
    Ok(row)
}

/// Both halves of the product count, so that every bit of either has its say in every bit of the answer.
fn mix(seed: u64, hash_bits: u64) -> u64 {
    let product = u128::from(hash_bits ^ seed) * u128::from(ODD);
    #[expect(clippy::cast_possible_truncation, reason = "each half is wanted, and folded into the other")]
    let (low, high) = (product as u64, (product >> 64) as u64);
    low ^ high
}

/// The golden ratio's digits: odd, and with no pattern.
const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The table's own hash bits are the lowest and the highest seven; these are others.
const fn table_of(hash: u64) -> usize {
    (hash >> 40) as usize % TABLES
}
