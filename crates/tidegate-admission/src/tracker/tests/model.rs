//! The tracker against a model that is too simple to be wrong, and models that are wrong on purpose.

use std::collections::BTreeMap;

use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, RngSeed, TestError, TestRunner},
};
use tidegate_core::tracker::{Cause, Key, Limit, Share, Work};

use super::{Charge, Decision, SIZE, Stage, charge, tracker};

/// What happens to a tracker.
#[derive(Debug, Clone)]
enum Step {
    Decide {
        work: Work,
        leased: bool,
        fixed: bool,
        keys: Vec<usize>,
    },
    /// Ends one of the leases that are held.
    Release(usize),
    Pass(u64),
}

/// What a model may get wrong. The comparison must notice each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    ChargesAsItGoes,
    KeepsTheWindow,
    ForgetsLeases,
    IgnoresTheReserve,
    IgnoresTheCeiling,
    LetsOptionalWorkHaveAll,
}

const FAULTS: [Fault; 6] = [
    Fault::ChargesAsItGoes,
    Fault::KeepsTheWindow,
    Fault::ForgetsLeases,
    Fault::IgnoresTheReserve,
    Fault::IgnoresTheCeiling,
    Fault::LetsOptionalWorkHaveAll,
];

#[derive(Debug, Default)]
struct Model {
    fault: Option<Fault>,
    window: u64,
    /// By key; the fixed place is [`GLOBAL`].
    rows: BTreeMap<u64, [Share; 2]>,
}

const GLOBAL: u64 = u64::MAX;
/// More keys than the tracker holds, several of them in one table.
const KEYS: usize = 12;

/// Of the key, or of the fixed place.
fn limit(key: u64) -> Limit {
    let narrow = u32::try_from(key % 3).expect("under three");
    let all = 3 + 2 * narrow;
    let (spent, active) = (Share { all, optional: all - 1 }, Share { all: all - 1, optional: all - 2 });
    if key == GLOBAL {
        Limit { spent: Share { all: 9, optional: 7 }, active: Share { all: 6, optional: 5 } }
    } else {
        Limit { spent, active }
    }
}

/// Keys by number: every other one lies in the table of its neighbour.
fn key(number: usize) -> u64 {
    let number = number as u64;
    (number / 2) << 32 | number
}

impl Model {
    fn decide(&mut self, now_ms: u64, work: Work, leased: bool, keys: &[u64]) -> Result<(), Cause> {
        self.enter(now_ms / SIZE.window_ms);
        for (index, key) in keys.iter().enumerate() {
            let [spent, active] = self.rows.get(key).copied().unwrap_or_default();
            let limit = limit(*key);
            let refusal = if self.is_full(spent, limit.spent, work) {
                Some(Cause::Rate)
            } else {
                self.is_full(active, limit.active, work).then_some(Cause::Concurrency)
            };
            if let Some(cause) = refusal {
                if self.fault == Some(Fault::ChargesAsItGoes) {
                    self.charge(&keys[..index], work, false);
                }
                return Err(cause);
            }
        }
        let new = keys.iter().filter(|key| **key != GLOBAL && !self.rows.contains_key(key)).count();
        if new > 0 && self.tracked() + new > self.room(work) {
            return Err(Cause::TrackedKeys);
        }
        self.charge(keys, work, leased);
        Ok(())
    }

    fn is_full(&self, share: Share, limit: Share, work: Work) -> bool {
        let for_all = self.fault == Some(Fault::LetsOptionalWorkHaveAll);
        share.all >= limit.all || (work == Work::Optional && !for_all && share.optional >= limit.optional)
    }

    fn room(&self, work: Work) -> usize {
        match self.fault {
            Some(Fault::IgnoresTheCeiling) => usize::MAX,
            Some(Fault::IgnoresTheReserve) => SIZE.tracked_max,
            _ if work == Work::Critical => SIZE.tracked_max,
            _ => SIZE.tracked_max - SIZE.reserve,
        }
    }

    fn charge(&mut self, keys: &[u64], work: Work, leased: bool) {
        for key in keys {
            let [spent, active] = self.rows.entry(*key).or_default();
            for share in [Some(spent), leased.then_some(active)].into_iter().flatten() {
                share.all += 1;
                share.optional += u32::from(work == Work::Optional);
            }
        }
    }

