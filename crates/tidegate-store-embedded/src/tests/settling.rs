//! Who waits for the disk, and for how much of it.

use std::task::Poll;

use tidegate_store::Backend;

use super::harness::{Harness, START_MS, begin, key, now, poll, put};
use crate::{Durability, testing::Fault};

const ROWS: u64 = 10;

fn opened(durability: Durability) -> Harness {
    let mut harness = Harness::new(durability);
    harness.open().expect("a new store");
    harness
}

#[test]
fn a_batch_is_seen_at_once_and_settles_with_the_flush() {
    for durability in [Durability::Fsync, Durability::Process, Durability::None] {
        let harness = opened(durability);
        let waits = durability == Durability::Fsync;
        let mut written = begin(harness.store(), &[put(1, &[1], START_MS + 1000)]).expect("nothing fails");
        assert!(now(harness.store().load(&[key(1)])).expect("nothing fails").rows[0].is_some());
        let mut read = begin(harness.store(), &[]).expect("nothing fails");
        assert_eq!(poll(&mut written).is_pending(), waits, "{durability:?}");
        assert_eq!(poll(&mut read).is_pending(), waits, "what it read may be lost: {durability:?}");
        if waits {
            harness.store().flush();
            assert!(matches!(poll(&mut written), Poll::Ready(Ok(()))));
            assert!(matches!(poll(&mut read), Poll::Ready(Ok(()))));
        }
        let mut read = begin(harness.store(), &[]).expect("nothing fails");
        assert!(poll(&mut read).is_ready(), "nothing is left to wait for: {durability:?}");
    }
}

#[test]
fn one_flush_settles_all_that_was_written_before_it() {
    let mut harness = opened(Durability::Fsync);
    for row in 0..ROWS {
        harness.begin(vec![put(row, &[1], START_MS + 1000)]).expect("nothing fails");
    }
    harness.acknowledge().expect("nothing fails");
    assert_eq!(harness.unsettled.len() as u64, ROWS);
    let syncs = harness.disk.syncs();
    harness.flush().expect("nothing fails");
    assert_eq!((harness.unsettled.len(), harness.disk.syncs()), (0, syncs + 1));
}

#[test]
fn a_flush_that_fails_is_told_to_all_that_wait_and_all_that_come() {
    let mut harness = opened(Durability::Fsync);
    let mut waiting: Vec<_> = (0..ROWS)
        .map(|row| begin(harness.store(), &[put(row, &[1], START_MS + 1000)]).expect("nothing fails"))
        .collect();
    harness.disk.fail_call(0, Fault::Io);
    harness.store().flush();
    assert!(waiting.iter_mut().all(|settled| matches!(poll(settled), Poll::Ready(Err(_)))));
    begin(harness.store(), &[]).expect_err("the store has stopped");
    harness.disk.kill();
    harness.open().expect("a restart recovers");
}

#[test]
fn a_full_disk_fails_a_batch_alone() {
    let mut harness = opened(Durability::Fsync);
    harness.begin(vec![put(1, &[1], START_MS + 1000)]).expect("nothing fails");
    harness.disk.fail_call(0, Fault::Full);
    harness.begin(vec![put(2, &[1], START_MS + 1000)]).expect_err("there is no room");
    harness.begin(vec![put(3, &[1], START_MS + 1000)]).expect("there is room again");
    harness.flush().expect("nothing fails");
    assert!(harness.unsettled.is_empty());
    harness.check(ROWS).expect("the first and the last are there");
}
