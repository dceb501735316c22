use alloc::{collections::BTreeMap, vec::Vec};

use proptest::{collection::vec, prelude::*};

use super::{Cause, Key, Limit, Row, Share, Table, Windows, Work};

#[test]
fn windows_lie_end_to_end() {
    let windows = Windows::new(10_000);
    for (now_ms, number, left_ms) in [
        (0, 0, 10_000),
        (1, 0, 9_999),
        (9_999, 0, 1),
        (10_000, 1, 10_000),
        (u64::MAX, u64::MAX / 10_000, 8_385),
    ] {
        assert_eq!((windows.number(now_ms), windows.left_ms(now_ms)), (number, left_ms), "{now_ms}");
    }
    assert_eq!(Windows::new(0), Windows::new(1));
}

#[test]
fn optional_work_leaves_the_rest_to_critical_work() {
    let limit = Limit { spent: Share { all: 3, optional: 2 }, active: Share { all: 2, optional: 1 } };
    let mut row = Row::default();
    let mut check = |work, expected: Option<Cause>| {
        assert_eq!(row.refusal(&limit, work), expected);
        if expected.is_none() {
            row.charge(work, true);
        }
    };
    check(Work::Optional, None);
    check(Work::Optional, Some(Cause::Concurrency));
    check(Work::Critical, None);
    check(Work::Critical, Some(Cause::Concurrency));
    row.release(Work::Critical);
    row.release(Work::Optional);
    assert_eq!(row.refusal(&limit, Work::Optional), None);
    row.charge(Work::Optional, true);
    row.release(Work::Optional);
    assert_eq!(row.refusal(&limit, Work::Optional), Some(Cause::Rate));
    row.clear_window();
    assert!(row.is_unused());
}

#[test]
fn a_row_outlives_its_window_only_with_a_lease() {
    let (held, spent) = (Key(1), Key(2));
    let mut table = Table::default();
    table.charge(held, Work::Critical, true);
    table.charge(spent, Work::Critical, false);
    assert_eq!((table.len(), table.enter(1)), (2, 1));
    assert_eq!(table.row(held).map(|row| row.active()), Some(1));
    assert_eq!(table.enter(1), 0, "the same window again");
    assert_eq!(table.enter(0), 0, "a window that has passed");
    assert!(table.release(held, Work::Critical), "nothing else was counted");
    assert!(!table.release(held, Work::Critical), "there is nothing to release");
    assert!(table.is_empty());
}

#[test]
fn a_lease_that_ends_in_its_window_leaves_what_was_spent() {
    let (key, limit) = (Key(7), Limit::even(1, 1));
    let mut table = Table::default();
    table.charge(key, Work::Optional, true);
    let refusal =
        |table: &Table| table.find(key).map(|place| table.refusal_at(place, &limit, Work::Optional));
    assert_eq!(refusal(&table), Some(Some(Cause::Rate)));
    assert!(!table.release(key, Work::Optional));
    assert_eq!(refusal(&table), Some(Some(Cause::Rate)));
    assert_eq!(table.enter(1), 1);
    assert_eq!(refusal(&table), None);
}

/// What happens to a table.
#[derive(Debug, Clone, Copy)]
enum Step {
    Charge { key: u64, leased: bool },
    Release(u64),
    Enter,
}

/// Some that crowd in the first line and in the last, and some that lie all over.
fn keys() -> impl Iterator<Item = u64> {
    (0..12).chain((0..12).map(|key| u64::MAX - key)).chain((1..24).map(|key| key << 28))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = proptest::sample::select(keys().collect::<Vec<_>>());
    let charge = (key.clone(), any::<bool>()).prop_map(|(key, leased)| Step::Charge { key, leased });
    vec(prop_oneof![8 => charge, 4 => key.prop_map(Step::Release), 1 => Just(Step::Enter)], 0..200)
}

proptest! {
    #[test]
    fn a_table_does_as_a_map(steps in steps()) {
        let (mut table, mut map) = (Table::default(), BTreeMap::<u64, Row>::new());
        let mut window = 0;
        for step in steps {
            match step {
                Step::Charge { key, leased } => {
                    table.charge(Key(key), Work::Critical, leased);
                    map.entry(key).or_default().charge(Work::Critical, leased);
                }
                Step::Release(key) => {
                    let before = map.len();
                    map.entry(key).and_modify(|row| row.release(Work::Critical));
                    map.retain(|_, row| !row.is_unused());
                    prop_assert_eq!(table.release(Key(key), Work::Critical), map.len() < before);
                }
                Step::Enter => {
                    window += 1;
                    let before = map.len();
                    map.values_mut().for_each(Row::clear_window);
                    map.retain(|_, row| !row.is_unused());
                    prop_assert_eq!(table.enter(window), before - map.len());
                }
            }
            prop_assert_eq!(table.len(), map.len());
            for key in keys() {
                prop_assert_eq!(table.row(Key(key)), map.get(&key).copied(), "key {}", key);
            }
        }
    }
}

#[test]
fn a_row_holds_as_many_leases_as_it_can_count() {
    let (key, limit) = (Key(7), Limit::even(u32::MAX, u32::MAX));
    let mut table = Table::default();
    let refusal =
        |table: &Table| table.find(key).and_then(|place| table.refusal_at(place, &limit, Work::Critical));
    for _ in 0..Table::LEASES_MAX {
        assert_eq!(refusal(&table), None);
        table.charge(key, Work::Critical, true);
    }
    assert_eq!(refusal(&table), Some(Cause::Concurrency));
    assert!(!table.release(key, Work::Critical));
    assert_eq!(refusal(&table), None);
    assert_eq!(table.row(key).map(|row| row.active()), Some(Table::LEASES_MAX - 1));
}

#[test]
fn rows_take_at_most_44_bytes() {
    let mut table = Table::default();
    for key in 0..100_000_u64 {
        table.charge(Key(key.wrapping_mul(0x9E37_79B9_7F4A_7C15)), Work::Optional, false);
        // A table of a few rows has more free places than that; it is a few hundred bytes.
        assert!(
            table.len() < 8 || table.bytes() <= 44 * table.len(),
            "{} rows, {} bytes",
            table.len(),
            table.bytes()
        );
    }
}
