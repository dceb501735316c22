//! What a driver has done so far, as numbers.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// A driver's numbers since its start; all but `entries` only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DriverStats {
    /// Rows that the store held at last sight, expired ones that still take up room included.
    pub entries: u64,
    /// Batches that were brought to the backend.
    pub batches: u64,
    /// Updates and reads in them.
    pub jobs: u64,
    /// How many of `batches` had at most 1, 4, 16, 64, 256 and 1 024 jobs, each batch counted once.
    pub batches_by_size: [u64; BATCH_SIZES.len()],
    /// Rows that were written or removed, sweeps aside.
    pub row_writes: u64,
    /// Time spent in the backend's load, in µs.
    pub load_micros: u64,
    /// Time from the backend's commit until the batch had settled, in µs.
    pub commit_micros: u64,
    /// Calls answered [`crate::Unavailable::Busy`].
    pub busy: u64,
    /// Calls answered [`crate::Unavailable::Deadline`].
    pub deadline: u64,
    /// Calls answered [`crate::Unavailable::Full`].
    pub full: u64,
    /// Calls to the backend that failed.
    pub backend_failures: u64,
    /// Batches that were decided again, since another instance had changed their rows.
    pub conflicts: u64,
    /// Updates that panicked.
    pub panics: u64,
    /// Sweeps that ran to their end.
    pub sweeps: u64,
    /// Expired rows that sweeps removed.
    pub swept: u64,
}

impl DriverStats {
    /// The numbers of two drivers of one store together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut batches_by_size = self.batches_by_size;
        batches_by_size.iter_mut().zip(other.batches_by_size).for_each(|(sum, more)| *sum += more);
        Self {
            // Of one store: they tell each other.
            entries: self.entries.max(other.entries),
            batches: self.batches + other.batches,
            jobs: self.jobs + other.jobs,
            batches_by_size,
            row_writes: self.row_writes + other.row_writes,
            load_micros: self.load_micros + other.load_micros,
            commit_micros: self.commit_micros + other.commit_micros,
            busy: self.busy + other.busy,
            deadline: self.deadline + other.deadline,
            full: self.full + other.full,
            backend_failures: self.backend_failures + other.backend_failures,
            conflicts: self.conflicts + other.conflicts,
            panics: self.panics + other.panics,
            sweeps: self.sweeps + other.sweeps,
            swept: self.swept + other.swept,
        }
    }
}

/// The upper ends of [`DriverStats::batches_by_size`], in jobs; the last takes what is larger, too.
pub const BATCH_SIZES: [usize; 6] = [1, 4, 16, 64, 256, 1024];

/// The numbers while they are counted.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) batches_by_size: [Counter; BATCH_SIZES.len()],
    pub(super) jobs: Counter,
    pub(super) row_writes: Counter,
    pub(super) load_micros: Counter,
    pub(super) commit_micros: Counter,
    pub(super) busy: Counter,
    pub(super) deadline: Counter,
    pub(super) full: Counter,
    pub(super) backend_failures: Counter,
    pub(super) conflicts: Counter,
    pub(super) panics: Counter,
    pub(super) sweeps: Counter,
    pub(super) swept: Counter,
}

/// One number: it orders nothing, so that counting costs next to nothing.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn add_micros(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(super) fn count_batch(&self, jobs: usize) {
        let size = BATCH_SIZES.iter().position(|&most| jobs <= most).unwrap_or(BATCH_SIZES.len() - 1);
        self.batches_by_size[size].add(1);
        self.jobs.add(jobs);
    }

    pub(super) fn read(&self, entries: u64) -> DriverStats {
        let batches_by_size = self.batches_by_size.each_ref().map(Counter::read);
        DriverStats {
            entries,
            batches: batches_by_size.iter().sum(),
            jobs: self.jobs.read(),
            batches_by_size,
            row_writes: self.row_writes.read(),
            load_micros: self.load_micros.read(),
            commit_micros: self.commit_micros.read(),
            busy: self.busy.read(),
            deadline: self.deadline.read(),
            full: self.full.read(),
            backend_failures: self.backend_failures.read(),
            conflicts: self.conflicts.read(),
            panics: self.panics.read(),
            sweeps: self.sweeps.read(),
            swept: self.swept.read(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_fall_into_the_size_that_holds_them() {
        let table = [(1, 0), (2, 1), (4, 1), (5, 2), (64, 3), (65, 4), (1024, 5), (1025, 5)];
        for (jobs, size) in table {
            let counters = Counters::default();
            counters.count_batch(jobs);
            let mut expected = [0; BATCH_SIZES.len()];
            expected[size] = 1;
            assert_eq!(counters.read(0).batches_by_size, expected, "{jobs} jobs");
        }
    }
}