    fn release(&mut self, work: Work, keys: &[u64]) {
        for key in keys {
            if let Some([_, active]) = self.rows.get_mut(key) {
                active.all = active.all.saturating_sub(1);
                active.optional = active.optional.saturating_sub(u32::from(work == Work::Optional));
            }
        }
        self.rows.retain(|_, [spent, active]| spent.all > 0 || active.all > 0);
    }

    fn enter(&mut self, window: u64) {
        if window > self.window && self.fault != Some(Fault::KeepsTheWindow) {
            self.window = window;
            for [spent, active] in self.rows.values_mut() {
                *spent = Share::default();
                if self.fault == Some(Fault::ForgetsLeases) {
                    *active = Share::default();
                }
            }
            self.rows.retain(|_, [_, active]| active.all > 0);
        }
    }

    fn tracked(&self) -> usize {
        self.rows.keys().filter(|key| **key != GLOBAL).count()
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let work = prop_oneof![3 => Just(Work::Optional), 1 => Just(Work::Critical)];
    let keys = proptest::sample::subsequence((0..KEYS).collect::<Vec<_>>(), 0..=3).prop_shuffle();
    let decide = (work, any::<bool>(), any::<bool>(), keys)
        .prop_map(|(work, leased, fixed, keys)| Step::Decide { work, leased, fixed, keys });
    let step = prop_oneof![
        12 => decide,
        3 => any::<usize>().prop_map(Step::Release),
        1 => (0..2 * SIZE.window_ms).prop_map(Step::Pass),
    ];
    vec(step, 0..120)
}

/// Both go through the steps, and must agree on every answer and count.
fn compare(fault: Option<Fault>, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let (tracker, mut model) = (tracker(SIZE), Model { fault, ..Model::default() });
    let (mut now_ms, mut leases) = (0, Vec::new());
    for step in steps {
        match step {
            Step::Pass(ms) => now_ms += ms,
            Step::Release(which) => {
                if !leases.is_empty() {
                    let (work, fixed, keys): (Work, bool, Vec<u64>) =
                        leases.swap_remove(which % leases.len());
                    let keyed: Vec<Key> = keys.iter().map(|key| Key(*key)).collect();
                    tracker.release(work, if fixed { &[0] } else { &[] }, &keyed);
                    model.release(work, &with_global(fixed, &keys));
                }
            }
            Step::Decide { work, leased, fixed, keys } => {
                let keys: Vec<u64> = keys.into_iter().map(key).collect();
                let keyed: Vec<Charge<Key>> = keys.iter().map(|key| charge(Key(*key), limit(*key))).collect();
                let global = [charge(0, limit(GLOBAL))];
                let decision = Decision {
                    leased,
                    fixed: if fixed { &global } else { &[] },
                    keyed: &keyed,
                    ..Decision::of(Stage::One, work)
                };
                let found = tracker.decide(now_ms, &decision).map_err(|refusal| refusal.cause);
                let expected = model.decide(now_ms, work, leased, &with_global(fixed, &keys));
                prop_assert_eq!(found, expected);
                if leased && found.is_ok() {
                    leases.push((work, fixed, keys));
                }
            }
        }
        model.enter(now_ms / SIZE.window_ms);
        prop_assert_eq!(tracker.tracked(now_ms), model.tracked());
    }
    Ok(())
}

/// The keys in the order in which the tracker looks at them.
fn with_global(fixed: bool, keys: &[u64]) -> Vec<u64> {
    keys.iter().copied().chain(fixed.then_some(GLOBAL)).collect()
}

proptest! {
    #![proptest_config(Config::with_cases(500))]
    #[test]
    fn the_tracker_does_as_the_model(steps in steps()) {
        compare(None, steps)?;
    }
}

/// Negative control: whatever of this the tracker got wrong, the test above would show.
#[test]
fn wrong_models_are_noticed() {
    for fault in FAULTS {
        let config = Config {
            rng_seed: RngSeed::Fixed(0x7469_6465),
            failure_persistence: None,
            ..Config::with_cases(2000)
        };
        let outcome = TestRunner::new(config).run(&steps(), |steps| compare(Some(fault), steps));
        assert!(matches!(outcome, Err(TestError::Fail(..))), "{fault:?} goes unnoticed");
    }
}
