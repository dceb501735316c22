//! Which rows expire when: a hierarchical timing wheel (Varghese and Lauck, 1987) whose buckets are lists
//! through the slots themselves, so that a row is filed and taken out in a few steps and nothing goes stale.
//!
//! Eight levels of 64 buckets cover 48 bits of milliseconds, exactly: a row is filed by the highest digit (to
//! base 64) in which its expiry differs from where the wheel stands, and moves down a level when that digit
//! is reached. A row whose expiry was put off stays where it is until then.

use super::{arena::Arena, slot::NONE};

const LEVELS: usize = 8;
const DIGIT_BITS: usize = 6;
const BUCKETS: usize = 1 << DIGIT_BITS;
/// The bucket of rows that were found expired and wait to be removed.
const EXPIRED: usize = LEVELS * BUCKETS;

/// The buckets, and where the wheel stands.
#[derive(Debug)]
pub(crate) struct Wheel {
    heads: [u32; EXPIRED + 1],
    /// A bit for each bucket of a level that is not empty.
    occupied: [u64; LEVELS],
    stands_at_ms: u64,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self { heads: [NONE; EXPIRED + 1], occupied: [0; LEVELS], stands_at_ms: 0 }
    }

    /// Files a row that is in no bucket, by its expiry.
    pub(crate) fn file(&mut self, arena: &mut Arena, row: u32) {
        self.file_at(arena, row, self.stands_at_ms);
    }

    /// The same, at `now_ms`, where the wheel may not stand yet.
    fn file_at(&mut self, arena: &mut Arena, row: u32, now_ms: u64) {
        let expires_at_ms = arena.slot(row).expires_at_ms();
        let bucket = if expires_at_ms <= now_ms.max(self.stands_at_ms) {
            EXPIRED
        } else {
            self.bucket_of(expires_at_ms)
        };
        let head = self.heads[bucket];
        let mut slot = arena.slot_mut(row);
        slot.set_bucket(u16::try_from(bucket).expect("there are 513 buckets"));
        slot.set_previous(NONE);
        slot.set_next(head);
        if head != NONE {
            arena.slot_mut(head).set_previous(row);
        }
        self.set_head(bucket, row);
    }

    /// Takes a row out of its bucket.
    pub(crate) fn unfile(&mut self, arena: &mut Arena, row: u32) {
        let slot = arena.slot(row);
        let (bucket, previous, next) = (usize::from(slot.bucket()), slot.previous(), slot.next());
        if next != NONE {
            arena.slot_mut(next).set_previous(previous);
        }
        if previous == NONE {
            self.set_head(bucket, next);
        } else {
            arena.slot_mut(previous).set_next(next);
        }
    }

    /// Moves on to `now_ms`, in at most `steps_max` steps of one row each; answers whether it got there.
    pub(crate) fn advance(&mut self, arena: &mut Arena, now_ms: u64, mut steps_max: usize) -> bool {
        while let Some((bucket, due_ms)) = self.next_due().filter(|&(_, due_ms)| due_ms <= now_ms) {
            self.stands_at_ms = self.stands_at_ms.max(due_ms);
            if steps_max == 0 {
                return false;
            }
            steps_max -= 1;
            let row = self.heads[bucket];
            self.unfile(arena, row);
            self.file_at(arena, row, now_ms);
        }
        self.stands_at_ms = self.stands_at_ms.max(now_ms);
        true
    }

    /// A row that is known to have expired by `now_ms`, or by where the wheel stands: somebody may have looked
    /// at the clock later and been here earlier.
    pub(crate) fn first_expired(&mut self, arena: &mut Arena, now_ms: u64) -> Option<u32> {
        let now_ms = now_ms.max(self.stands_at_ms);
        loop {
            let row = Some(self.heads[EXPIRED]).filter(|&row| row != NONE)?;
            if arena.slot(row).expires_at_ms() <= now_ms {
                return Some(row);
            }
            // It was written again after it was found expired, and so belongs in another bucket.
            self.unfile(arena, row);
            self.file(arena, row);
        }
    }

    /// The bucket of an expiry that lies after where the wheel stands.
    fn bucket_of(&self, expires_at_ms: u64) -> usize {
        let differing = (self.stands_at_ms ^ expires_at_ms).ilog2() as usize;
        let level = (differing / DIGIT_BITS).min(LEVELS - 1);
        level * BUCKETS + digit(expires_at_ms, level)
    }

    /// The bucket that is due first, and when.
    fn next_due(&self) -> Option<(usize, u64)> {
        let due = |level: usize| {
            let bits = self.occupied[level];
            (bits != 0).then(|| {
                let index = bits.trailing_zeros() as usize;
                let turn_start_ms =
                    self.stands_at_ms >> (DIGIT_BITS * (level + 1)) << (DIGIT_BITS * (level + 1));
                (level * BUCKETS + index, turn_start_ms + ((index as u64) << (DIGIT_BITS * level)))
            })
        };
        (0..LEVELS).filter_map(due).min_by_key(|&(_, due_ms)| due_ms)
    }

    fn set_head(&mut self, bucket: usize, row: u32) {
        self.heads[bucket] = row;
        if let Some(occupied) = self.occupied.get_mut(bucket / BUCKETS) {
            let bit = 1 << (bucket % BUCKETS);
            *occupied = if row == NONE { *occupied & !bit } else { *occupied | bit };
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a digit has six bits")]
const fn digit(ms: u64, level: usize) -> usize {
    (ms >> (DIGIT_BITS * level)) as usize % BUCKETS
}
