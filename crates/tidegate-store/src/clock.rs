//! The clock of a store that keeps its own: wall time that never steps back.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;

/// Where a store that keeps its own clock reads it. Never goes back within one clock.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> u64;

    /// From now on the clock shows at least `floor_ms`: a store that was reopened has seen that instant.
    fn advance_to(&self, floor_ms: u64);
}

/// The system's clock. A step forward is followed; after a step back the clock goes on from where it was, at
/// its normal rate, so that no window is held up and none opens twice.
#[derive(Debug)]
pub struct SystemClock {
    origin: std::time::Instant,
    state: Mutex<Reading>,
    /// What the last reading showed.
    shown_ms: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    now_ms: u64,
    elapsed_ms: u64,
}

/// A clock that only moves when a test moves it.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl SystemClock {
    /// A clock that starts at the system's time.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the edge that owns the clock")]
    pub fn new() -> Self {
        let now_ms = wall_ms();
        let state = Mutex::new(Reading { now_ms, elapsed_ms: 0 });
        Self { origin: std::time::Instant::now(), state, shown_ms: AtomicU64::new(now_ms) }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl SystemClock {
    /// Reads the clock, which shows at least `floor_ms` from now on.
    fn read(&self, wall_ms: u64, floor_ms: u64) -> u64 {
        let elapsed_ms = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut state = self.state.lock();
        *state = next_reading(*state, elapsed_ms, wall_ms, floor_ms);
        self.shown_ms.store(state.now_ms, Ordering::Relaxed);
        state.now_ms
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let wall_ms = wall_ms();
        // Most that are asked of a busy server are of the millisecond that was just read.
        if self.shown_ms.load(Ordering::Relaxed) == wall_ms { wall_ms } else { self.read(wall_ms, 0) }
    }

    fn advance_to(&self, floor_ms: u64) {
        self.read(wall_ms(), floor_ms);
    }
}

impl ManualClock {
    /// A clock that shows `now_ms`.
    #[must_use]
    pub fn at(now_ms: u64) -> Self {
        Self(AtomicU64::new(now_ms))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by_ms: u64) {
        self.0.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn advance_to(&self, floor_ms: u64) {
        self.0.fetch_max(floor_ms, Ordering::SeqCst);
    }
}

/// The system's wall time, which may step; for comparing with instants that others wrote.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the edge that owns the clock")]
pub fn wall_ms() -> u64 {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// The floor comes last: whoever moves the clock on to it has not waited since the last reading to go on from there.
fn next_reading(last: Reading, elapsed_ms: u64, wall_ms: u64, floor_ms: u64) -> Reading {
    let elapsed_ms = elapsed_ms.max(last.elapsed_ms);
    let at_normal_rate = last.now_ms.saturating_add(elapsed_ms - last.elapsed_ms);
    Reading { now_ms: at_normal_rate.max(wall_ms).max(floor_ms), elapsed_ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_the_wall_clock() {
        let start = Reading { now_ms: 1000, elapsed_ms: 0 };
        let table = [
            ("nothing happened", 0, 1000, 0, 1000),
            ("both went on", 10, 1010, 0, 1010),
            ("a step back: on at the normal rate", 10, 400, 0, 1010),
            ("a step forward is followed", 10, 5000, 0, 5000),
            ("suspended: the wall knows better", 0, 9000, 0, 9000),
            ("others have seen a later instant", 10, 1010, 1015, 1015),
            ("not read for long while others did: no later than they", 400, 1400, 1400, 1400),
        ];
        for (what, elapsed_ms, wall_ms, floor_ms, expected_ms) in table {
            assert_eq!(next_reading(start, elapsed_ms, wall_ms, floor_ms).now_ms, expected_ms, "{what}");
        }
    }
}
