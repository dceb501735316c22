//! Disks that the log itself has filled: they are good again once rows have expired, without room from outside.

use tidegate_store::{Backend, clock::Clock};

use super::harness::{Harness, now, put};
use crate::{
    Durability,
    testing::{Fault, Random},
};

const SEGMENT_BYTES: u64 = 16 * 1024;
const LIFE_MS: u64 = 60_000;
const LONG_LIFE_MS: u64 = 30 * 86_400_000;
const ROWS: u64 = 1800;

fn opened(durability: Durability, segments: u64) -> Harness {
    let mut harness = Harness::new(durability);
    harness.segment_bytes = SEGMENT_BYTES;
    harness.disk.bound(Some(segments * SEGMENT_BYTES + SEGMENT_BYTES / 2));
    harness.open().expect("a new store");
    harness
}

fn write(harness: &mut Harness, row: u64, life_ms: u64) -> bool {
    let expires_at_ms = harness.clock.now_ms() + life_ms;
    let written = harness.commit(vec![put(row, &[7; 100], expires_at_ms)]).is_ok();
    let old = harness.history.len() - 1;
    harness.history.drain(..old);
    written
}

/// Writes rows that expire soon until the disk is full; answers how many had room.
fn fill(harness: &mut Harness) -> u64 {
    let written = (500..ROWS).find(|&row| !write(harness, row, LIFE_MS)).expect("the disk is full some time");
    for _ in 0..20 {
        harness.store().tick();
        // Cleaning may still find some room for it.
        write(harness, 499, LIFE_MS);
    }
    written - 500
}

fn expire(harness: &Harness) {
    harness.clock.advance(LIFE_MS);
    while !now(harness.store().sweep(1000)).expect("nothing stops").complete {}
}

fn reopen(harness: &mut Harness) {
    harness.disk.kill();
    harness.open().expect("a full disk can be opened");
    harness.check_reopened(ROWS, 0).expect("nothing was lost");
}

#[test]
fn a_disk_that_the_store_has_filled_is_good_again_once_rows_have_expired() {
    for durability in [Durability::Fsync, Durability::Process] {
        for segments in [1, 2, 3, 4, 8] {
            let mut harness = opened(durability, segments);
            let mut filled = Vec::new();
            for _ in 0..4 {
                filled.push(fill(&mut harness));
                harness.check(ROWS).expect("what was refused is not there");
                if segments > 1 {
                    expire(&harness);
                    harness.settle();
                } else {
                    break;
                }
            }
            let least = filled[0] / 2;
            assert!(filled.iter().all(|&rows| rows > least), "{durability:?}, {segments}: {filled:?}");
        }
    }
}

#[test]
fn rows_that_live_on_in_the_oldest_segments_do_not_keep_the_disk_full() {
    for segments in [4, 5, 8] {
        for long_rows in [1, 60, 95, 30 * (segments - 1)] {
            let mut harness = opened(Durability::Fsync, segments);
            for row in 0..long_rows {
                assert!(write(&mut harness, row, LONG_LIFE_MS), "there is room");
            }
            for round in 0..4 {
                let filled = fill(&mut harness);
                expire(&harness);
                harness.settle();
                harness.check(ROWS).expect("what lives on is there");
                assert!(filled > 50, "{segments} segments, {long_rows} rows, round {round}: {filled}");
            }
        }
    }
}

#[test]
fn a_restart_on_the_full_disk_changes_nothing_of_that() {
    for crash in (0..24).step_by(5) {
        for segments in [2, 5, 9] {
            let mut harness = opened(Durability::Fsync, segments);
            for row in 0..70 {
                assert!(write(&mut harness, row, LONG_LIFE_MS), "there is room");
            }
            fill(&mut harness);
            reopen(&mut harness);
            expire(&harness);
            // Some way into the cleaning, by the end of the process or of the power.
            harness.disk.fail_call(crash, Fault::Io);
            for _ in 0..=crash / 3 {
                harness.store().tick();
            }
            if crash % 2 == 0 {
                harness.disk.cut_power(&mut Random::new(crash));
            }
            reopen(&mut harness);
            expire(&harness);
            harness.settle();
            if segments > 2 {
                assert!(fill(&mut harness) > 50, "crash {crash}, {segments} segments");
            }
            reopen(&mut harness);
        }
    }
}

#[test]
fn a_restart_on_a_small_disk_leaves_the_rest_of_its_last_segment_to_commits() {
    let mut harness = opened(Durability::Fsync, 2);
    for row in 0..120 {
        assert!(write(&mut harness, row, LIFE_MS), "there is room");
    }
    reopen(&mut harness);
    harness.settle();
    for row in 120..160 {
        assert!(write(&mut harness, row, LIFE_MS), "there is room");
    }
}

#[test]
fn commits_that_go_on_failing_do_not_keep_the_cleaning_from_its_end() {
    let mut harness = opened(Durability::Fsync, 6);
    for row in 0..70 {
        assert!(write(&mut harness, row, LONG_LIFE_MS), "there is room");
    }
    fill(&mut harness);
    expire(&harness);
    // As the thread does while it always has another commit to do.
    let engine = harness.store();
    let recovered = (0..200).any(|_| {
        engine.engine().step(0);
        let change = put(1, &[7; 100], harness.clock.now_ms() + LIFE_MS);
        super::harness::commit(engine, &[change]).is_ok()
    });
    assert!(recovered, "{:?}", harness.store().stats());
}

#[test]
fn a_spare_file_that_fails_is_not_forgotten() {
    let mut failed = 0;
    for call in 0..60 {
        let mut harness = Harness::new(Durability::Process);
        harness.open().expect("a new store");
        for round in 0..200 {
            assert!(write(&mut harness, round % 5, LIFE_MS), "nothing fails yet");
        }
        harness.disk.fail_call(call, Fault::Io);
        for round in 0..60 {
            failed += u32::from(!write(&mut harness, round % 5, LIFE_MS));
        }
        for round in 0..60 {
            assert!(write(&mut harness, round % 5, LIFE_MS), "nothing fails any more");
        }
        harness.settle();
        let stats = harness.store().stats();
        assert_eq!(stats.disk_bytes, harness.disk.bytes(), "call {call}: {:?}", harness.disk.names());
    }
    assert!(failed > 0, "some calls were those of commits");
}
