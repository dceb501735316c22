use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::codec::DecodeError;

const fn rule(limit: u64, period_ms: u64) -> BudgetRule {
    BudgetRule { limit, period_ms }
}

const fn budget(ends_at_ms: u64, used: u64) -> Budget {
    Budget { ends_at_ms, used }
}

fn receipt(reserved: &Reserved, cost: u64) -> Receipt {
    let charges = reserved.budgets.iter().enumerate().map(|(index, budget)| (key(index), budget.ends_at_ms));
    Receipt { refunded: false, cost, charges: charges.collect() }
}

fn key(index: usize) -> Key {
    Key::of(&[b"budget", &index.to_le_bytes()])
}

#[test]
fn a_window_begins_at_its_first_reservation() {
    let table = [
        ("the first", None, 1000, budget(6000, 1), 5000),
        ("a later one leaves the end", Some(budget(6000, 1)), 3000, budget(6000, 2), 3000),
        ("refunded to nothing, still", Some(budget(6000, 0)), 3000, budget(6000, 1), 3000),
        ("at its end it is over", Some(budget(6000, 5)), 6000, budget(11_000, 1), 5000),
    ];
    for (what, before, now_ms, after, reset_ms) in table {
        let reserve = reserve(&[(rule(5, 5000), before)], 0, 1, now_ms);
        assert!(reserve.allowed(), "{what}");
        let reserved = reserve.reserved.expect("it was allowed");
        assert_eq!(reserved.budgets.as_slice(), [after], "{what}");
        assert_eq!(reserved.receipt_expires_at_ms, after.ends_at_ms, "{what}");
        let usage = Usage { limit: 5, used: after.used, remaining: 5 - after.used, reset_ms };
        assert_eq!(reserve.usages.as_slice(), [usage], "{what}");
    }
}

#[test]
fn all_budgets_or_none() {
    let full = Some(budget(9000, 3));
    let fuller = Some(budget(7000, 2));
    type Budgets = [(BudgetRule, Option<Budget>); 2];
    type Denial<'a> = (&'a [usize], Option<u64>);
    let table: [(&str, Budgets, u64, Denial<'_>); 8] = [
        ("both have room", [(rule(3, 100), None), (rule(3, 100), None)], 1, (&[], Some(0))),
        ("the first has none", [(rule(3, 100), full), (rule(3, 100), None)], 1, (&[0], Some(4000))),
        ("neither has", [(rule(3, 100), full), (rule(2, 100), fuller)], 1, (&[0, 1], Some(4000))),
        ("the second waits less", [(rule(4, 100), full), (rule(2, 100), fuller)], 1, (&[1], Some(2000))),
        ("over a limit for ever", [(rule(3, 100), full), (rule(1, 100), None)], 2, (&[0, 1], None)),
        ("a limit of 0", [(rule(0, 100), None), (rule(9, 100), None)], 1, (&[0], None)),
        ("a limit of 0, asked", [(rule(0, 100), None), (rule(9, 100), None)], 0, (&[0], None)),
        ("over a lowered limit, asked", [(rule(2, 100), full), (rule(9, 100), None)], 0, (&[0], Some(4000))),
    ];
    for (what, budgets, cost, (denied_by, retry_after_ms)) in table {
        let reserve = reserve(&budgets, 1, cost, 5000);
        assert_eq!(reserve.denied_by.as_slice(), denied_by, "{what}");
        assert_eq!(reserve.retry_after_ms, retry_after_ms, "{what}");
        assert_eq!(reserve.reserved.is_some(), denied_by.is_empty(), "{what}");
    }
}

#[test]
fn a_look_takes_nothing() {
    let reserve = reserve(&[(rule(3, 100), None), (rule(3, 100), Some(budget(50, 3)))], 0, 0, 20);
    assert!(reserve.allowed());
    assert_eq!(reserve.reserved, None);
    assert_eq!(
        reserve.usages.iter().map(|usage| (usage.used, usage.reset_ms)).collect::<Vec<_>>(),
        [(0, 0), (3, 30)]
    );
}

