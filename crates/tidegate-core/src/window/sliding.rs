//! The sliding window: the present bucket, and the share of the previous one that the window still covers.

/// Two neighbouring buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sliding {
    /// The number of the present bucket: it begins at `bucket * period`.
    pub(super) bucket: u64,
    /// What was charged in the bucket before it.
    pub(super) previous: u64,
    /// What has been charged in it.
    pub(super) current: u64,
}

impl Sliding {
    pub(super) const fn empty(period_ms: u64, now_ms: u64) -> Self {
        Self { bucket: now_ms / period_ms, previous: 0, current: 0 }
    }

    /// Carried forward to `now_ms`. A bucket that lies ahead of the clock stays the present one.
    pub(super) fn at(self, period_ms: u64, now_ms: u64) -> Self {
        let bucket = now_ms / period_ms;
        match bucket.saturating_sub(self.bucket) {
            0 => self,
            1 => Self { bucket, previous: self.current, current: 0 },
            _ => Self { bucket, previous: 0, current: 0 },
        }
    }

    pub(super) fn used(&self, period_ms: u64, now_ms: u64) -> u64 {
        let elapsed_ms = now_ms.saturating_sub(self.bucket.saturating_mul(period_ms)).min(period_ms);
        share(self.previous, period_ms - elapsed_ms, period_ms).saturating_add(self.current)
    }

    pub(super) const fn charge(self, cost: u64) -> Self {
        Self { current: self.current.saturating_add(cost), ..self }
    }

    pub(super) const fn bucket_ends_at_ms(&self, period_ms: u64) -> u64 {
        self.bucket.saturating_add(1).saturating_mul(period_ms)
    }

    pub(super) const fn expires_at_ms(&self, period_ms: u64) -> u64 {
        self.bucket.saturating_add(2).saturating_mul(period_ms)
    }

    /// The first instant at which no more than `room` is used, which is more now.
    ///
    /// While the present bucket lasts, its own count stays and the previous one fades; when it has become
    /// the previous one, it fades itself.
    pub(super) fn opens_at_ms(&self, period_ms: u64, room: u64) -> u64 {
        let (fading, room, ends_at_ms) = match room.checked_sub(self.current) {
            Some(room) => (self.previous, room, self.bucket_ends_at_ms(period_ms)),
            None => (self.current, room, self.expires_at_ms(period_ms)),
        };
        ends_at_ms.saturating_sub(longest_cover(fading, room, period_ms))
    }
}

/// floor(count * covered / period)
fn share(count: u64, covered_ms: u64, period_ms: u64) -> u64 {
    match count.checked_mul(covered_ms) {
        Some(product) => product / period_ms,
        None => narrow(u128::from(count) * u128::from(covered_ms) / u128::from(period_ms)),
    }
}

/// The largest `covered` of at most a period with floor(count * covered / period) <= room: that is,
/// count * covered < (room + 1) * period.
fn longest_cover(count: u64, room: u64, period_ms: u64) -> u64 {
    let below = (u128::from(room) + 1) * u128::from(period_ms);
    narrow((below - 1) / u128::from(count.max(1))).min(period_ms)
}

fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}
