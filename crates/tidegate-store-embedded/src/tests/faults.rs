//! Disks that fail: what is answered, and what is there afterwards.

use tidegate_store::{Backend, clock::Clock};

use super::harness::{Harness, START_MS, commit, now, put};
use crate::{
    Durability,
    testing::{Fault, SimulatedDisk},
};

const ROWS: u64 = 40;

fn fill(harness: &mut Harness, rows: u64) {
    for row in 0..rows {
        harness.commit(vec![put(row, &[7; 100], START_MS + 1_000_000)]).expect("nothing fails yet");
    }
}

fn opened(durability: Durability) -> Harness {
    let mut harness = Harness::new(durability);
    harness.open().expect("a new store");
    harness
}

#[test]
fn every_call_of_an_opening_may_fail_once() {
    let mut before = opened(Durability::Fsync);
    fill(&mut before, ROWS);
    before.store = None;
    let good = before.disk.copy();
    for call in 0.. {
        let mut harness = Harness::new(Durability::Fsync);
        harness.history.clone_from(&before.history);
        harness.disk = good.copy();
        harness.disk.fail_call(call, Fault::Io);
        let calls_before = harness.disk.calls();
        let failed = harness.open().is_err();
        let calls = harness.disk.calls() - calls_before;
        harness.disk.kill();
        harness.open().unwrap_or_else(|error| panic!("call {call}: {error}"));
        harness.check_reopened(ROWS, 0).unwrap_or_else(|wrong| panic!("call {call}: {wrong}"));
        if !failed && call > calls {
            assert!(call > 8, "an opening takes a few calls");
            return;
        }
    }
}

#[test]
fn every_call_of_a_commit_may_fail_once() {
    for fault in [Fault::Io, Fault::Full, Fault::Short] {
        for call in 0..60 {
            let mut harness = opened(Durability::Fsync);
            fill(&mut harness, 30);
            harness.disk.fail_call(call, fault);
            for row in 0..ROWS {
                let committed = harness.commit(vec![put(row, &[8; 120], START_MS + 1_000_000)]);
                if committed.is_ok() {
                    harness.check(ROWS).unwrap_or_else(|wrong| panic!("{fault:?}, call {call}: {wrong}"));
                } else if harness.read(1).is_err() {
                    // It was the flush, and the store has stopped.
                    break;
                }
            }
            harness.disk.kill();
            harness.open().unwrap_or_else(|error| panic!("{fault:?}, call {call}: {error}"));
            harness.check_reopened(ROWS, 0).unwrap_or_else(|wrong| panic!("{fault:?}, call {call}: {wrong}"));
        }
    }
}

#[test]
fn a_failed_flush_stops_the_store_until_it_is_opened_again() {
    let mut harness = opened(Durability::Fsync);
    fill(&mut harness, 3);
    harness.begin(vec![put(9, &[1], START_MS + 1000)]).expect("nothing fails yet");
    harness.disk.fail_call(0, Fault::Io);
    harness.flush().expect_err("the flush fails");
    let store = harness.store();
    let error = now(store.load(&[])).expect_err("nothing is answered from here on");
    assert!(error.cause.expect("it has one").to_string().contains("flushing the log"));
    now(store.sweep(10)).expect_err("nothing is answered from here on");
    now(store.count()).expect_err("nothing is answered from here on");
    commit(store, &[]).expect_err("nothing is answered from here on");

    harness.disk.kill();
    harness.open().expect("a restart recovers");
    harness.check_reopened(ROWS, 0).expect("what was acknowledged is there");
}

#[test]
fn a_restart_after_a_failed_flush_does_not_believe_the_cache() {
    let mut harness = opened(Durability::Fsync);
    fill(&mut harness, 3);
    harness.begin(vec![put(9, &[1], START_MS + 1000)]).expect("nothing fails yet");
    harness.disk.fail_call(0, Fault::Io);
    harness.flush().expect_err("the flush fails");
    // The system has dropped the write and yet shows it; whoever reads it must write it again.
    harness.disk.kill();
    harness.open().expect("a restart recovers");
    harness.check_reopened(ROWS, 0).expect("one of the two");
    let seen = harness.present().len();
    harness.disk.cut_power(&mut crate::testing::Random::new(1));
    harness.open().expect("a restart recovers");
    harness.check_reopened(ROWS, 0).expect("what was seen is there");
    assert_eq!(harness.present().len(), seen);
}

#[test]
fn a_full_disk_refuses_and_is_good_again_once_there_is_room() {
    for durability in [Durability::Fsync, Durability::Process] {
        let mut harness = opened(durability);
        fill(&mut harness, 10);
        harness.disk.bound(Some(harness.disk.bytes()));
        let mut refused = 0;
        for round in 0..400_u64 {
            let change = put(round % ROWS, &round.to_le_bytes().repeat(20), START_MS + 1_000_000);
            refused += u32::from(harness.commit(vec![change]).is_err());
            harness.check(ROWS).expect("what was refused is not there");
        }
        assert!(refused > 0, "{durability:?}: 400 batches do not fit");
        harness.disk.bound(None);
        fill(&mut harness, ROWS);
        harness.check(ROWS).expect("good again");
        harness.disk.kill();
        harness.open().expect("it was never damaged");
        harness.check_reopened(ROWS, 0).expect("what was acknowledged is there");
    }
}

#[test]
fn a_new_store_survives_any_end_of_its_making() {
    for call in 0..30 {
        for seed in 0..4 {
            let mut harness = Harness::new(Durability::Fsync);
            harness.disk = SimulatedDisk::new();
            harness.disk.fail_call(call, Fault::Short);
            drop(harness.open());
            harness.disk.cut_power(&mut crate::testing::Random::new(seed));
            harness.open().unwrap_or_else(|error| panic!("call {call}, seed {seed}: {error}"));
            fill(&mut harness, 3);
        }
    }
}

#[test]
fn a_batch_larger_than_a_segment_is_one_batch() {
    let mut harness = opened(Durability::Fsync);
    fill(&mut harness, 5);
    let expires_at_ms = harness.clock.now_ms() + 1_000_000;
    let large = (0..ROWS).map(|row| put(row, &[9; 4096], expires_at_ms)).collect();
    harness.commit(large).expect("the segment grows");
    fill(&mut harness, 5);
    harness.settle();
    harness.check(ROWS).expect("all of it is there");
    harness.disk.kill();
    harness.open().expect("it is in order");
    harness.check_reopened(ROWS, 0).expect("all of it is there");
    let too_large = put(1, &[0; 4097], expires_at_ms);
    harness.commit(vec![too_large]).expect_err("nobody could read it back");
}