#[test]
fn the_receipt_ends_with_its_target() {
    let budgets = [(rule(3, 1000), None), (rule(3, 5000), None), (rule(3, 2000), Some(budget(900, 1)))];
    for (target, expected) in [(0, 1500), (1, 5500), (2, 900), (7, 900)] {
        let reserved = reserve(&budgets, target, 1, 500).reserved.expect("there is room");
        assert_eq!(reserved.receipt_expires_at_ms, expected, "target {target}");
    }
}

#[test]
fn refunds() {
    let charged =
        Receipt { refunded: false, cost: 3, charges: [(key(0), 900), (key(1), 5000)].into_iter().collect() };
    type Rows = [Option<Budget>; 2];
    let table: [(&str, Rows, u64, Rows); 6] = [
        (
            "both",
            [Some(budget(900, 3)), Some(budget(5000, 9))],
            800,
            [Some(budget(900, 0)), Some(budget(5000, 6))],
        ),
        (
            "one window has ended",
            [Some(budget(900, 3)), Some(budget(5000, 9))],
            900,
            [None, Some(budget(5000, 6))],
        ),
        (
            "and begun anew",
            [Some(budget(1900, 3)), Some(budget(5000, 9))],
            950,
            [None, Some(budget(5000, 6))],
        ),
        ("a row is gone", [None, Some(budget(5000, 3))], 950, [None, Some(budget(5000, 0))]),
        ("never under 0", [None, Some(budget(5000, 2))], 950, [None, Some(budget(5000, 0))]),
        ("nothing is left", [None, None], 950, [None, None]),
    ];
    for (what, rows, now_ms, expected) in table {
        let Refund::Refunded { receipt, budgets } = refund(Some(charged.clone()), &rows, now_ms) else {
            panic!("{what}: it can be refunded");
        };
        assert_eq!(budgets.as_slice(), expected, "{what}");
        assert_eq!(receipt, Receipt { refunded: true, ..charged.clone() }, "{what}");
        assert_eq!(refund(Some(receipt), &rows, now_ms), Refund::AlreadyRefunded, "{what}");
    }
    assert_eq!(refund(None, &[], 0), Refund::UnknownOrExpired);
    let Refund::Refunded { budgets, .. } = refund(Some(charged), &[], 0) else {
        panic!("it can be refunded")
    };
    assert_eq!(budgets.as_slice(), [None, None], "rows that weren't loaded are left alone");
}

#[test]
fn a_success_returns_only_its_own() {
    // 9 wrong guesses and a right login for one's own account, again and again.
    let rule = rule(10, 300_000);
    let (mut row, mut guesses) = (None, 0);
    for round in 0..20 {
        for _ in 0..9 {
            if let Some(reserved) = reserve(&[(rule, row)], 0, 1, round).reserved {
                row = Some(reserved.budgets[0]);
                guesses += 1;
            }
        }
        if let Some(reserved) = reserve(&[(rule, row)], 0, 1, round).reserved {
            row = Some(reserved.budgets[0]);
            if let Refund::Refunded { budgets, .. } = refund(Some(receipt(&reserved, 1)), &[row], round) {
                row = budgets[0];
            }
        }
    }
    assert_eq!(guesses, 10);
}

/// Rows as they have been written by every version so far. A change here needs a new first byte.
#[test]
fn rows_of_every_version_are_read() {
    let mut bytes = Vec::new();
    budget(300, 7).encode(&mut bytes);
    assert_eq!(bytes, [0x41, 0xac, 0x02, 7]);
    assert_eq!(Budget::decode(&bytes), Ok(budget(300, 7)));

    let first =
        Receipt { refunded: true, cost: 2, charges: [(Key::from_bytes([9; 24]), 300)].into_iter().collect() };
    let mut bytes = Vec::new();
    first.encode(&mut bytes);
    let expected = [&[0x51, 1, 2, 1][..], &[9; 24], &[0xac, 0x02]].concat();
    assert_eq!(bytes, expected);
    assert_eq!(Receipt::decode(&bytes), Ok(first));
}

