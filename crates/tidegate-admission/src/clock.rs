//! The edge where the time and the seed come from.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

/// Milliseconds that never go back, from a start of its own. Clones tell the same time.
#[derive(Clone)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    Machine { start: Instant },
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The machine's monotonic clock, from now on.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the edge: decisions are handed what is read here")]
    pub fn machine() -> Self {
        Self(Source::Machine { start: Instant::now() })
    }

    /// A clock that stands at zero until [`Clock::advance`] moves it: for tests.
    #[must_use]
    pub fn manual() -> Self {
        Self(Source::Manual(Arc::new(AtomicU64::new(0))))
    }

    /// The time, in ms since the clock's start.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        match &self.0 {
            Source::Machine { start } => u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
            Source::Manual(now_ms) => now_ms.load(Ordering::Relaxed),
        }
    }

    /// Moves a manual clock and its clones on by `ms`. The machine's clock goes on by itself.
    pub fn advance(&self, ms: u64) {
        if let Source::Manual(now_ms) = &self.0 {
            now_ms.fetch_add(ms, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self.0, Source::Machine { .. }) { "Clock(machine)" } else { "Clock(manual)" })
    }
}
