//! Logs that are not what was written: what is cut, what is refused, and what a repair makes of it.

use super::harness::{Harness, START_MS, options, put};
use crate::{
    DamageKind, Durability, EmbeddedBackend, OpenError, RepairStep, repair_disk, testing::SimulatedDisk,
    verify_disk,
};

const ROWS: u64 = 64;

/// A store of three segments and more: each of 64 rows written once, the last one not marked as durable.
fn written() -> (Harness, SimulatedDisk) {
    let mut harness = Harness::new(Durability::Fsync);
    harness.open().expect("a new store");
    for row in 0..ROWS {
        harness.commit(vec![put(row, &[7; 100], START_MS + 1_000_000)]).expect("nothing fails");
    }
    harness.disk.kill();
    let disk = harness.disk.copy();
    (harness, disk)
}

fn flip(disk: &SimulatedDisk, name: &str, byte: usize) {
    let mut content = disk.content(name).expect("it is there");
    content[byte] ^= 0x10;
    disk.tamper(name, Some(content));
}

fn cut_short(disk: &SimulatedDisk, name: &str, bytes: usize) {
    let content = disk.content(name).expect("it is there");
    disk.tamper(name, Some(content[..bytes].to_vec()));
}

/// Opens it; answers how many rows it has.
fn open(harness: &Harness, disk: &SimulatedDisk) -> Result<u64, OpenError> {
    let options = options(disk, harness.clock.clone() as _, Durability::Fsync);
    let store = EmbeddedBackend::open(&options)?;
    Ok(store.stats().rows)
}

fn damage_of(harness: &Harness, disk: &SimulatedDisk) -> Option<(String, u64, DamageKind)> {
    match open(harness, disk) {
        Ok(_) => None,
        Err(OpenError::Damaged(damage)) => Some((damage.file, damage.offset, damage.what)),
        Err(other) => panic!("{other}"),
    }
}

/// Where the last frame of a segment starts, and where it ends.
fn last_frame(disk: &SimulatedDisk, name: &str) -> (usize, usize) {
    let content = disk.content(name).expect("it is there");
    let end = content.iter().rposition(|&byte| byte != 0).expect("it is not empty") + 1;
    // A batch of one row of 100 bytes: a header, and 1 + 24 + 3 + 1 + 100 bytes.
    let start = (end - 48 - 129) / 8 * 8;
    (start, end)
}

