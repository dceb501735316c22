//! Decisions over several keys at once, from all cores: charged all together or not at all.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use tidegate_core::tracker::{Cause, Key, Limit, Row, Table, Windows, Work};

use crate::{
    profile::Bounds,
    refusal::{Dimension, Refusal},
};

/// The most keys of one decision that are looked up, and the most that have a fixed place.
pub(crate) const CHARGES_MAX: usize = 4;

/// Budgets, leases and their ceiling. Shared: decisions lock only the shards that their keys lie in.
///
/// A few keys that every request has, such as the global one, have a fixed place and don't count toward the
/// ceiling. The others are looked up.
#[derive(Debug)]
pub(crate) struct Tracker {
    windows: Windows,
    shards: Box<[Shard]>,
    /// Locked last, and briefly: it is what all cores meet at.
    fixed: Mutex<Fixed>,
    /// Rows of all shards. It grows only under the lock of `fixed`, so the ceiling is exact.
    tracked: AtomicUsize,
    tracked_max: usize,
    reserve: usize,
    /// The last window that all shards are known to have entered.
    swept: AtomicU64,
}

/// A line of the cache to itself, so that cores don't slow each other down by neighbouring locks.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard(Mutex<Table>);

#[derive(Debug)]
struct Fixed {
    window: u64,
    rows: Box<[Row]>,
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

type Vec4<Item> = SmallVec<[Item; CHARGES_MAX]>;
type Guards<'a> = Vec4<(usize, MutexGuard<'a, Table>)>;

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
        let shards = (size.tracked_max / ROWS_A_SHARD).next_power_of_two().clamp(SHARDS_MIN, SHARDS_MAX);
        Self {
            windows: Windows::new(size.window_ms),
            shards: (0..shards).map(|_| Shard::default()).collect(),
            fixed: Mutex::new(Fixed {
                window: 0,
                rows: vec![Row::default(); size.fixed_rows].into_boxed_slice(),
            }),
            tracked: AtomicUsize::new(0),
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
        for key in keyed {
            if self.shards[self.shard_of(*key)].0.lock().release(*key, work) {
                self.tracked.fetch_sub(1, Ordering::Relaxed);
            }
        }
        if !fixed.is_empty() {
            let mut held = self.fixed.lock();
            for place in fixed {
                held.rows[*place].release(work);
            }
        }
    }

    /// Milliseconds until a budget in a fixed place is full again, if it is spent.
    pub(crate) fn spent_for_ms(&self, now_ms: u64, charge: &Charge<usize>, work: Work) -> Option<u64> {
        let mut fixed = self.fixed.lock();
        fixed.enter(self.windows.number(now_ms));
        let refusal = fixed.rows[charge.place].refusal(&charge.limit, work);
        (refusal == Some(Cause::Rate)).then(|| self.windows.left_ms(now_ms))
    }

    /// How many keys have a row in the window of `now_ms`.
    pub(crate) fn tracked(&self, now_ms: u64) -> usize {
        self.sweep(self.windows.number(now_ms));
        self.tracked.load(Ordering::Relaxed)
    }

    /// Leases held in a fixed place.
    pub(crate) fn active(&self, place: usize) -> u32 {
        self.fixed.lock().rows[place].active()
    }

    /// Bytes of all rows, free places included.
    pub(crate) fn bytes(&self) -> usize {
        let shards = size_of_val(&*self.shards);
        let fixed = size_of_val(&*self.fixed.lock().rows);
        shards + fixed + self.shards.iter().map(|shard| shard.0.lock().bytes()).sum::<usize>()
    }

    fn attempt(&self, window: u64, decision: &Decision<'_>) -> Result<(), (Dimension, Cause)> {
        let mut guards = self.lock(decision.keyed);
        for (_, table) in &mut guards {
            self.forget(table.enter(window));
        }
        let mut new_rows = Vec4::new();
        for charge in decision.keyed {
            let table = self.table(&mut guards, charge.place);
            match table.check(charge.place, &charge.limit, decision.work) {
                (Some(cause), _) => return Err((charge.dimension, cause)),
                (None, true) => new_rows.push(charge.dimension),
                (None, false) => {}
            }
        }
        if !(new_rows.is_empty() && decision.fixed.is_empty()) {
            let mut fixed = self.fixed.lock();
            fixed.enter(window);
            fixed.check(decision)?;
            self.take_rows(&new_rows, decision.may_use_reserve)?;
            fixed.charge(decision);
        }
        for charge in decision.keyed {
            let table = self.table(&mut guards, charge.place);
            table.charge(charge.place, decision.work, decision.leased);
        }
        Ok(())
    }

    /// Locks the shards of all keys, each once, in ascending order, so that no two decisions wait for each other.
    fn lock(&self, keyed: &[Charge<Key>]) -> Guards<'_> {
        let mut guards = Guards::new();
        let mut from = 0;
        let after =
            |from| keyed.iter().map(|charge| self.shard_of(charge.place)).filter(move |shard| *shard >= from);
        while let Some(shard) = after(from).min() {
            guards.push((shard, self.shards[shard].0.lock()));
            from = shard + 1;
        }
        guards
    }

    fn table<'g>(&self, guards: &'g mut Guards<'_>, key: Key) -> &'g mut Table {
        let shard = self.shard_of(key);
        let found = guards.iter_mut().find(|(index, _)| *index == shard);
        &mut found.expect("the shards of all keys were locked").1
    }

    /// Takes the rows from what is free. The lock of `fixed` is held, so nobody else takes any meanwhile.
    fn take_rows(&self, new: &[Dimension], may_use_reserve: bool) -> Result<(), (Dimension, Cause)> {
        let Some(first) = new.first() else {
            return Ok(());
        };
        let max = if may_use_reserve { self.tracked_max } else { self.tracked_max - self.reserve };
        if self.tracked.load(Ordering::Relaxed) + new.len() > max {
            return Err((*first, Cause::TrackedKeys));
        }
        self.tracked.fetch_add(new.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Has every shard enter the window, so that the rows of an earlier one count no more. Answers whether
    /// there was anything to do; there is once a window.
    fn sweep(&self, window: u64) -> bool {
        if self.swept.load(Ordering::Relaxed) >= window {
            return false;
        }
        for shard in &self.shards {
            self.forget(shard.0.lock().enter(window));
        }
        self.swept.fetch_max(window, Ordering::Relaxed);
        true
    }

    fn forget(&self, rows: usize) {
        if rows > 0 {
            self.tracked.fetch_sub(rows, Ordering::Relaxed);
        }
    }

    /// Tables choose places by the lowest bits of a key and tell keys apart by the highest; these lie between.
    fn shard_of(&self, key: Key) -> usize {
        (key.0 >> 32) as usize & (self.shards.len() - 1)
    }
}

impl Fixed {
    fn enter(&mut self, window: u64) {
        if window > self.window {
            self.window = window;
            self.rows.iter_mut().for_each(Row::clear_window);
        }
    }

    fn check(&self, decision: &Decision<'_>) -> Result<(), (Dimension, Cause)> {
        for charge in decision.fixed {
            if let Some(cause) = self.rows[charge.place].refusal(&charge.limit, decision.work) {
                return Err((charge.dimension, cause));
            }
        }
        Ok(())
    }

    fn charge(&mut self, decision: &Decision<'_>) {
        for charge in decision.fixed {
            self.rows[charge.place].charge(decision.work, decision.leased);
        }
    }
}

/// So that the first request of a window in a shard has little to clear.
const ROWS_A_SHARD: usize = 4096;
/// Enough for the cores of a machine to seldom meet.
const SHARDS_MIN: usize = 64;
/// 64 KiB of locks.
const SHARDS_MAX: usize = 1024;
/// When to come back if leases are in the way: nobody knows when one ends, so soon.
const LEASE_WAIT_MS: u64 = 1000;

#[cfg(test)]
mod tests;