#[test]
fn other_bytes_are_refused() {
    assert_eq!(Budget::decode(&[0x51, 0, 0]), Err(DecodeError::Version { first_byte: 0x51 }));
    assert_eq!(Budget::decode(&[0x41, 0, 0, 0]), Err(DecodeError::Trailing { bytes: 1 }));
    assert_eq!(Receipt::decode(&[0x51, 2, 1, 0]), Err(DecodeError::OutOfRange));
    let claims_many = [0x51, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    assert_eq!(Receipt::decode(&claims_many), Err(DecodeError::Truncated));
}

/// What a test reserves, refunds or waits.
#[derive(Debug, Clone)]
enum Action {
    Reserve { cost: u64 },
    Refund { receipt: usize },
    Wait { ms: u64 },
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        (0..4_u64).prop_map(|cost| Action::Reserve { cost }),
        (0..8_usize).prop_map(|receipt| Action::Refund { receipt }),
        (1..30_u64).prop_map(|ms| Action::Wait { ms }),
    ];
    prop::collection::vec(action, 0..40)
}

proptest! {
    /// In every window: granted - refunded = the row's count, and that is never over the limit.
    #[test]
    fn the_books_balance(actions in actions(), limits in prop::array::uniform2(1..6_u64), periods in prop::array::uniform2(1..60_u64)) {
        let rules = [rule(limits[0], periods[0]), rule(limits[1], periods[1])];
        let mut rows: [Option<Budget>; 2] = [None; 2];
        let mut receipts: Vec<(Receipt, u64)> = Vec::new();
        let mut now_ms = 1000;
        for action in actions {
            match action {
                Action::Wait { ms } => now_ms += ms,
                Action::Reserve { cost } => {
                    if let Some(reserved) = reserve(&[(rules[0], rows[0]), (rules[1], rows[1])], 1, cost, now_ms).reserved {
                        rows = [Some(reserved.budgets[0]), Some(reserved.budgets[1])];
                        receipts.push((receipt(&reserved, cost), reserved.receipt_expires_at_ms));
                    }
                }
                Action::Refund { receipt } => {
                    let Some((receipt, expires_at_ms)) = receipts.get_mut(receipt) else { continue };
                    let live = (*expires_at_ms > now_ms).then(|| receipt.clone());
                    if let Refund::Refunded { receipt: after, budgets } = refund(live, &rows, now_ms) {
                        prop_assert!(!receipt.refunded);
                        *receipt = after;
                        rows = [budgets[0].or(rows[0]), budgets[1].or(rows[1])];
                    }
                }
            }
            for (index, row) in rows.iter().enumerate() {
                let Some(row) = row.filter(|row| row.ends_at_ms > now_ms) else { continue };
                let held: u64 = receipts
                    .iter()
                    .filter(|(receipt, _)| !receipt.refunded && receipt.charges[index].1 == row.ends_at_ms)
                    .map(|(receipt, _)| receipt.cost)
                    .sum();
                prop_assert_eq!(row.used, held);
                prop_assert!(row.used <= rules[index].limit);
            }
        }
    }

    #[test]
    fn the_wait_is_exact(used in prop::array::uniform2(0..6_u64), ends in prop::array::uniform2(1001..1050_u64), cost in 0..7_u64) {
        let budgets = [(rule(4, 40), Some(budget(ends[0], used[0]))), (rule(5, 40), Some(budget(ends[1], used[1])))];
        let allowed_at = |wait_ms: u64| reserve(&budgets, 0, cost, 1000 + wait_ms).allowed();
        let first = (0..100).find(|wait_ms| allowed_at(*wait_ms));
        prop_assert_eq!(reserve(&budgets, 0, cost, 1000).retry_after_ms, first);
    }

    #[test]
    fn what_is_read_is_written_alike(rest in prop::collection::vec(any::<u8>(), 0..80)) {
        for first in [0x41, 0x51] {
            let bytes = [&[first][..], &rest].concat();
            let mut again = Vec::new();
            if let Ok(budget) = Budget::decode(&bytes) {
                budget.encode(&mut again);
            } else if let Ok(receipt) = Receipt::decode(&bytes) {
                receipt.encode(&mut again);
            } else {
                continue;
            }
            prop_assert_eq!(again, bytes);
        }
    }
}