#[test]
fn damage_is_refused_with_its_place_and_a_repair_makes_it_open() {
    let (harness, good) = written();
    let log = |number: u32| format!("{number:010}.log");
    assert_eq!(open(&harness, &good.copy()).expect("it is good"), ROWS);
    let tail = last_frame(&good, &log(4));
    type Act = Box<dyn Fn(&SimulatedDisk)>;
    let table: Vec<(&str, Act, u32, u64, DamageKind, u64)> = vec![
        ("header", Box::new(|disk| flip(disk, "0000000002.log", 5)), 2, 0, DamageKind::Header, ROWS),
        ("second header", Box::new(|disk| flip(disk, "0000000002.log", 260)), 2, 0, DamageKind::Header, ROWS),
        ("first frame", Box::new(|disk| flip(disk, "0000000001.log", 520)), 1, 512, DamageKind::Frame, 0),
        ("middle frame", Box::new(|disk| flip(disk, "0000000002.log", 2000)), 2, 1920, DamageKind::Frame, 0),
        (
            "cut short",
            Box::new(|disk| cut_short(disk, "0000000002.log", 2000)),
            2,
            1920,
            DamageKind::Frame,
            0,
        ),
        (
            "cut at a frame",
            Box::new(|disk| cut_short(disk, "0000000002.log", 1920)),
            2,
            1920,
            DamageKind::Frame,
            0,
        ),
        ("missing", Box::new(|disk| disk.tamper("0000000002.log", None)), 2, 0, DamageKind::Missing, 0),
        (
            "oldest missing",
            Box::new(|disk| disk.tamper("0000000001.log", None)),
            1,
            0,
            DamageKind::Missing,
            0,
        ),
        (
            "another segment's",
            Box::new(|disk| disk.tamper("0000000002.log", disk.content("0000000003.log"))),
            2,
            0,
            DamageKind::Foreign,
            0,
        ),
        (
            "before the last",
            Box::new(move |disk| flip(disk, "0000000004.log", tail.0 - 8)),
            4,
            tail.0 as u64 - 184,
            DamageKind::Frame,
            ROWS - 2,
        ),
    ];
    for (what, act, number, offset, kind, rows_after) in table {
        let disk = good.copy();
        act(&disk);
        let found = damage_of(&harness, &disk).unwrap_or_else(|| panic!("{what}: it was opened"));
        assert_eq!(
            (found.0.as_str(), found.2),
            (format!("simulated/{}", log(number)).as_str(), kind),
            "{what}"
        );
        if kind != DamageKind::Frame {
            assert_eq!(found.1, offset, "{what}");
        } else {
            assert!(found.1.abs_diff(offset) < 200, "{what}: {} and not about {offset}", found.1);
        }
        let verified = verify_disk(&disk).expect("it can be read").damage.expect("it is damaged");
        assert_eq!((verified.file, verified.offset, verified.what), found, "{what}");

        let repair = repair_disk(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(!repair.steps.is_empty(), "{what}");
        let rows = open(&harness, &disk).unwrap_or_else(|error| panic!("{what}, repaired: {error}"));
        assert!(rows >= rows_after && rows <= ROWS, "{what}: {rows} rows are left");
        assert_eq!(repair_disk(&disk).expect("it is good").steps, [], "{what}");
        assert!(verify_disk(&disk).expect("it is good").damage.is_none(), "{what}");
    }
}

#[test]
fn a_torn_last_frame_is_cut_and_the_log_goes_on() {
    let (harness, good) = written();
    let name = "0000000004.log";
    let (start, end) = last_frame(&good, name);
    for byte in start..end {
        let disk = good.copy();
        flip(&disk, name, byte);
        assert_eq!(
            open(&harness, &disk).unwrap_or_else(|error| panic!("{byte}: {error}")),
            ROWS - 1,
            "{byte}"
        );
    }
    for bytes in start..end {
        let disk = good.copy();
        cut_short(&disk, name, bytes);
        assert_eq!(
            open(&harness, &disk).unwrap_or_else(|error| panic!("{bytes}: {error}")),
            ROWS - 1,
            "{bytes}"
        );
    }
}

#[test]
fn the_last_batch_before_a_quiet_moment_is_not_cut_silently() {
    let (mut harness, good) = written();
    harness.disk = good.copy();
    harness.open().expect("it is good");
    harness.commit(vec![put(1, &[1; 100], START_MS + 1_000_000)]).expect("nothing fails");
    let before = last_frame(&harness.disk, "0000000004.log");
    harness.settle();
    harness.disk.kill();
    flip(&harness.disk, "0000000004.log", before.0 + 60);
    assert!(damage_of(&harness, &harness.disk).is_some());
}

#[test]
fn every_flipped_bit_is_noticed_or_harmless() {
    let (harness, good) = written();
    let (_, end) = last_frame(&good, "0000000004.log");
    for number in 1..=4 {
        let name = format!("{number:010}.log");
        let size_bytes = good.content(&name).expect("it is there").len();
        for byte in (0..size_bytes).step_by(13) {
            let disk = good.copy();
            flip(&disk, &name, byte);
            match open(&harness, &disk) {
                Err(OpenError::Damaged(_) | OpenError::Version { .. }) => {}
                Err(other) => panic!("{name} byte {byte}: {other}"),
                Ok(rows) if number == 4 && byte < end => {
                    assert!(rows >= ROWS - 1, "{name} byte {byte}: {rows}");
                }
                Ok(rows) => assert_eq!(rows, ROWS, "{name} byte {byte}"),
            }
        }
    }
}

#[test]
fn frames_inside_values_are_not_frames() {
    let (mut harness, good) = written();
    // Whoever can read the log stores what is in it as a value, at every alignment, and then tears the log.
    let stolen = good.content("0000000003.log").expect("it is there")[512..2000].to_vec();
    harness.disk = good.copy();
    harness.open().expect("it is good");
    for shift in 0..8 {
        let value = [&vec![0; shift], stolen.as_slice()].concat();
        harness.commit(vec![put(100 + shift as u64, &value, START_MS + 1_000_000)]).expect("nothing fails");
    }
    harness.disk.kill();
    let disk = harness.disk.copy();
    let name = disk
        .names()
        .into_iter()
        .rfind(|name| disk.content(name).is_some_and(|content| content[512..].iter().any(|&byte| byte != 0)));
    let name = name.expect("there are some");
    let content = disk.content(&name).expect("it is there");
    let end = content.iter().rposition(|&byte| byte != 0).expect("it is not empty");
    flip(&disk, &name, end);
    assert_eq!(open(&harness, &disk).expect("a torn tail"), ROWS + 7);
}

#[test]
fn what_a_recycled_file_held_before_is_nothing() {
    let mut harness = Harness::new(Durability::Fsync);
    harness.open().expect("a new store");
    for round in 0..400_u64 {
        harness.commit(vec![put(round % 4, &[7; 100], START_MS + 1_000_000)]).expect("nothing fails");
    }
    assert!(harness.disk.names().len() <= 6, "files are used again by now");
    for round in 0..30_u64 {
        harness.commit(vec![put(round % 4, &[8; 100], START_MS + 1_000_000)]).expect("nothing fails");
        harness.disk.kill();
        harness.open().expect("the tail is followed by old frames only");
        harness.check_reopened(4, 0).expect("it is what was acknowledged");
    }
}

#[test]
fn a_second_process_is_refused() {
    let (harness, good) = written();
    let first = EmbeddedBackend::open(&options(&good, harness.clock.clone() as _, Durability::Fsync));
    let first = first.expect("nobody has it");
    let error = open(&harness, &good).expect_err("somebody has it");
    assert_eq!(
        error.to_string(),
        "the store in simulated/ is in use by process 1; stop that process, or give each process its own directory"
    );
    assert!(matches!(repair_disk(&good), Err(OpenError::InUse { .. })));
    drop(first);
    open(&harness, &good).expect("nobody has it any more");
}

#[test]
fn a_later_version_is_refused() {
    let (harness, good) = written();
    for name in good.names() {
        let mut content = good.content(&name).expect("it is there");
        for at in [0, 256] {
            content[at + 8] = 2;
            let crc = crc32fast::hash(&content[at..at + 32]);
            content[at + 32..at + 36].copy_from_slice(&crc.to_le_bytes());
        }
        good.tamper(&name, Some(content));
    }
    assert!(matches!(open(&harness, &good), Err(OpenError::Version { version: 2, .. })));
}

#[test]
fn a_repair_says_what_it_did() {
    let (_, good) = written();
    flip(&good, "0000000002.log", 2000);
    let repair = repair_disk(&good).expect("it can be cut");
    let [RepairStep::Cut { file, frames_lost, kept, .. }] = repair.steps.as_slice() else {
        panic!("{repair:?}")
    };
    assert_eq!(file, "simulated/0000000002.log");
    assert!(*frames_lost > 20, "{frames_lost} frames");
    for name in kept {
        assert!(good.content(name.strip_prefix("simulated/").expect("described")).is_some(), "{name}");
    }
}
