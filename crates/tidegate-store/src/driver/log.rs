//! Log lines that must not flood, and the whole chain of an error in one of them.

use std::{error::Error, fmt::Write, time::Duration};

use tokio::time::Instant;

/// Lets one event a minute pass.
#[derive(Debug, Default)]
pub(super) struct Throttle(Option<Instant>);

impl Throttle {
    /// Whether an event at `now` may be logged.
    pub(super) fn passes(&mut self, now: Instant) -> bool {
        let passes = self.0.is_none_or(|last| now.duration_since(last) >= INTERVAL);
        if passes {
            self.0 = Some(now);
        }
        passes
    }
}

/// `error` and its sources, outermost first.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        write!(text, ": {cause}").expect("writing to a string does not fail");
        source = cause.source();
    }
    text
}

const INTERVAL: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BackendError;

    #[test]
    fn a_chain_names_every_cause() {
        let cause = BackendError { doing: "writing page 7".to_owned(), cause: Some("disk full".into()) };
        let error = BackendError { doing: "committing a batch".to_owned(), cause: Some(Box::new(cause)) };
        assert_eq!(chain(&error), "committing a batch: writing page 7: disk full");
    }

    #[tokio::test(start_paused = true)]
    async fn one_event_a_minute_passes() {
        let (mut throttle, start) = (Throttle::default(), Instant::now());
        let table = [(0, true), (1, false), (59, false), (60, true), (119, false), (120, true)];
        for (second, passes) in table {
            assert_eq!(throttle.passes(start + Duration::from_secs(second)), passes, "second {second}");
        }
    }
}
