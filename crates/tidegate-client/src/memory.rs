//! What an instance remembers: bounded, the oldest dropped first, and no identity in it.

use std::hash::{BuildHasher, RandomState};

use hashlink::LinkedHashMap;

/// The most that any one map of a client holds. At the largest, about a megabyte.
pub const ENTRIES_MAX: usize = 10_000;

/// Makes names of subjects that fit into a map: of one size, and of no use to whoever reads the memory.
#[derive(Debug, Default)]
pub(crate) struct Fingerprints {
    first: RandomState,
    second: RandomState,
}

/// 128 bits under keys of this process alone, so that nobody can make two subjects fall together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(u64, u64);

impl Fingerprints {
    /// Of texts, none of which runs into the next.
    pub(crate) fn of(&self, texts: &[&str]) -> Fingerprint {
        Fingerprint(self.first.hash_one(texts), self.second.hash_one(texts))
    }
}

/// A map of at most [`ENTRIES_MAX`] entries, each with an end. The one that was inserted first makes room,
/// however often it was used.
#[derive(Debug)]
pub(crate) struct Memory<V> {
    entries: LinkedHashMap<Fingerprint, Entry<V>, RandomState>,
}

#[derive(Debug)]
struct Entry<V> {
    ends_at_ms: u64,
    value: V,
}

impl<V> Memory<V> {
    /// What is remembered and has not ended.
    pub(crate) fn get(&mut self, key: Fingerprint, now_ms: u64) -> Option<&V> {
        if self.entries.get(&key)?.ends_at_ms <= now_ms {
            self.entries.remove(&key);
        }
        self.entries.get(&key).map(|entry| &entry.value)
    }

    /// Remembers a value until its end. One that is known keeps its age.
    pub(crate) fn put(&mut self, key: Fingerprint, ends_at_ms: u64, value: V) {
        if let Some(entry) = self.entries.get_mut(&key) {
            *entry = Entry { ends_at_ms, value };
            return;
        }
        if self.entries.len() >= ENTRIES_MAX {
            self.entries.pop_front();
        }
        self.entries.insert(key, Entry { ends_at_ms, value });
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

impl<V> Default for Memory<V> {
    fn default() -> Self {
        Self { entries: LinkedHashMap::with_hasher(RandomState::new()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_do_not_run_into_each_other() {
        let names = Fingerprints::default();
        let table =
            [&["a", "b:c"][..], &["a:b", "c"], &["ab", ":c"], &["a", "b", "c"], &["ab:c"], &["ab:c", ""]];
        let made: std::collections::HashSet<_> = table.iter().map(|texts| names.of(texts)).collect();
        assert_eq!(made.len(), table.len());
        assert_eq!(names.of(&["a", "b"]), names.of(&["a", "b"]));
        assert_ne!(names.of(&["a", "b"]), Fingerprints::default().of(&["a", "b"]), "keys of its own");
    }

    #[test]
    fn one_entry_too_many_drops_the_first() {
        let mut memory = Memory::default();
        let key = |number| Fingerprint(number, 0);
        for number in 0..ENTRIES_MAX as u64 {
            memory.put(key(number), 100, number);
        }
        // Neither using it nor extending it makes it younger.
        assert_eq!(memory.get(key(0), 1), Some(&0));
        memory.put(key(0), 200, 7);
        assert_eq!(memory.get(key(0), 150), Some(&7));
        memory.put(key(10_000), 100, 10_000);
        assert_eq!((memory.len(), memory.get(key(0), 1)), (ENTRIES_MAX, None));
        assert_eq!(memory.get(key(1), 1), Some(&1));
        assert_eq!(memory.get(key(10_000), 1), Some(&10_000));
    }

    #[test]
    fn a_million_take_no_more_room_than_ten_thousand() {
        let mut memory = Memory::default();
        for number in 0..ENTRIES_MAX as u64 {
            memory.put(Fingerprint(number, 0), u64::MAX, number);
        }
        let room = memory.entries.capacity();
        for number in 0..1_000_000 {
            memory.put(Fingerprint(number, 1), u64::MAX, number);
            if number % 100_000 == 0 {
                assert_eq!(memory.len(), ENTRIES_MAX);
            }
        }
        assert!(memory.entries.capacity() <= 2 * room, "{room} grew to {}", memory.entries.capacity());
    }

    proptest! {
        /// Against the plain way: a list in the order of insertion.
        #[test]
        fn it_is_a_list_in_order_of_insertion(
            asked in prop::collection::vec((0..8_u64, 0..3_u8, 0..40_u64), 0..60)
        ) {
            let (mut memory, mut model) = (Memory::default(), Vec::<(u64, u64)>::new());
            for (now_ms, (number, what, life_ms)) in asked.into_iter().enumerate() {
                let now_ms = now_ms as u64;
                if what == 0 {
                    memory.put(Fingerprint(number, 0), now_ms + life_ms, number);
                    match model.iter_mut().find(|(known, _)| *known == number) {
                        Some((_, ends)) => *ends = now_ms + life_ms,
                        None => model.push((number, now_ms + life_ms)),
                    }
                } else {
                    let known = memory.get(Fingerprint(number, 0), now_ms).copied();
                    model.retain(|(other, ends)| *other != number || *ends > now_ms);
                    let expected = model.iter().find(|(other, _)| *other == number).map(|(found, _)| *found);
                    prop_assert_eq!(known, expected);
                }
                prop_assert_eq!(memory.len(), model.len());
            }
        }
    }
}
