//! Random numbers for load: fast, and good enough for keys and operation ids that nobody attacks.

use anyhow::{Context, Result};

/// SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

/// The alphabet of operation ids and digests.
const BASE64URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Random {
    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Seeded by the system, so that no two runs use the same operation ids.
    pub(crate) fn fresh() -> Result<Self> {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).context("drawing a seed")?;
        Ok(Self(u64::from_le_bytes(seed)))
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in `0..bound`, but for a bias of less than `bound` in 2^64.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.next()) * bound as u128;
        usize::try_from(wide >> 64).expect("less than the bound, which is a usize")
    }

    /// Uniform in `0.0..1.0`.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Fills `text` with random base64url characters.
    pub(crate) fn base64url(&mut self, text: &mut [u8]) {
        for piece in text.chunks_mut(10) {
            let mut bits = self.next();
            for character in piece {
                *character = BASE64URL[(bits & 63) as usize];
                bits >>= 6;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_stays_below_and_reaches_all() {
        let mut random = Random::seeded(1);
        let mut seen = [0; 10];
        for _ in 0..10_000 {
            seen[random.below(10)] += 1;
        }
        assert!(seen.iter().all(|&times| (800..1200).contains(&times)), "{seen:?}");
        assert!((0.0..1.0).contains(&random.fraction()));
    }

    #[test]
    fn texts_differ() {
        let mut random = Random::fresh().unwrap();
        let [mut first, mut second] = [[0; 22]; 2];
        random.base64url(&mut first);
        random.base64url(&mut second);
        assert_ne!(first, second);
        assert!(first.iter().chain(&second).all(|character| BASE64URL.contains(character)));
    }
}
