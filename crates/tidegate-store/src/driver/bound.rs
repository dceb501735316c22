//! The bound on a store's live entries, and the alerts that say that it comes near.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::{error, warn};

use super::log::Throttle;
use crate::view::Growth;

/// How many rows the store holds, as exactly as its backend tells, and what may still be added.
///
/// The count includes expired rows that still take up room, so it is never too low: the bound holds.
#[derive(Debug)]
pub(super) struct Bound {
    entries_max: u64,
    held: u64,
    /// The backend tells the count whenever it loads.
    told: bool,
    counted_at: Option<Instant>,
    /// The store's clock when a sweep last found nothing more to remove.
    swept_clean_at_ms: u64,
    filling: Filling,
}

/// What the drivers of one store know together: which alerts were given, so that each comes once, and how many rows the
/// one that looked last saw. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Filling(Arc<Known>);

#[derive(Debug, Default)]
struct Known {
    is_warned_of: AtomicBool,
    full: Mutex<Throttle>,
    held: AtomicU64,
}

impl Filling {
    /// How many rows the store held at last sight.
    pub(super) fn held(&self) -> u64 {
        self.0.held.load(Ordering::Relaxed)
    }
}

impl Bound {
    pub(super) fn new(entries_max: u64, filling: Filling) -> Self {
        Self { entries_max, held: 0, told: false, counted_at: None, swept_clean_at_ms: 0, filling }
    }

    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// Whether the backend must be asked for its count before a batch of `keys` rows.
    pub(super) fn is_stale(&self, keys: usize, now: Instant) -> bool {
        let Some(counted_at) = self.counted_at else { return true };
        let near = self.held.saturating_add(keys as u64) > self.entries_max;
        !self.told && (near || now.duration_since(counted_at) >= COUNT_AGE_MAX)
    }

    pub(super) fn counted(&mut self, rows: u64, now: Instant) {
        self.hold(rows);
        self.counted_at = Some(now);
    }

    /// Takes over what the backend told while loading.
    pub(super) fn loaded(&mut self, rows_held: Option<u64>) {
        self.told = rows_held.is_some();
        self.hold(rows_held.unwrap_or(self.held));
    }

    /// Whether an update that adds so much fits into a store that holds `held`. Rows beside a change to others
    /// may take as much room again; those of the store's own keeping always fit.
    pub(super) fn has_room(&self, held: u64, growth: Growth) -> bool {
        let Growth { own, beside, kept: _ } = growth;
        let fits = |added: i64, entries_max: u64| held.saturating_add_signed(added) <= entries_max;
        let own_fits = own <= 0 || fits(own, self.entries_max);
        let beside_fits = beside <= 0 || fits(own + beside, self.entries_max.saturating_mul(2));
        own_fits && beside_fits
    }

    /// How many rows must go before `rows` more fit.
    pub(super) fn missing(&self, rows: u64) -> u64 {
        if rows == 0 { 0 } else { self.held.saturating_add(rows).saturating_sub(self.entries_max) }
    }

    /// A batch that ended with `held` rows was committed.
    pub(super) fn committed(&mut self, held: u64) {
        self.hold(held);
    }

