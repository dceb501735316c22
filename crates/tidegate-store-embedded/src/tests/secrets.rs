//! Rows under another secret, and the clock across restarts.

use std::sync::Arc;

use tidegate_store::{
    Backend,
    clock::{Clock, ManualClock},
};

use super::harness::{START_MS, commit, key, now, options, put};
use crate::{Durability, EmbeddedBackend, Options, testing::SimulatedDisk};

fn open(disk: &SimulatedDisk, secret_id: Option<u64>, now_ms: u64) -> EmbeddedBackend {
    let clock = Arc::new(ManualClock::at(now_ms));
    let options = Options { secret_id, ..options(disk, clock as _, Durability::Fsync) };
    EmbeddedBackend::open(&options).expect("it is in order")
}

fn count(store: &EmbeddedBackend) -> u64 {
    now(store.count()).expect("nothing fails")
}

fn value(store: &EmbeddedBackend, row: u64) -> Option<Vec<u8>> {
    let loaded = now(store.load(&[key(row)])).expect("nothing fails");
    assert_eq!(loaded.rows_held, Some(count(store)));
    loaded.rows[0].as_ref().map(|entry| entry.value.to_vec())
}

#[test]
fn rows_of_another_secret_are_kept_apart_until_they_expire() {
    let disk = SimulatedDisk::new();
    let old = open(&disk, Some(1), START_MS);
    commit(&old, &[put(1, b"old", START_MS + 5000), put(2, b"short", START_MS + 100)])
        .expect("nothing fails");
    drop(old);

    let new = open(&disk, Some(2), START_MS);
    assert_eq!((count(&new), value(&new, 1)), (0, None));
    commit(&new, &[put(1, b"new", START_MS + 9000)]).expect("nothing fails");
    assert_eq!((count(&new), value(&new, 1)), (1, Some(b"new".to_vec())));
    // Enough to have every old segment cleaned.
    for _ in 0..200 {
        commit(&new, &[put(3, &[0; 200], START_MS + 9000)]).expect("nothing fails");
    }
    assert!(new.stats().copied_bytes > 0);
    drop(new);

    let old = open(&disk, Some(1), START_MS + 200);
    assert_eq!((count(&old), value(&old, 1)), (1, Some(b"old".to_vec())));
    assert_eq!(value(&old, 2), None, "it has expired");
    drop(old);

    let new = open(&disk, Some(2), START_MS + 5000);
    assert_eq!(new.stats().rows, 2, "the old row has expired too");
    assert_eq!(value(&new, 1), Some(b"new".to_vec()));
}

#[test]
fn no_secret_is_one_of_its_own() {
    let disk = SimulatedDisk::new();
    let without = open(&disk, None, START_MS);
    commit(&without, &[put(1, b"x", START_MS + 5000)]).expect("nothing fails");
    drop(without);
    assert_eq!(value(&open(&disk, Some(0), START_MS), 1), None);
    assert_eq!(value(&open(&disk, None, START_MS), 1), Some(b"x".to_vec()));
}

#[test]
fn the_clock_goes_on_from_the_last_instant_of_the_log() {
    let disk = SimulatedDisk::new();
    let clock = Arc::new(ManualClock::at(START_MS));
    let store = EmbeddedBackend::open(&options(&disk, clock.clone() as _, Durability::Fsync)).expect("new");
    commit(&store, &[put(1, b"x", START_MS + 5000)]).expect("nothing fails");
    clock.advance(6000);
    assert_eq!(now(store.sweep(10)).expect("nothing fails").removed, 1);
    drop(store);

    // The wall clock was set back by a day meanwhile; what had expired stays so.
    let clock = Arc::new(ManualClock::at(START_MS - 86_400_000));
    let store =
        EmbeddedBackend::open(&options(&disk, clock.clone() as _, Durability::Fsync)).expect("in order");
    assert_eq!(clock.now_ms(), START_MS + 6000);
    assert_eq!(store.stats().rows, 0);
}
