//! A histogram of latencies: a fixed size, and under one percent off at any magnitude.

use std::time::Duration;

/// Counts durations in buckets that are 1/128 of their magnitude wide.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
}

/// Buckets for each power of two.
const STEPS: usize = 128;
const STEP_BITS: u32 = STEPS.ilog2();

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { buckets: vec![0; STEPS * (64 - STEP_BITS as usize + 1)], count: 0 }
    }

    pub(crate) fn record(&mut self, latency: Duration) {
        self.buckets[bucket(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX))] += 1;
        self.count += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(mine, theirs)| *mine += theirs);
        self.count += other.count;
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// The latency in µs that `share` (0 to 1) of the samples don't exceed; 0 without samples.
    pub(crate) fn quantile_us(&self, share: f64) -> f64 {
        let wanted = (share * self.count as f64).ceil().max(1.0);
        let mut seen = 0;
        for (index, samples) in self.buckets.iter().enumerate() {
            seen += samples;
            if *samples > 0 && seen as f64 >= wanted {
                return middle(index) / 1000.0;
            }
        }
        0.0
    }
}

/// Values under [`STEPS`] have buckets of their own; above, the leading bits choose.
fn bucket(nanos: u64) -> usize {
    let shift = nanos.checked_ilog2().unwrap_or(0).saturating_sub(STEP_BITS);
    shift as usize * STEPS + usize::try_from(nanos >> shift).expect("at most twice the steps")
}

fn middle(index: usize) -> f64 {
    let shift = (index / STEPS).saturating_sub(1);
    let first = (index - shift * STEPS) as f64;
    let width = (1_u64 << shift) as f64;
    first.mul_add(width, (width - 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_close() {
        let mut histogram = Histogram::new();
        for micros in 1..=1000 {
            histogram.record(Duration::from_micros(micros));
        }
        for (share, expected_us) in [(0.0, 1.0), (0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found_us = histogram.quantile_us(share);
            assert!((found_us / expected_us - 1.0).abs() < 0.01, "{share}: {found_us}");
        }
    }

    #[test]
    fn every_magnitude_has_its_bucket() {
        for nanos in (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) | 1, u64::MAX >> bit]) {
            let found = middle(bucket(nanos));
            assert!((found / nanos as f64 - 1.0).abs() < 0.01, "{nanos}: {found}");
        }
        assert_eq!(middle(bucket(0)), 0.0);
    }

    #[test]
    fn merging_adds() {
        let [mut first, mut second] = [Histogram::new(), Histogram::new()];
        first.record(Duration::from_micros(10));
        second.record(Duration::from_micros(1000));
        first.merge(&second);
        assert_eq!(first.count(), 2);
        assert!(first.quantile_us(1.0) > 990.0);
        assert_eq!(Histogram::new().quantile_us(0.5), 0.0);
    }
}
