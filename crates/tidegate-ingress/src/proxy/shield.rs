//! An app's shield: how many requests it gets at once, and how long their bodies may be.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// What an app takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shield {
    /// Requests at once, open WebSockets included.
    pub max_concurrency: u64,
    /// Bytes of a request's body, as they are sent: a compressed body counts compressed.
    pub max_body_bytes: u64,
}

/// How many requests an app has in work.
#[derive(Debug, Clone, Default)]
pub(super) struct InWorkCount(Arc<AtomicU64>);

/// A place among them, given back when dropped.
#[derive(Debug)]
pub(super) struct Permit(InWorkCount);

impl InWorkCount {
    /// A place, if there is one.
    pub(super) fn enter(&self, max: u64) -> Option<Permit> {
        let permit = Permit(self.clone());
        // The permit gives back what is taken here, the one too many included.
        (self.0.fetch_add(1, Ordering::Relaxed) < max).then_some(permit)
    }

    pub(super) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_bound_are_in_work() {
        let count = InWorkCount::default();
        let places: Vec<_> = (0..5).map(|_| count.enter(3)).collect();
        assert_eq!(places.iter().flatten().count(), 3);
        assert_eq!(count.now(), 3);
        drop(places);
        assert_eq!(count.now(), 0);
        assert!(count.enter(0).is_none());
        assert_eq!(count.now(), 0);
    }
}
