//! How a driver is set up.

use std::time::Duration;

use tidegate_core::secret::Secret;

use super::Filling;

/// The bounds, the secret and the rhythm of a [`super::Driver`].
#[derive(Debug, Clone)]
pub struct DriverOptions {
    /// What the store is called in log lines.
    pub name: &'static str,
    /// The most live entries. A new key beyond them is answered [`crate::Unavailable::Full`].
    pub max_entries: u64,
    /// Every call is answered within this time.
    pub deadline: Duration,
    /// So many calls past their deadline may still wait for the backend; past that a call is answered
    /// [`crate::Unavailable::Busy`] at once, until the backend answers.
    pub max_calls: usize,
    /// Every key goes through [`crate::Key::under`] this secret before the backend sees it.
    pub secret: Option<Secret>,
    /// The most updates of one batch. A larger one saves little, and answers its first caller later.
    pub batch_jobs_max: usize,
    /// The most updates that wait for the next batch: one second and more of a disk's work. Beyond them a
    /// call is answered [`crate::Unavailable::Busy`].
    pub queue_jobs_max: usize,
    /// From the end of a sweep to the start of the next.
    pub sweep_interval: Duration,
    /// What is known of how full the store is; the drivers of one store share it.
    pub filling: Filling,
}

impl DriverOptions {
    /// The default bound of a store in memory.
    pub const MEMORY_ENTRIES: u64 = 100_000;
    /// The default bound of a durable store.
    pub const DURABLE_ENTRIES: u64 = 1_000_000;

    /// The defaults, for a store called `name` with room for `max_entries`.
    #[must_use]
    pub fn new(name: &'static str, max_entries: u64) -> Self {
        Self {
            name,
            max_entries,
            deadline: Duration::from_secs(2),
            max_calls: 64,
            secret: None,
            batch_jobs_max: 1024,
            queue_jobs_max: 16_384,
            sweep_interval: Duration::from_secs(5 * 60),
            filling: Filling::default(),
        }
    }

    /// The same, within what the driver can work with: a batch of one job at least, and times that can be
    /// added to the present.
    pub(super) fn within_reason(self) -> Self {
        Self {
            deadline: self.deadline.min(LONGEST),
            max_calls: self.max_calls.max(1),
            batch_jobs_max: self.batch_jobs_max.max(1),
            queue_jobs_max: self.queue_jobs_max.max(1),
            sweep_interval: self.sweep_interval.clamp(SHORTEST, LONGEST),
            ..self
        }
    }
}

const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
