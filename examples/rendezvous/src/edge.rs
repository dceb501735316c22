//! The time and random bytes: where the pure parts get them from.

/// A clock and a source of random bytes.
pub trait Edge: Send + Sync + 'static {
    /// Ms since the epoch.
    fn now_ms(&self) -> u64;
    /// Bytes that nobody can guess.
    ///
    /// # Errors
    /// The system has none to give.
    fn random(&self) -> Result<[u8; 16], getrandom::Error>;
}

/// The system's.
#[derive(Debug, Clone, Copy)]
pub struct System;

impl Edge for System {
    #[expect(clippy::disallowed_methods, reason = "an edge: everything else is handed the time")]
    fn now_ms(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn random(&self) -> Result<[u8; 16], getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map(|()| bytes)
    }
}
