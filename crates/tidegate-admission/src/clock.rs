//! The edge where the time and the seed come from.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Milliseconds that never go back, from a start of its own. Clones tell the same time.
#[derive(Clone)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    Machine { start_ms: u64 },
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The machine's monotonic clock, from now on. On Linux it is the one that moves with the kernel's ticks, every
    /// 1 to 10 ms: it is read twice a request, and costs a quarter of the exact one.
    #[must_use]
    pub fn machine() -> Self {
        Self(Source::Machine { start_ms: machine_ms() })
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
            Source::Machine { start_ms } => machine_ms().saturating_sub(*start_ms),
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

/// Milliseconds since some start of the machine's.
#[cfg(target_os = "linux")]
fn machine_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    // Since the machine was started, so neither is negative.
    now.tv_sec.unsigned_abs() * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000
}

/// Milliseconds since the first call.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "the edge: decisions are handed what is read here")]
fn machine_ms() -> u64 {
    use std::{sync::OnceLock, time::Instant};
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}
