//! When a sweep looks at a row.
//!
//! A row carries, beside its expiry, the instant from which a sweep removes it, and only that is indexed. It is
//! never before the expiry, and as long as it is not too far after it, it stays as it is while the expiry
//! moves. So a row that every request moves (a sliding window, a bucket) changes no index, which is what lets
//! PostgreSQL write its new version beside the old one and nothing else; an index over the expiry itself would
//! have every such update write to all indexes. A row that is written once goes exactly at its expiry.

/// A row whose life was extended may outstay it by this part of what it had left.
const PART: u64 = 8;
/// And by no more than this: a fifth of the time between two sweeps.
const OUTSTAYS_MS_MAX: u64 = 60_000;

/// From when on a sweep removes a row that is written at `now_ms`. `before` is what that was until now, if the
/// row is there.
pub(crate) fn sweep_at_ms(before: Option<u64>, expires_at_ms: u64, now_ms: u64) -> u64 {
    let Some(before) = before else { return expires_at_ms };
    let left_ms = expires_at_ms.saturating_sub(now_ms);
    let latest = expires_at_ms + (left_ms / PART).min(OUTSTAYS_MS_MAX);
    if (expires_at_ms..=latest).contains(&before) { before } else { latest }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidegate_store::LASTING_MS;

    use super::*;

    #[test]
    fn it_moves_only_when_it_must() {
        let table = [
            ("a new row", None, 1800, 1800),
            ("the same expiry again", Some(1800), 1800, 1800),
            ("extended a little, which moves it ahead", Some(1800), 1808, 1909),
            ("extended up to there", Some(1909), 1909, 1909),
            ("extended once more", Some(1909), 1910, 2023),
            ("cut short a little", Some(1909), 1890, 1909),
            ("cut short by much", Some(1909), 1080, 1090),
            ("an expired row that is written again", Some(900), 1800, 1900),
            ("for ever", Some(1800), LASTING_MS, LASTING_MS + OUTSTAYS_MS_MAX),
        ];
        for (what, before, expires_at_ms, right) in table {
            assert_eq!(sweep_at_ms(before, expires_at_ms, 1000), right, "{what}");
        }
    }

    #[test]
    fn a_sliding_row_changes_its_index_rarely() {
        let (mut at, mut moves) = (60_000, 0);
        for now_ms in (100..600_000).step_by(100) {
            let next = sweep_at_ms(Some(at), now_ms + 60_000, now_ms);
            moves += u32::from(next != at);
            at = next;
        }
        assert_eq!(moves, 79, "of 5999 updates, one each 7.5 s");
    }

    proptest! {
        #[test]
        fn it_is_never_before_the_expiry_nor_long_after_it(
            before in prop::option::of(0..10_000_000_u64),
            left_ms in 1..10_000_000_u64,
            now_ms in 0..10_000_000_u64,
        ) {
            let expires_at_ms = now_ms + left_ms;
            let at = sweep_at_ms(before, expires_at_ms, now_ms);
            prop_assert!(at >= expires_at_ms);
            prop_assert!(at - expires_at_ms <= (left_ms / PART).min(OUTSTAYS_MS_MAX));
        }
    }
}
