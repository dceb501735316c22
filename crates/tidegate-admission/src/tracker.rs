//! Decisions over several keys at once, from all cores: charged all together or not at all.

use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use tidegate_core::tracker::{Cause, Key, Limit, Place, Row, Table, Windows, Work};

use crate::{
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
    pub(crate) work: Work,
    /// Whether new rows may come from the reserve.
    pub(crate) may_use_reserve: bool,
    /// Whether leases are held, which [`Tracker::release`] ends.
    pub(crate) leased: bool,
    pub(crate) fixed: &'a [Charge<usize>],
    pub(crate) keyed: &'a [Charge<Key>],
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
    pub(crate) fn new(size: Size) -> Self {
        let tables = (size.tracked_max / ROWS_A_TABLE).next_power_of_two().min(TABLES_MAX);
        Self {
            windows: Windows::new(size.window_ms),
            counts: Mutex::new(Counts {
                window: 0,
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
    pub(crate) fn decide(&self, now_ms: u64, decision: &Decision<'_>) -> Result<(), Refusal> {
        let window = self.windows.number(now_ms);
        let mut outcome = self.attempt(window, decision);
        if matches!(outcome, Err((_, Cause::TrackedKeys))) && self.sweep(window) {
            outcome = self.attempt(window, decision);
        }
        outcome.map_err(|(dimension, cause)| {
            let wait_ms = match cause {
                Cause::Rate | Cause::TrackedKeys => self.windows.left_ms(now_ms),
                Cause::Concurrency => LEASE_WAIT_MS,
            };
            Refusal::new(dimension, cause, wait_ms)
        })
    }

    /// Ends the leases of a decision that was `leased`.
    pub(crate) fn release(&self, work: Work, fixed: &[usize], keyed: &[Key]) {
        let mut counts = self.counts.lock();
        for key in keyed {
            let is_gone = counts.table(*key).release(*key, work);
            counts.tracked -= usize::from(is_gone);
        }
        for place in fixed {
            counts.fixed[*place].release(work);
        }
    }

    /// Milliseconds until a budget in a fixed place is full again, if it is spent.
    pub(crate) fn spent_for_ms(&self, now_ms: u64, charge: &Charge<usize>, work: Work) -> Option<u64> {
        let mut counts = self.counts.lock();
        counts.enter(self.windows.number(now_ms), &[]);
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

    fn attempt(&self, window: u64, decision: &Decision<'_>) -> Result<(), (Dimension, Cause)> {
        let mut counts = self.counts.lock();
        counts.enter(window, decision.keyed);
        debug_assert!(decision.keyed.len() <= CHARGES_MAX, "no stage has more keys");
        let mut places = [None; CHARGES_MAX];
        counts.find(decision, &mut places)?;
        counts.check_fixed(decision)?;
        let mut new = decision.keyed.iter().zip(places).filter(|(_, place)| place.is_none()).peekable();
        if let Some((first, _)) = new.peek() {
            let dimension = first.dimension;
            let max =
                if decision.may_use_reserve { self.tracked_max } else { self.tracked_max - self.reserve };
            if counts.tracked + new.count() > max {
                return Err((dimension, Cause::TrackedKeys));
            }
        }
        counts.charge(decision, &places);
        Ok(())
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

impl Counts {
    /// Goes on to the window in the fixed places and in the tables of these keys.
    fn enter(&mut self, window: u64, keyed: &[Charge<Key>]) {
        if window > self.window {
            self.window = window;
            self.fixed.iter_mut().for_each(Row::clear_window);
        }
        for charge in keyed {
            let gone = self.table(charge.place).enter(window);
            self.tracked -= gone;
        }
    }

    /// Finds the rows, if all of them admit one more.
    fn find(&self, decision: &Decision<'_>, places: &mut Places) -> Result<(), (Dimension, Cause)> {
        // Searches end where nobody can foresee, so each would wait for the memory of the one before it.
        let glances = decision.keyed.iter().map(|charge| {
            let key = charge.place;
            self.tables[self.index(key)].glance(key)
        });
        black_box(glances.fold(0, |all, glance| all ^ glance));
        for (charge, found) in decision.keyed.iter().zip(places) {
            let table = &self.tables[self.index(charge.place)];
            let place = table.find(charge.place);
            let row = place.map_or(&NO_ROW, |place| table.row_at(place));
            if let Some(cause) = row.refusal(&charge.limit, decision.work) {
                return Err((charge.dimension, cause));
            }
            *found = place;
        }
        Ok(())
    }

    fn check_fixed(&self, decision: &Decision<'_>) -> Result<(), (Dimension, Cause)> {
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
        for (charge, place) in charges().filter_map(|(charge, place)| Some((charge, (*place)?))) {
            self.table(charge.place).charge_at(place, decision.work, decision.leased);
        }
        for (charge, _) in charges().filter(|(_, place)| place.is_none()) {
            self.tracked += 1;
            self.table(charge.place).charge(charge.place, decision.work, decision.leased);
        }
    }

    fn table(&mut self, key: Key) -> &mut Table {
        &mut self.tables[self.index(key)]
    }

    /// Tables choose places by the lowest bits of a key and tell keys apart by the highest; these lie between.
    fn index(&self, key: Key) -> usize {
        (key.0 >> 32) as usize & (self.tables.len() - 1)
    }
}

const NO_ROW: Row = Row::UNUSED;
/// So that the first request of a window in a table has little to clear.
const ROWS_A_TABLE: usize = 4096;
/// What says where their rows are takes 40 KiB.
const TABLES_MAX: usize = 1024;
/// When to come back if leases are in the way: nobody knows when one ends, so soon.
const LEASE_WAIT_MS: u64 = 1000;

#[cfg(test)]
mod tests;
