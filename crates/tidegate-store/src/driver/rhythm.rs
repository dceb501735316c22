//! When to sweep: at the start, from time to time, and more and more rarely while it fails.

use std::time::Duration;

/// How the last sweeps went.
#[derive(Debug, Default)]
pub(super) struct Rhythm {
    failures: u32,
}

/// What follows a failed sweep.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterFailure {
    RetryIn(Duration),
    /// Too many in a row: nothing until the next write.
    Rest,
}

impl Rhythm {
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
    }

    pub(super) fn failed(&mut self) -> AfterFailure {
        self.failures = (self.failures + 1).min(FAILURES_MAX);
        if self.failures == FAILURES_MAX {
            return AfterFailure::Rest;
        }
        AfterFailure::RetryIn(FIRST_RETRY * (1 << (self.failures - 1)))
    }

    /// Whether a write just now ends a rest.
    pub(super) fn wakes_on_write(&mut self) -> bool {
        let rested = self.failures == FAILURES_MAX;
        if rested {
            self.failures = 0;
        }
        rested
    }
}

const FIRST_RETRY: Duration = Duration::from_secs(60);
const FAILURES_MAX: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_back_off_and_rest_until_a_write() {
        let mut rhythm = Rhythm::default();
        for round in 0..2 {
            for minutes in [1, 2, 4, 8] {
                let retry = AfterFailure::RetryIn(Duration::from_secs(60 * minutes));
                assert_eq!(rhythm.failed(), retry, "round {round}");
                assert!(!rhythm.wakes_on_write(), "only a rest ends early");
            }
            assert_eq!(rhythm.failed(), AfterFailure::Rest);
            assert_eq!(rhythm.failed(), AfterFailure::Rest, "asked for by hand meanwhile");
            assert!(rhythm.wakes_on_write());
        }
        rhythm.failed();
        rhythm.succeeded();
        assert_eq!(rhythm.failed(), AfterFailure::RetryIn(FIRST_RETRY), "a success starts over");
    }
}
