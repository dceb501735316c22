//! The only place of this tool that reads a clock or waits.

use std::time::{Duration, Instant};

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "a stopwatch of a tool; nothing is decided by it")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The wall clock in ms since the epoch.
#[cfg(feature = "bench")]
#[expect(clippy::disallowed_methods, reason = "signed requests carry the wall time")]
pub(crate) fn unix_ms() -> u64 {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// Waits: between two looks at a server that starts, or while it ages its rows.
#[cfg(feature = "bench")]
#[expect(clippy::disallowed_methods, reason = "a foreign process tells nobody when it is ready")]
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// A duration as people read it: `7.4 s`, `2 min 05 s`.
pub(crate) fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{} min {:02} s", duration.as_secs() / 60, duration.as_secs() % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_words() {
        for (millis, words) in
            [(0, "0.0 s"), (7_449, "7.4 s"), (60_000, "1 min 00 s"), (125_900, "2 min 05 s")]
        {
            assert_eq!(in_words(Duration::from_millis(millis)), words);
        }
    }
}
