//! Decisions over several keys at once, from all cores: charged all together or not at all.

use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use tidegate_core::tracker::{Cause, Key, Limit, Place, Row, Table, Windows, Work};

use crate::{
    metrics::Stage,
    profile::Bounds,
    refusal::{Dimension, Refusal},
};

/// The most keys of one decision that are looked up.
pub(crate) const CHARGES_MAX: usize = 4;

/// Budgets, leases and their ceiling, under one lock. It is held for as long as a decision's rows take to be looked
/// up, which is less than what more locks would take: a request is decided twice and released once, not ten times.
///
/// A few keys that every request has, such as the global one, have a fixed place and don't count toward the
/// ceiling. The others are looked up.
#[derive(Debug)]
pub(crate) struct Tracker {
    windows: Windows,
    counts: Mutex<Counts>,
    tables: usize,
    tracked_max: usize,
    reserve: usize,
    /// The last window that all tables are known to have entered.
    swept: AtomicU64,
}

#[derive(Debug)]
struct Counts {
    window: u64,
    /// When the window is over.
    ends_ms: u64,
    /// By stage. Nobody else writes them, so they are counted on without a step that is atomic as a whole.
    admitted: [Counter; Stage::ALL.len()],
    fixed: Box<[Row]>,
    /// Many, so that none has much to clear when a window begins.
    tables: Box<[Table]>,
    /// Rows of all tables.
    tracked: usize,
}

/// What a tracker is built with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) window_ms: u64,
    pub(crate) fixed_rows: usize,
    pub(crate) tracked_max: usize,
    /// Of `tracked_max`, what only critical work may use.
    pub(crate) reserve: usize,
}

/// One charge of a decision: where, how much there may be, and what to call it if there is too much.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Charge<Place> {
    pub(crate) place: Place,
    pub(crate) limit: Limit,
    pub(crate) dimension: Dimension,
}

/// Everything that a request or datagram is charged in one stage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decision<'a> {
    pub(crate) stage: Stage,
    pub(crate) work: Work,
    /// Whether leases are held, which [`Tracker::release`] ends.
    pub(crate) leased: bool,
    pub(crate) fixed: &'a [Charge<usize>],
    pub(crate) keyed: &'a [Charge<Key>],
}

impl Decision<'_> {
    /// One that charges nothing yet.
    pub(crate) const fn of(stage: Stage, work: Work) -> Self {
        Self { stage, work, leased: false, fixed: &[], keyed: &[] }
    }
}

impl Size {
    pub(crate) const fn of(bounds: Bounds, fixed_rows: usize) -> Self {
        Self {
            window_ms: bounds.window_seconds as u64 * 1000,
            fixed_rows,
            tracked_max: bounds.max_tracked_keys as usize,
            reserve: bounds.critical_tracked_key_reserve as usize,
        }
    }
}

impl Tracker {
    pub(crate) fn new(size: Size, admitted: [Counter; Stage::ALL.len()]) -> Self {
        let tables = (size.tracked_max / ROWS_A_TABLE).next_power_of_two().min(TABLES_MAX);
        let windows = Windows::new(size.window_ms);
        Self {
            windows,
            counts: Mutex::new(Counts {
                window: 0,
                ends_ms: windows.left_ms(0),
                admitted,
                fixed: vec![Row::default(); size.fixed_rows].into_boxed_slice(),
                tables: (0..tables).map(|_| Table::default()).collect(),
                tracked: 0,
            }),
            tables,
            tracked_max: size.tracked_max,
            reserve: size.reserve,
            swept: AtomicU64::new(0),
        }
    }

    /// Charges everything in `decision`, or nothing and says why.
    #[inline]
    pub(crate) fn decide(&self, now_ms: u64, decision: &Decision<'_>) -> Result<(), Refusal> {
        match self.attempt(now_ms, decision) {
            Ok(()) => Ok(()),
            Err(refused) => self.refused(now_ms, decision, refused),
        }
    }

    /// Ends the leases of a decision that was `leased`.
    pub(crate) fn release(&self, work: Work, fixed: &[usize], keyed: &[Key]) {
        let mut counts = self.counts.lock();
        let counts = &mut *counts;
        for key in keyed {
            let is_gone = counts.table_mut(*key).release(*key, work);
            counts.tracked -= usize::from(is_gone);
        }
        for place in fixed {
            counts.fixed[*place].release(work);
        }
    }

    /// Milliseconds until a budget in a fixed place is full again, if it is spent.
    pub(crate) fn spent_for_ms(&self, now_ms: u64, charge: &Charge<usize>, work: Work) -> Option<u64> {
        let mut counts = self.counts.lock();
        counts.enter(self.windows, now_ms);
        let refusal = counts.fixed[charge.place].refusal(&charge.limit, work);
        (refusal == Some(Cause::Rate)).then(|| self.windows.left_ms(now_ms))
    }

    /// How many keys have a row in the window of `now_ms`.
    pub(crate) fn tracked(&self, now_ms: u64) -> usize {
        self.sweep(self.windows.number(now_ms));
        self.counts.lock().tracked
    }

    /// Leases held in a fixed place.
    pub(crate) fn active(&self, place: usize) -> u32 {
        self.counts.lock().fixed[place].active()
    }

    /// Bytes of all rows, free places included.
    pub(crate) fn bytes(&self) -> usize {
        let counts = self.counts.lock();
        let (tables, fixed) = (size_of_val(&*counts.tables), size_of_val(&*counts.fixed));
        tables + fixed + counts.tables.iter().map(Table::bytes).sum::<usize>()
    }

