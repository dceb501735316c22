//! How much of the disk a store takes up.

use std::collections::VecDeque;

use tidegate_store::{Backend, Entry, Swept, clock::Clock};

use super::harness::{Harness, SEGMENT_BYTES, batch, now, put};
use crate::{Durability, testing::Random};

/// Rows of a few hundred bytes each shall not fill a segment by themselves here.
const LARGER_SEGMENT_BYTES: u64 = 16 * 1024;
/// So many commits may pass until the disk follows the live data when that shrinks.
const LAG_COMMITS: usize = 16;

#[test]
fn churn_never_takes_more_than_three_times_the_live_data() {
    for (rows, durability) in [(10, Durability::Fsync), (300, Durability::Fsync), (300, Durability::Process)]
    {
        let mut harness = Harness::new(durability);
        harness.segment_bytes = LARGER_SEGMENT_BYTES;
        harness.open().expect("a new store");
        let mut random = Random::new(rows);
        let mut live_bytes = VecDeque::from([0; LAG_COMMITS]);
        for _ in 0..4000 {
            let now_ms = harness.clock.now_ms();
            harness.commit(batch(&mut random, rows, now_ms)).expect("nothing fails");
            harness.history.drain(..harness.history.len() - 1);
            if random.once_in(10) {
                harness.clock.advance(random.below(200));
                now(harness.store().sweep(1000)).expect("nothing fails");
                harness.store().tick();
            }
            let stats = harness.store().stats();
            let disk_bytes = harness.disk.bytes();
            assert_eq!(stats.disk_bytes, disk_bytes, "the store knows its files");
            live_bytes.pop_front();
            live_bytes.push_back(stats.live_bytes);
            let allowed = 3 * live_bytes.iter().max().expect("some") + 7 * LARGER_SEGMENT_BYTES;
            assert!(disk_bytes <= allowed, "{disk_bytes} bytes on the disk, at most {allowed}: {stats:?}");
        }
        harness.check(rows).expect("nothing was lost");
        let stats = harness.store().stats();
        assert!(stats.written_bytes > 20 * stats.live_bytes, "there was churn: {stats:?}");
        assert!(
            stats.copied_bytes < stats.written_bytes / 2,
            "cleaning wrote less than the batches: {stats:?}"
        );
    }
}

#[test]
fn the_room_of_expired_rows_comes_back_without_any_write() {
    let mut harness = Harness::new(Durability::Fsync);
    harness.open().expect("a new store");
    let mut after_round = Vec::new();
    for round in 0..3_u64 {
        let now_ms = harness.clock.now_ms();
        for row in 0..500 {
            let change = put(round * 500 + row, &[7; 60], now_ms + 60_000);
            harness.commit(vec![change]).expect("nothing fails");
        }
        harness.clock.advance(60_000);
        assert_eq!(
            now(harness.store().sweep(1000)).expect("nothing fails").removed,
            500,
            "each is swept once"
        );
        assert_eq!(now(harness.store().count()).expect("nothing fails"), 0);
        harness.settle();
        after_round.push(harness.disk.bytes());
    }
    assert!(after_round[0] <= 5 * SEGMENT_BYTES, "{after_round:?}");
    assert!(after_round.iter().all(|&bytes| bytes <= after_round[0] * 11 / 10), "{after_round:?}");
}

#[test]
fn rows_that_never_change_survive_the_churn_of_others() {
    let mut harness = Harness::new(Durability::Fsync);
    harness.open().expect("a new store");
    let now_ms = harness.clock.now_ms();
    for row in 0..100 {
        harness.commit(vec![put(row, &[1; 50], now_ms + 30 * 86_400_000)]).expect("nothing fails");
    }
    for round in 0..3000_u64 {
        harness.clock.advance(500);
        let now_ms = harness.clock.now_ms();
        harness.commit(vec![put(100 + round % 5, &[2; 50], now_ms + 60_000)]).expect("nothing fails");
        harness.history.drain(..harness.history.len() - 1);
    }
    harness.check(105).expect("nothing was lost");
    assert_eq!(now(harness.store().sweep(1000)).expect("nothing fails").removed, 0, "none has expired");
    harness.disk.kill();
    harness.open().expect("it is in order");
    harness.check_reopened(105, 0).expect("nothing was lost");
}

#[test]
fn a_quiet_store_writes_nothing() {
    let mut harness = Harness::new(Durability::Process);
    harness.open().expect("a new store");
    let now_ms = harness.clock.now_ms();
    harness.commit(vec![put(1, &[1], now_ms + 1000)]).expect("nothing fails");
    for _ in 0..10 {
        harness.clock.advance(2000);
        harness.store().tick();
        now(harness.store().sweep(10)).expect("nothing fails");
    }
    let quiet = (harness.disk.calls(), harness.disk.syncs());
    for _ in 0..10 {
        harness.clock.advance(2000);
        harness.store().tick();
        now(harness.store().sweep(10)).expect("nothing fails");
    }
    assert_eq!((harness.disk.calls(), harness.disk.syncs()), quiet);
}

#[test]
fn a_sweep_is_bounded_and_removes_expired_rows_only() {
    let mut harness = Harness::new(Durability::None);
    harness.open().expect("nothing fails");
    let now_ms = harness.clock.now_ms();
    for row in 0..100 {
        let life_ms = if row < 10 { 30 * 86_400_000 } else { 60_000 };
        harness.commit(vec![put(row, &[1], now_ms + life_ms)]).expect("nothing fails");
    }
    harness.clock.advance(2 * 86_400_000);
    let swept = |_| now(harness.store().sweep(40)).expect("nothing fails");
    let swept: Vec<(usize, bool)> =
        (0..4).map(swept).map(|Swept { removed, complete }| (removed, complete)).collect();
    assert_eq!(swept, [(40, false), (40, false), (10, true), (0, true)]);
    let (_, left) = harness.read(100).expect("nothing fails");
    assert_eq!(left.len(), 10);
    assert!(left.values().all(|entry: &Entry| entry.expires_at_ms == now_ms + 30 * 86_400_000));
}

#[test]
fn a_sweep_comes_in_short_steps_however_many_rows_are_due() {
    const ROWS: u64 = 20_000;
    let mut harness = Harness::new(Durability::None);
    harness.open().expect("nothing fails");
    let expires_at_ms = harness.clock.now_ms() + 7 * 86_400_000;
    for first in (0..ROWS).step_by(1000) {
        let changes: Vec<_> = (first..first + 1000).map(|row| put(row, &[1], expires_at_ms)).collect();
        super::harness::commit(harness.store(), &changes).expect("nothing fails");
    }
    harness.clock.advance(7 * 86_400_000);
    let (mut steps, mut removed) = (0, 0);
    let mut complete = false;
    while !complete {
        let step = now(harness.store().sweep(1000)).expect("nothing fails");
        assert!(step.removed <= 1000);
        complete = step.complete;
        removed += step.removed as u64;
        steps += 1;
        assert!(steps <= ROWS, "it comes to its end");
    }
    assert_eq!(removed, ROWS);
    assert!(steps >= ROWS / 1024, "each step looks at a bounded number of rows: {steps}");
}