    /// A sweep removed `rows`.
    pub(super) fn swept(&mut self, rows: u64) {
        self.held = self.held.saturating_sub(rows);
        // Another driver may have seen more rows since this one last did.
        let less = |held: u64| Some(held.saturating_sub(rows));
        let _ = self.filling.0.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    fn hold(&mut self, rows: u64) {
        self.held = rows;
        self.filling.0.held.store(rows, Ordering::Relaxed);
    }

    /// A sweep that began when the store's clock showed `now_ms` or later left nothing expired.
    pub(super) fn swept_clean(&mut self, now_ms: u64) {
        self.swept_clean_at_ms = self.swept_clean_at_ms.max(now_ms);
    }

    /// Whether a sweep may find something that expired up to `now_ms`.
    pub(super) fn may_be_swept(&self, now_ms: u64) -> bool {
        now_ms > self.swept_clean_at_ms
    }

    /// Whether the store has begun to fill, which has not been warned of yet.
    pub(super) fn begins_to_fill(&self) -> bool {
        self.at_least(WARN_PERCENT) && !self.filling.0.is_warned_of.load(Ordering::Relaxed)
    }

    /// Warns once per filling.
    pub(super) fn warn_if_filling(&mut self, store: &str) {
        if self.begins_to_fill() && !self.filling.0.is_warned_of.swap(true, Ordering::Relaxed) {
            warn!(
                kind = "limit-store-filling",
                store,
                entries = self.held,
                entries_max = self.entries_max,
                "the limit store is filling; when it is full, new keys are refused"
            );
        }
    }

    /// Ends a filling, so that the next one is warned of again.
    pub(super) fn rearm_if_emptied(&mut self) {
        if !self.at_least(REARM_PERCENT) {
            self.filling.0.is_warned_of.store(false, Ordering::Relaxed);
        }
    }

    /// Says that new keys were refused, at most once a minute.
    pub(super) fn report_full(&mut self, store: &str, refused: usize) {
        if self.filling.0.full.lock().passes(Instant::now()) {
            error!(
                kind = "limit-store-full",
                store,
                refused,
                entries_max = self.entries_max,
                "the limit store is full of live entries; new keys are refused, those it holds keep counting"
            );
        }
    }

    fn at_least(&self, percent: u128) -> bool {
        u128::from(self.held) * 100 >= u128::from(self.entries_max) * percent
    }
}

/// A count that the backend had to be asked for is good for so long: far from the bound, what other
/// instances add in this time does not matter.
const COUNT_AGE_MAX: Duration = Duration::from_secs(1);
const WARN_PERCENT: u128 = 80;
/// Well under [`WARN_PERCENT`], so that a store which hovers there warns once.
const REARM_PERCENT: u128 = 70;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_growth() {
        let mut bound = Bound::new(10, Filling::default());
        let table = [
            ("room is left", 9, 1, true),
            ("one too many", 10, 1, false),
            ("several too many", 8, 5, false),
            ("nothing is added", 10, 0, true),
            ("something is removed from an overfull store", 12, -1, true),
            ("the bound was lowered", 12, 1, false),
        ];
        for (what, held, own, has_room) in table {
            let growth = Growth { own, ..Growth::default() };
            assert_eq!(bound.has_room(held, growth), has_room, "{what}");
        }
        let table = [
            ("a row beside a change to what is held", 10, 0, 1, 0, true),
            ("the last of them", 19, 0, 1, 0, true),
            ("one too many of them", 20, 0, 1, 0, false),
            ("a new row with one beside it", 10, 1, 1, 0, false),
            ("a new row with one beside it, while there is room", 9, 1, 1, 0, true),
            ("rows of the store's own", 20, 0, 0, 3, true),
            ("a new row with one of them", 10, 1, 0, 1, false),
        ];
        for (what, held, own, beside, kept, has_room) in table {
            assert_eq!(bound.has_room(held, Growth { own, beside, kept }), has_room, "{what}");
        }
        for (held, rows, missing) in [(9, 1, 0), (10, 1, 1), (8, 5, 3), (12, 1, 3), (12, 0, 0)] {
            bound.committed(held);
            assert_eq!(bound.missing(rows), missing, "{rows} to {held}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_count_is_asked_for_when_it_matters() {
        let mut bound = Bound::new(100, Filling::default());
        let start = Instant::now();
        assert!(bound.is_stale(1, start), "never counted");
        bound.counted(50, start);
        assert!(!bound.is_stale(50, start), "fresh, and far from the bound");
        assert!(bound.is_stale(51, start), "the batch could pass the bound");
        assert!(bound.is_stale(1, start + COUNT_AGE_MAX), "old");
        bound.loaded(Some(99));
        assert!(!bound.is_stale(51, start + COUNT_AGE_MAX), "the backend tells by itself");
        bound.loaded(None);
        assert_eq!(bound.held(), 99);
    }

    #[test]
    fn filling_warns_once_until_it_has_emptied() {
        let mut bound = Bound::new(10, Filling::default());
        let table = [(7, false), (8, true), (10, true), (7, true), (6, false), (8, true)];
        for (held, filling) in table {
            bound.committed(held);
            bound.rearm_if_emptied();
            bound.warn_if_filling("test");
            assert_eq!(bound.filling.0.is_warned_of.load(Ordering::Relaxed), filling, "{held} held");
        }
    }
}
