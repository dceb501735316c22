//! The fixed window: one epoch-aligned bucket.

/// What was charged in one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fixed {
    /// The number of the bucket: it begins at `bucket * period`.
    pub(super) bucket: u64,
    /// What has been charged in it.
    pub(super) count: u64,
}

impl Fixed {
    pub(super) const fn empty(period_ms: u64, now_ms: u64) -> Self {
        Self { bucket: now_ms / period_ms, count: 0 }
    }

    /// Carried forward to `now_ms`. A bucket that lies ahead of the clock stays the present one.
    pub(super) const fn at(self, period_ms: u64, now_ms: u64) -> Self {
        let bucket = now_ms / period_ms;
        if bucket > self.bucket { Self { bucket, count: 0 } } else { self }
    }

    pub(super) const fn charge(self, cost: u64) -> Self {
        Self { count: self.count.saturating_add(cost), ..self }
    }

    pub(super) const fn ends_at_ms(&self, period_ms: u64) -> u64 {
        self.bucket.saturating_add(1).saturating_mul(period_ms)
    }
}
