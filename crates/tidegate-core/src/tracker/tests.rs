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
    assert_eq!(table.check(key, &limit, Work::Optional), (Some(Cause::Rate), false));
    assert!(!table.release(key, Work::Optional));
    assert_eq!(table.check(key, &limit, Work::Optional), (Some(Cause::Rate), false));
    assert_eq!(table.enter(1), 1);
    assert_eq!(table.check(key, &limit, Work::Optional), (None, true));
}
