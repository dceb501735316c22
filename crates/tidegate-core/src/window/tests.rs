use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

mod exactness;
mod row;
mod tables;

/// A rule without the words.
fn rule(algorithm: Algorithm, limit: u64, period_ms: u64) -> Rule {
    Rule { limit, period_ms, algorithm }
}

/// The rows of a call, kept as a store keeps them: gone at their expiry.
struct Meter {
    rows: Vec<(Rule, Option<Charge>)>,
}

impl Meter {
    fn new(rules: &[Rule]) -> Self {
        Self { rows: rules.iter().map(|rule| (*rule, None)).collect() }
    }

    fn windows(&self, now_ms: u64) -> Vec<(Rule, Option<State>)> {
        let live = |row: &Charge| (row.expires_at_ms > now_ms).then_some(row.state);
        self.rows.iter().map(|(rule, row)| (*rule, row.as_ref().and_then(live))).collect()
    }

    fn hit(&mut self, cost: u64, now_ms: u64) -> Hit {
        let hit = hit(&self.windows(now_ms), cost, now_ms);
        for ((_, row), charge) in self.rows.iter_mut().zip(hit.charged.iter().flatten()) {
            *row = Some(*charge);
        }
        hit
    }

    fn ask(&self, cost: u64, now_ms: u64) -> Hit {
        hit(&self.windows(now_ms), cost, now_ms)
    }

    fn set_limit(&mut self, limit: u64) {
        self.rows.iter_mut().for_each(|(rule, _)| rule.limit = limit);
    }

    fn used(&self, now_ms: u64) -> Vec<u64> {
        self.windows(now_ms).iter().map(|(rule, state)| look(*rule, state.as_ref(), now_ms).used).collect()
    }

    /// How many of `calls` calls of cost 1 at `now_ms` are allowed.
    fn admitted(&mut self, calls: u64, now_ms: u64) -> u64 {
        (0..calls).map(|_| u64::from(self.hit(1, now_ms).allowed)).sum()
    }
}

fn any_algorithm() -> impl Strategy<Value = Algorithm> {
    prop::sample::select([Algorithm::Sliding, Algorithm::Fixed, Algorithm::Bucket].as_slice())
}