    fn attempt(&self, now_ms: u64, decision: &Decision<'_>) -> Result<(), Refused> {
        debug_assert!(decision.keyed.len() <= CHARGES_MAX, "no stage has more keys");
        let mut counts = self.counts.lock();
        let counts = &mut *counts;
        counts.enter(self.windows, now_ms);
        counts.enter_tables(decision.keyed);
        let mut places = [None; CHARGES_MAX];
        let new = counts.find(decision, &mut places)?;
        counts.check_fixed(decision)?;
        if new > 0 && counts.tracked + new > self.room(decision.work) {
            let first = decision.keyed.iter().zip(places).find(|(_, place)| place.is_none());
            let dimension = first.map_or(Dimension::Global, |(charge, _)| charge.dimension);
            return Err((dimension, Cause::TrackedKeys));
        }
        counts.charge(decision, &places);
        Ok(())
    }

    /// Tries again where the ceiling was in the way and rows of an earlier window were under it.
    #[cold]
    fn refused(&self, now_ms: u64, decision: &Decision<'_>, refused: Refused) -> Result<(), Refusal> {
        let mut outcome = Err(refused);
        if refused.1 == Cause::TrackedKeys && self.sweep(self.windows.number(now_ms)) {
            outcome = self.attempt(now_ms, decision);
        }
        outcome.map_err(|(dimension, cause)| {
            let wait_ms = match cause {
                Cause::Rate | Cause::TrackedKeys => self.windows.left_ms(now_ms),
                Cause::Concurrency => LEASE_WAIT_MS,
            };
            Refusal::new(dimension, cause, wait_ms)
        })
    }

    /// Keys that there may be, for work that adds some.
    const fn room(&self, work: Work) -> usize {
        match work {
            Work::Critical => self.tracked_max,
            Work::Optional => self.tracked_max - self.reserve,
        }
    }

    /// Has every table enter the window, so that the rows of an earlier one count no more. Answers whether
    /// there was anything to do; there is once a window. Between two tables others have their turn.
    fn sweep(&self, window: u64) -> bool {
        if self.swept.load(Ordering::Relaxed) >= window {
            return false;
        }
        for table in 0..self.tables {
            let mut counts = self.counts.lock();
            let gone = counts.tables[table].enter(window);
            counts.tracked -= gone;
        }
        self.swept.fetch_max(window, Ordering::Relaxed);
        true
    }
}

/// Where each key's row lies, if it has one.
type Places = [Option<Place>; CHARGES_MAX];
/// What is in the way, and why.
type Refused = (Dimension, Cause);

impl Counts {
    /// Goes on to the window of `now_ms` in the fixed places.
    fn enter(&mut self, windows: Windows, now_ms: u64) {
        if now_ms >= self.ends_ms {
            self.window = windows.number(now_ms);
            self.ends_ms = now_ms.saturating_add(windows.left_ms(now_ms));
            self.fixed.iter_mut().for_each(Row::clear_window);
        }
    }

    /// Goes on to the window in the tables of these keys, and has their rows come from memory together: searches end
    /// where nobody can foresee, so each would wait for the memory of the one before it.
    fn enter_tables(&mut self, keyed: &[Charge<Key>]) {
        let (window, mut glances) = (self.window, 0);
        for charge in keyed {
            let table = self.table_mut(charge.place);
            glances ^= table.glance(charge.place);
            let gone = table.enter(window);
            self.tracked -= gone;
        }
        black_box(glances);
    }

    /// Finds the rows, if all of them admit one more. Answers how many keys have none yet.
    fn find(&self, decision: &Decision<'_>, places: &mut Places) -> Result<usize, Refused> {
        let mut new = 0;
        for (charge, found) in decision.keyed.iter().zip(places) {
            let table = self.table(charge.place);
            *found = table.find(charge.place);
            new += usize::from(found.is_none());
            let refusal = match *found {
                Some(place) => table.refusal_at(place, &charge.limit, decision.work),
                None => Row::UNUSED.refusal(&charge.limit, decision.work),
            };
            if let Some(cause) = refusal {
                return Err((charge.dimension, cause));
            }
        }
        Ok(new)
    }

    fn check_fixed(&self, decision: &Decision<'_>) -> Result<(), Refused> {
        for charge in decision.fixed {
            if let Some(cause) = self.fixed[charge.place].refusal(&charge.limit, decision.work) {
                return Err((charge.dimension, cause));
            }
        }
        Ok(())
    }

    fn charge(&mut self, decision: &Decision<'_>, places: &Places) {
        for charge in decision.fixed {
            self.fixed[charge.place].charge(decision.work, decision.leased);
        }
        let charges = || decision.keyed.iter().zip(places);
        // A new row may move others, so those that were found come first.
        for (charge, place) in charges() {
            if let Some(place) = *place {
                self.table_mut(charge.place).charge_at(place, decision.work, decision.leased);
            }
        }
        for (charge, _) in charges().filter(|(_, place)| place.is_none()) {
            self.tracked += 1;
            self.table_mut(charge.place).charge(charge.place, decision.work, decision.leased);
        }
        let admitted = self.admitted[decision.stage as usize].inner();
        admitted.store(admitted.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    fn table(&self, key: Key) -> &Table {
        &self.tables[self.index(key)]
    }

    fn table_mut(&mut self, key: Key) -> &mut Table {
        &mut self.tables[self.index(key)]
    }

    /// Tables choose places by the lower half of a key, and are chosen by the upper.
    fn index(&self, key: Key) -> usize {
        (key.0 >> 32) as usize & (self.tables.len() - 1)
    }
}

/// So that the first request of a window in a table has little to clear.
const ROWS_A_TABLE: usize = 4096;
/// What says where their rows are takes 40 KiB.
const TABLES_MAX: usize = 1024;
/// When to come back if leases are in the way: nobody knows when one ends, so soon.
const LEASE_WAIT_MS: u64 = 1000;

#[cfg(test)]
mod tests;
