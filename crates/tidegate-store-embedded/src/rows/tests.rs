//! The rows against a plain map.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidegate_store::Key;

use super::{Name, Place, Rows};

#[derive(Debug, Clone)]
enum Step {
    Put { row: u8, tag: u8, life_ms: u64, value_bytes: usize },
    Remove { row: u8, tag: u8 },
    Move { by_ms: u64 },
    Look { steps: usize },
    Sweep,
}

fn name(row: u8, tag: u8) -> Name {
    Name { key: Key::of(&[b"rows", &[row]]), tag }
}

fn step() -> impl Strategy<Value = Step> {
    let life_ms = prop_oneof![1_u64..100, 1_u64..10_000, 1_u64..20_000_000, 1_u64..10_000_000_000];
    let value_bytes = prop_oneof![0_usize..40, 0_usize..300, 0_usize..=4096];
    prop_oneof![
        6 => (0_u8..40, 0_u8..2, life_ms.clone(), value_bytes)
            .prop_map(|(row, tag, life_ms, value_bytes)| Step::Put { row, tag, life_ms, value_bytes }),
        2 => (0_u8..40, 0_u8..2).prop_map(|(row, tag)| Step::Remove { row, tag }),
        2 => life_ms.prop_map(|by_ms| Step::Move { by_ms }),
        1 => (0_usize..20).prop_map(|steps| Step::Look { steps }),
        1 => Just(Step::Sweep),
    ]
}

fn sweep(rows: &mut Rows, now_ms: u64) -> usize {
    assert!(rows.advance(now_ms, usize::MAX - 8));
    rows.remove_expired(now_ms, usize::MAX)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn rows_are_a_map_and_a_sweep_removes_exactly_the_expired(steps in prop::collection::vec(step(), 1..200)) {
        let mut rows = Rows::new();
        let mut model: BTreeMap<(u8, u8), (u64, Vec<u8>)> = BTreeMap::new();
        let mut now_ms = 1_700_000_000_000;
        for (index, step) in steps.into_iter().enumerate() {
            match step {
                Step::Put { row, tag, life_ms, value_bytes } => {
                    let value = vec![index.to_le_bytes()[0]; value_bytes];
                    rows.put(&name(row, tag), now_ms + life_ms, &value, 1).expect("there is memory");
                    model.insert((row, tag), (now_ms + life_ms, value));
                }
                Step::Remove { row, tag } => {
                    rows.remove(&name(row, tag));
                    model.remove(&(row, tag));
                }
                Step::Move { by_ms } => now_ms += by_ms,
                Step::Look { steps } => drop(rows.advance(now_ms, steps)),
                Step::Sweep => {
                    let before = model.len();
                    model.retain(|_, (expires_at_ms, _)| *expires_at_ms > now_ms);
                    prop_assert_eq!(sweep(&mut rows, now_ms), before - model.len());
                }
            }
            prop_assert_eq!(rows.count(), model.len() as u64);
            prop_assert_eq!(rows.count_of_tag(1), model.keys().filter(|(_, tag)| *tag == 1).count() as u64);
        }
        for (&(row, tag), (expires_at_ms, value)) in &model {
            let found = rows.find(&name(row, tag)).expect("the model has it");
            prop_assert_eq!((found.expires_at_ms(), found.value()), (*expires_at_ms, value.as_slice()));
        }
        let mut met = 0;
        prop_assert_eq!(rows.walk(Place::default(), usize::MAX, |_, _| { met += 1; true }), None);
        prop_assert_eq!(met, model.len());
    }
}

/// Two threads look at the clock, and come to the rows in the other order.
#[test]
fn a_sweep_that_is_behind_the_wheel_comes_to_its_end() {
    for expires_at_ms in 1000..=1010 {
        let mut rows = Rows::new();
        rows.put(&name(1, 0), expires_at_ms, &[1], 1).expect("there is memory");
        assert!(rows.advance(1010, usize::MAX - 8));
        assert_eq!(rows.remove_expired(1000, 10), 1, "the clock has shown 1010 already");
    }
}

#[test]
fn memory_returns_after_a_flood() {
    let key = |index: u32| Name { key: Key::of(&[b"flood", &index.to_le_bytes()]), tag: 0 };
    let mut rows = Rows::new();
    for index in 0..100 {
        rows.put(&key(index), 1_000_000, &[0; 12], 1).expect("there is memory");
    }
    let baseline = rows.memory_bytes();
    for index in 100..60_000 {
        rows.put(&key(index), 2000, &[0; 12], 1).expect("there is memory");
    }
    let flooded = rows.memory_bytes();
    assert!(flooded / 60_000 < 80, "{} bytes a row", flooded / 60_000);
    assert_eq!(sweep(&mut rows, 1999), 0);
    assert_eq!(sweep(&mut rows, 2000), 59_900);
    let after = rows.memory_bytes();
    assert!(after <= baseline * 6 / 5 + 4 * 256 * 1024, "{after} bytes after, {baseline} before");
    assert_eq!(rows.count(), 100);
}

#[test]
fn a_walk_in_small_steps_meets_every_row_once() {
    let mut rows = Rows::new();
    for index in 0..500_u32 {
        let value = vec![0; index as usize * 8];
        rows.put(&Name { key: Key::of(&[&index.to_le_bytes()]), tag: 0 }, 99, &value, 1)
            .expect("there is memory");
    }
    let (mut met, mut place) = (Vec::new(), Some(Place::default()));
    while let Some(from) = place {
        let mut left = 7;
        place = rows.walk(from, 50, |row, _| {
            met.push(row);
            left -= 1;
            left > 0
        });
        if left == 0 {
            // The row at which the walk was stopped comes again.
            met.pop();
        }
    }
    assert_eq!(met.len(), 500);
    assert!(met.iter().enumerate().all(|(index, row)| !met[..index].contains(row)));
}
