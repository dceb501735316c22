//! Random histories: batches, time, sweeps, upkeep, failing calls, crashes of the process and of the machine.

use super::harness::{Harness, batch};
use crate::{
    Durability,
    recovery::Checksums,
    testing::{Fault, Random},
};
use tidegate_store::{Backend, clock::Clock};

const ROWS: u64 = 24;
const STEPS: u64 = 150;

/// What a history may contain besides batches.
#[derive(Debug, Clone, Copy, Default)]
struct Profile {
    faults: bool,
    power: bool,
    lies: bool,
    /// The control: acknowledges what has not settled.
    hasty: bool,
    checksums: Checksums,
}

/// Runs the history of this seed; an error says what the store got wrong.
fn history(seed: u64, durability: Durability, profile: Profile) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut harness = Harness::new(durability);
    harness.checksums = profile.checksums;
    if profile.lies {
        harness.disk.lie();
    }
    open(&mut harness)?;
    for step in 0..STEPS {
        one_step(&mut harness, &mut random, profile).map_err(|wrong| format!("step {step}: {wrong}"))?;
    }
    harness.disk.kill();
    open(&mut harness)?;
    harness.check_reopened(ROWS, 0)?;
    harness.settle();
    check_disk(&harness)
}

fn one_step(harness: &mut Harness, random: &mut Random, profile: Profile) -> Result<(), String> {
    match random.below(20) {
        0 => harness.clock.advance(random.below(2000)),
        1 => drop(crate::tests::harness::now(
            harness.store().sweep(1 + usize::try_from(random.below(30)).unwrap_or(0)),
        )),
        2 => {
            harness.store().tick();
            drop(harness.acknowledge());
        }
        3 => drop(harness.flush()),
        4 if profile.faults => {
            let fault = [Fault::Io, Fault::Full, Fault::Short][usize::try_from(random.below(3)).unwrap_or(0)];
            harness.disk.fail_call(random.below(6), fault);
        }
        5 if random.once_in(2) => return reopen(harness, random, profile),
        _ => {
            let now_ms = harness.clock.now_ms();
            let changes = batch(random, ROWS, now_ms);
            let committed = if random.once_in(2) { harness.begin(changes) } else { harness.commit(changes) };
            if profile.hasty {
                harness.unsettled.clear();
            }
            match committed {
                Err(error) if !profile.faults => return Err(format!("{error:?}")),
                Err(_) if harness.read(1).is_err() || random.once_in(3) => {
                    return reopen(harness, random, profile);
                }
                _ => {}
            }
        }
    }
    // A flush in the upkeep may have failed; then the store has stopped.
    if profile.faults && harness.read(1).is_err() {
        return reopen(harness, random, profile);
    }
    harness.check(ROWS)
}

fn reopen(harness: &mut Harness, random: &mut Random, profile: Profile) -> Result<(), String> {
    let power = profile.power && random.once_in(2);
    let stopped = harness.read(1).is_err();
    if power {
        harness.disk.cut_power(random);
    } else if random.once_in(2) || stopped {
        harness.disk.kill();
    } else {
        harness.store = None;
        // Calls that were to fail may have failed while it was closed.
        harness.disk.kill();
    }
    // The wall clock may be behind after a restart; the store's is not behind what the log has seen. (But not
    // behind the last reopening: which of several states was found then may show only at an earlier time.)
    if random.once_in(4) {
        harness.clock = std::sync::Arc::new(tidegate_store::clock::ManualClock::at(harness.reopened_at_ms));
    }
    if profile.faults && random.once_in(3) {
        // Whatever fails while it is opened, the next time must do.
        harness.disk.fail_call(random.below(20), Fault::Io);
        if harness.open().is_ok() {
            harness.store = None;
        }
        if power {
            harness.disk.cut_power(random);
        }
        harness.disk.kill();
    }
    open(harness)?;
    let back = if power && harness.durability == Durability::Process { usize::MAX } else { 0 };
    harness.check_reopened(ROWS, back)
}

fn open(harness: &mut Harness) -> Result<(), String> {
    harness.open().map_err(|error| format!("opening: {error}: {error:?}"))
}

fn check_disk(harness: &Harness) -> Result<(), String> {
    let stats = harness.store().stats();
    let allowed = 3 * stats.live_bytes + 7 * super::harness::SEGMENT_BYTES;
    if stats.disk_bytes <= allowed {
        Ok(())
    } else {
        Err(format!("{stats:?}: more than {allowed} on the disk"))
    }
}

/// More with `TIDEGATE_SEEDS=1000`.
#[expect(clippy::disallowed_methods, reason = "a test may be told to run longer")]
fn seeds(count: u64) -> u64 {
    std::env::var("TIDEGATE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(count)
}

fn check(durability: Durability, profile: Profile) {
    for seed in 0..seeds(20) {
        if let Err(wrong) = history(seed, durability, profile) {
            panic!("seed {seed}: {wrong}");
        }
    }
}

fn first_caught(durability: Durability, profile: Profile) -> Option<u64> {
    (0..200).find(|&seed| history(seed, durability, profile).is_err())
}

#[test]
fn nothing_acknowledged_is_lost_by_any_crash_under_fsync() {
    check(Durability::Fsync, Profile { faults: true, power: true, ..Profile::default() });
}

#[test]
fn nothing_acknowledged_is_lost_by_the_end_of_the_process_under_process() {
    check(Durability::Process, Profile { faults: true, ..Profile::default() });
}

#[test]
fn a_power_loss_under_process_leaves_an_earlier_state_and_no_half_batch() {
    check(Durability::Process, Profile { faults: true, power: true, ..Profile::default() });
}

#[test]
fn a_store_without_durability_touches_no_file() {
    let mut harness = Harness::new(Durability::None);
    harness.open().expect("there is nothing to fail");
    let mut random = Random::new(1);
    for _ in 0..200 {
        let now_ms = harness.clock.now_ms();
        harness.commit(batch(&mut random, ROWS, now_ms)).expect("there is nothing to fail");
        harness.clock.advance(100);
        harness.check(ROWS).expect("rows are what was written");
    }
    assert_eq!(harness.disk.calls(), 0);
}

#[test]
fn a_flush_that_does_nothing_is_caught() {
    let profile = Profile { power: true, lies: true, ..Profile::default() };
    assert!(first_caught(Durability::Fsync, profile).is_some());
}

#[test]
fn an_acknowledgement_before_the_flush_is_caught() {
    let profile = Profile { power: true, hasty: true, ..Profile::default() };
    assert!(first_caught(Durability::Fsync, profile).is_some());
}

#[test]
fn a_checksum_that_is_not_checked_is_caught() {
    let profile = Profile { power: true, checksums: Checksums::Believed, ..Profile::default() };
    assert!(first_caught(Durability::Process, profile).is_some());
}
