//! Which rows an update goes to: prepared before the measurement, since drawing costs as much as an update.

use anyhow::Result;
use tidegate_store::Key;

use crate::bench::random::Random;

/// How often which row is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// All alike.
    Uniform,
    /// The n-th row 1/n as often as the first.
    Zipf,
    /// One row, always.
    Hot,
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Uniform => "uniform",
            Self::Zipf => "Zipf",
            Self::Hot => "one hot key",
        })
    }
}

/// The rows, and an order for each choice.
#[derive(Debug)]
pub(crate) struct Choices {
    pub(crate) keys: Vec<Key>,
    uniform: Vec<u32>,
    zipf: Vec<u32>,
}

/// Long enough that what a caller meets doesn't repeat within a turn.
const ORDER_LENGTH: usize = 1 << 22;

impl Choices {
    pub(crate) fn prepare(count: usize) -> Result<Self> {
        let mut random = Random::fresh()?;
        let mut bytes = [0; Key::BYTES];
        let keys = std::iter::repeat_with(|| fresh_key(&mut random, &mut bytes)).take(count).collect();
        let index = |place: usize| u32::try_from(place).expect("fewer rows than 2^32");
        let uniform = (0..ORDER_LENGTH).map(|_| index(random.below(count))).collect();
        let weights = cumulative(count);
        let zipf = (0..ORDER_LENGTH).map(|_| index(draw(&weights, random.fraction()))).collect();
        Ok(Self { keys, uniform, zipf })
    }

    /// The `place`-th key of the order, which begins anew at its end.
    pub(crate) fn key(&self, choice: Choice, place: usize) -> Key {
        let order = match choice {
            Choice::Uniform => &self.uniform,
            Choice::Zipf => &self.zipf,
            Choice::Hot => return self.keys[0],
        };
        self.keys[order[place % ORDER_LENGTH] as usize]
    }
}

/// A row that nobody has named yet.
pub(crate) fn fresh_key(random: &mut Random, bytes: &mut [u8; Key::BYTES]) -> Key {
    for piece in bytes.chunks_exact_mut(8) {
        piece.copy_from_slice(&random.next().to_le_bytes());
    }
    Key::from_bytes(*bytes)
}

/// The sums of 1/1, 1/2, … 1/n, as shares of the whole.
fn cumulative(count: usize) -> Vec<f64> {
    let mut sum = 0.0;
    let sums = (1..=count).map(|rank| {
        sum += 1.0 / rank as f64;
        sum
    });
    let sums: Vec<f64> = sums.collect();
    sums.iter().map(|partial| partial / sum).collect()
}

fn draw(weights: &[f64], fraction: f64) -> usize {
    weights.partition_point(|share| *share <= fraction).min(weights.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_favours_the_first() {
        let weights = cumulative(4);
        let whole = 1.0 + 1.0 / 2.0 + 1.0 / 3.0 + 1.0 / 4.0;
        for (fraction, rank) in [(0.0, 0), (0.9 / whole, 0), (1.1 / whole, 1), (1.6 / whole, 2), (1.0, 3)] {
            assert_eq!(draw(&weights, fraction), rank, "{fraction}");
        }
    }

    #[test]
    fn orders_hold_known_keys() {
        let choices = Choices::prepare(100).unwrap();
        for choice in [Choice::Uniform, Choice::Zipf] {
            let first =
                (0..ORDER_LENGTH).filter(|&place| choices.key(choice, place) == choices.keys[0]).count();
            let share = first as f64 / ORDER_LENGTH as f64;
            let expected = if choice == Choice::Uniform { 0.01 } else { 1.0 / 5.187 };
            assert!((share / expected - 1.0).abs() < 0.1, "{choice:?}: {share}");
        }
    }
}
