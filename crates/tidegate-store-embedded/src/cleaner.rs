//! Keeps the log short: copies the rows that only old segments hold to its end, in bounded steps between
//! commits, so that the old segments can go, oldest first.
//!
//! Removed rows need no copy of their removal: by the time a segment goes, every older one is gone.

use std::io;

use parking_lot::Mutex;

use crate::{
    format::{FrameKind, encode_put},
    log::{Log, Need},
    rows::{Met, Place, Rows},
};

/// Cleaning starts when the log has more than this many quarters of the live bytes (and two segments), and
/// the spare files are removed beyond `DISK_QUARTERS`: the cleaning itself stays below the difference.
const START_QUARTERS: u64 = 9;
const DISK_QUARTERS: u64 = 11;
/// Segments that the log may have whatever is live: the current one, and one to clean.
const SEGMENTS_FREE: u64 = 2;
/// The same when the log can't grow any more.
const STARVED_QUARTERS: u64 = 6;
const STARVED_SEGMENTS_FREE: u64 = 1;
/// Segments on the disk whatever is live: those, the next one, the one kept for cleaning, and a spare one.
const DISK_SEGMENTS_FREE: u64 = 5;
/// The part of the log that is cleaned in one walk over the rows.
const SEGMENTS_SHARE: usize = 8;
/// A walk ends by the time that the log has grown by this part of the live bytes.
const WALK_SHARE: u64 = 8;
/// The least slots of a step: some 50 microseconds.
const SLOTS_MIN: u64 = 2048;
/// The least bytes of the copies of a step.
const COPIES_BYTES_MIN: usize = 64 * 1024;
/// More than the row that fills a step, and the frame around them, take up.
const LAST_BYTES_MAX: u64 = 16 * 1024;
/// The most of the copies when room is scarce, as a part of a segment: what is too large for the rest of a segment
/// leaves that empty.
const COPIES_SHARE: u64 = 128;

/// The cleaning that is under way, if any.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    walk: Option<Walk>,
    copies: Vec<Met>,
    copied_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Walk {
    /// Segments before this one shall go.
    before: u32,
    place: Place,
}

impl Cleaner {
    /// Whether there is something to do.
    pub(crate) fn wants_step(&self, log: &Log, live_bytes: u64) -> bool {
        // What the last walk has freed is needed for the next one then.
        let waits = log.is_starved() && log.is_releasing();
        let starts = log.used_bytes() > start_at(log, live_bytes) && log.sealed().len() > 0;
        self.walk.is_some() || starts && !waits
    }

    /// Does one step, in proportion to the `written_bytes` of the commit before it.
    ///
    /// # Errors
    /// The disk failed; the step is done again by the next call.
    pub(crate) fn step(
        &mut self,
        log: &mut Log,
        rows: &Mutex<Rows>,
        now_ms: u64,
        written_bytes: u64,
    ) -> io::Result<()> {
        let before = first_to_stay(log);
        // A walk that was to free more than there is room for is given up for a shorter one.
        let walk = self.walk.filter(|walk| walk.before <= before || !log.is_starved());
        let walk = walk.unwrap_or(Walk { before, place: Place::default() });
        self.walk = Some(walk);
        let (need, copies_bytes) = copies_of_step(log, written_bytes);
        self.copies.clear();
        let payload = log.payload();
        let place = {
            let rows = rows.lock();
            let slots = slots_of_step(&rows, written_bytes);
            rows.walk(walk.place, slots, |met, slot| {
                if slot.segment() < walk.before && slot.expires_at_ms() > now_ms {
                    let name = slot.name();
                    encode_put(payload, now_ms, &name.key, name.tag, slot.expires_at_ms(), slot.value());
                    self.copies.push(met);
                }
                // The row that fills the step has been copied, and is met once more by the next one.
                payload.len() < copies_bytes
            })
        };
        if !self.copies.is_empty() {
            self.copied_bytes += payload.len() as u64;
            let segment = log.append(FrameKind::Copies, need, now_ms)?;
            let mut rows = rows.lock();
            self.copies.drain(..).for_each(|met| rows.copied(met, segment));
        }
        self.walk = place.map(|place| Walk { place, ..walk });
        if self.walk.is_none() {
            log.release(walk.before);
        }
        Ok(())
    }

    /// More than a step writes that follows a commit of `written_bytes`.
    pub(crate) fn step_bytes_max(written_bytes: u64) -> u64 {
        (COPIES_BYTES_MIN as u64).max(written_bytes * 2) + LAST_BYTES_MAX
    }

    /// The most bytes that the files should have.
    pub(crate) fn disk_bytes_max(log: &Log, live_bytes: u64) -> u64 {
        live_bytes / 4 * DISK_QUARTERS + DISK_SEGMENTS_FREE * log.segment_bytes()
    }

    /// Bytes that were copied since the store was opened.
    pub(crate) fn copied_bytes(&self) -> u64 {
        self.copied_bytes
    }
}

fn start_at(log: &Log, live_bytes: u64) -> u64 {
    let (quarters, segments) = if log.is_starved() {
        (STARVED_QUARTERS, STARVED_SEGMENTS_FREE)
    } else {
        (START_QUARTERS, SEGMENTS_FREE)
    };
    live_bytes / 4 * quarters + segments * log.segment_bytes()
}

fn first_to_stay(log: &Log) -> u32 {
    // The copies of one segment have room in another.
    let share = if log.is_starved() { 1 } else { (log.sealed().len() / SEGMENTS_SHARE).max(1) };
    let last_to_go = log.sealed().take(share).last();
    last_to_go.map_or(0, |segment| segment.number + 1)
}

/// Who needs the room for the copies of a step, and about how many bytes they may have.
fn copies_of_step(log: &Log, written_bytes: u64) -> (Need, usize) {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    if log.is_starved() {
        (Need::Copies, COPIES_BYTES_MIN.min(bytes(log.segment_bytes() / COPIES_SHARE)))
    } else {
        (Need::Ordinary, COPIES_BYTES_MIN.max(bytes(written_bytes * 2)))
    }
}

/// The slots to look at: the part of all slots that the written bytes are of what may be written meanwhile.
fn slots_of_step(rows: &Rows, written_bytes: u64) -> usize {
    let share = u128::from(written_bytes) * u128::from(WALK_SHARE);
    let part = u128::from(rows.count()) * share / u128::from(rows.live_bytes().max(1));
    usize::try_from(part.max(u128::from(SLOTS_MIN))).unwrap_or(usize::MAX)
}
