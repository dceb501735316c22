//! The identities that were refused of late: a caller who goes on asking costs the store nothing more.
//!
//! Only a memory: whoever falls out of it, or asks after a restart, is refused by the durable quota again.

use std::{
    collections::{HashMap, VecDeque},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use tidegate_core::admission::Axis;
use tidegate_protocol::{identity::Digest, name::Family};

use crate::families::Identity;

/// Whose quota of which family.
type Who = (Family, Axis, Digest);

#[derive(Debug)]
pub(crate) struct Refusals {
    capacity: usize,
    /// For how long a refusal is remembered at most.
    life_ms: u64,
    /// How many are remembered, so that nobody takes the lock while there is none.
    count: AtomicUsize,
    /// Counts the resets, so that what was decided before one is not remembered after it. Moves under the lock.
    resets: AtomicU64,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    known: HashMap<Who, Known>,
    /// The oldest first.
    order: VecDeque<Who>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    /// What it may still spend.
    remaining: u64,
    /// The end of the UTC day, in ms since the epoch.
    until_ms: u64,
    /// When it is looked up again.
    known_until_ms: u64,
}

/// A point in time to remember from; see [`Refusals::remember`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    resets: u64,
}

/// A refusal from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remembered {
    pub(crate) axis: Axis,
    pub(crate) until_ms: u64,
}

impl Refusals {
    /// A memory of `capacity` identities, 0: none, for `life_ms` at most.
    pub(crate) fn new(capacity: usize, life_ms: u64) -> Self {
        Self {
            capacity,
            life_ms,
            count: AtomicUsize::new(0),
            resets: AtomicU64::new(0),
            memory: Mutex::default(),
        }
    }

    /// Whether one of `identities` is known to have less left than `commands`. If not, says from which point
    /// on a refusal may be remembered.
    pub(crate) fn look(
        &self,
        family: Family,
        identities: &[Identity],
        commands: u64,
        now_ms: u64,
    ) -> Result<Before, Remembered> {
        let before = Before { resets: self.resets.load(Ordering::Acquire) };
        if self.count.load(Ordering::Acquire) == 0 {
            return Ok(before);
        }
        let memory = self.memory.lock();
        for (axis, digest) in identities {
            let known = memory.known.get(&(family, *axis, *digest));
            if let Some(known) =
                known.filter(|known| known.known_until_ms > now_ms && known.remaining < commands)
            {
                return Err(Remembered { axis: *axis, until_ms: known.until_ms });
            }
        }
        Ok(before)
    }

    /// Remembers that an identity has only `remaining` left, which was decided after `before`.
    pub(crate) fn remember(
        &self,
        before: Before,
        family: Family,
        identity: Identity,
        remaining: u64,
        until_ms: u64,
        now_ms: u64,
    ) {
        let mut memory = self.memory.lock();
        // What was decided before a reset may be wrong after it.
        if self.capacity == 0 || self.resets.load(Ordering::Acquire) != before.resets {
            return;
        }
        let who = (family, identity.0, identity.1);
        let known_until_ms = until_ms.min(now_ms.saturating_add(self.life_ms));
        let known = Known { remaining, until_ms, known_until_ms };
        if memory.known.insert(who, known).is_none() {
            if memory.order.len() == self.capacity
                && let Some(oldest) = memory.order.pop_front()
            {
                memory.known.remove(&oldest);
            }
            memory.order.push_back(who);
        }
        self.count.store(memory.known.len(), Ordering::Release);
    }

    /// Forgets everybody: quotas were reset.
    pub(crate) fn clear(&self) {
        let mut memory = self.memory.lock();
        *memory = Memory::default();
        self.resets.fetch_add(1, Ordering::AcqRel);
        self.count.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family() -> Family {
        Family::parse("proxy").unwrap()
    }

    fn source(number: usize) -> Identity {
        (Axis::Source, Digest::parse(&format!("{number:0>43}")).unwrap())
    }

    fn remember(refusals: &Refusals, number: usize, remaining: u64) {
        let before = refusals.look(family(), &[], 1, 0).unwrap();
        refusals.remember(before, family(), source(number), remaining, 100, 0);
    }

    fn is_refused(refusals: &Refusals, number: usize, commands: u64, now_ms: u64) -> bool {
        refusals.look(family(), &[source(number)], commands, now_ms).is_err()
    }

    #[test]
    fn an_identity_is_refused_what_it_has_not_left_until_the_day_ends() {
        let refusals = Refusals::new(10, u64::MAX);
        remember(&refusals, 1, 2);
        let table =
            [(1, 2, 0, false), (1, 3, 0, true), (1, 3, 99, true), (1, 3, 100, false), (2, 3, 0, false)];
        for (number, commands, now_ms, refused) in table {
            assert_eq!(
                is_refused(&refusals, number, commands, now_ms),
                refused,
                "{number} {commands} {now_ms}"
            );
        }
        let other = Family::parse("password").unwrap();
        assert!(refusals.look(other, &[source(1)], 3, 0).is_ok(), "another family's quota is another");
        refusals.clear();
        assert!(!is_refused(&refusals, 1, 3, 0));
    }

    #[test]
    fn the_last_ones_are_remembered_up_to_the_bound() {
        let refusals = Refusals::new(10, u64::MAX);
        (0..25).for_each(|number| remember(&refusals, number, 0));
        remember(&refusals, 24, 0);
        let known: Vec<usize> = (0..25).filter(|number| is_refused(&refusals, *number, 1, 0)).collect();
        assert_eq!(known, (15..25).collect::<Vec<_>>());
        assert_eq!(refusals.memory.lock().known.len(), 10);
        let none = Refusals::new(0, u64::MAX);
        remember(&none, 1, 0);
        assert!(!is_refused(&none, 1, 1, 0));
    }

    #[test]
    fn what_was_decided_before_a_reset_is_not_remembered_after_it() {
        let refusals = Refusals::new(10, u64::MAX);
        let before = refusals.look(family(), &[], 1, 0).unwrap();
        refusals.clear();
        refusals.remember(before, family(), source(1), 0, 100, 0);
        assert!(!is_refused(&refusals, 1, 1, 0));
    }
}
