//! With the threads, and mostly on a real disk.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tidegate_store::{
    Backend, Driver, DriverOptions, LimitStore, LimitStoreExt, StoreError,
    clock::{Clock, ManualClock},
    testing::{Handles, check_all},
};

use super::harness::{START_MS, key, options};
use crate::{Durability, EmbeddedBackend, OpenError, Options, Upkeep, testing::SimulatedDisk, verify};

/// A directory of its own that goes with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tidegate-embedded-{}-{name}", std::process::id()));
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn open(directory: &Directory, durability: Durability) -> Result<EmbeddedBackend, OpenError> {
    EmbeddedBackend::open(&Options { durability, segment_bytes: 64 * 1024, ..Options::at(&directory.0) })
}

async fn count_up(store: Driver<EmbeddedBackend>, row: u64, times: u64) -> Result<u64, StoreError> {
    let mut last = 0;
    for _ in 0..times {
        last = store
            .update(vec![key(row), key(1000)], |view| {
                let count = |value: Option<&tidegate_store::Entry>| {
                    value.map_or(0, |entry| u64::from_le_bytes(entry.value[..8].try_into().unwrap())) + 1
                };
                let (own, all) = (count(view.get(0)), count(view.get(1)));
                let expires_at_ms = view.now_ms() + 600_000;
                view.put(0, own.to_le_bytes().as_slice(), expires_at_ms);
                view.put(1, all.to_le_bytes().as_slice(), expires_at_ms);
                own
            })
            .await?;
    }
    Ok(last)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_lose_no_update_and_a_restart_finds_them_all() {
    for durability in [Durability::Fsync, Durability::Process] {
        let directory = Directory::new(&format!("{durability:?}"));
        for round in 1..=2 {
            let store =
                Driver::start(open(&directory, durability).unwrap(), DriverOptions::new("embedded", 10_000));
            let callers: Vec<_> = (0..40).map(|row| tokio::spawn(count_up(store.clone(), row, 30))).collect();
            for caller in callers {
                assert_eq!(caller.await.unwrap(), Ok(round * 30));
            }
            let all = store.read(vec![key(1000)]).await.unwrap();
            let all = all[0].as_ref().map(|entry| entry.value.to_vec());
            assert_eq!(all, Some((round * 1200).to_le_bytes().to_vec()));
            store.shutdown().await;
            drop(store);
            let verification = verify(&directory.0).unwrap();
            assert_eq!((verification.damage, verification.unpromised_frames), (None, 0));
        }
    }
}

#[tokio::test]
async fn a_second_process_is_refused_by_name() {
    let directory = Directory::new("lock");
    let kinds = [Durability::Fsync, Durability::Process, Durability::None];
    for (one, other) in kinds.into_iter().flat_map(|one| kinds.map(|other| (one, other))) {
        let first = open(&directory, one).unwrap();
        let error = open(&directory, other).unwrap_err().to_string();
        assert!(error.contains(&directory.0.display().to_string()), "{one:?}, {other:?}: {error}");
        assert!(error.contains(&format!("process {}", std::process::id())), "{one:?}, {other:?}: {error}");
        drop(first);
    }
    open(&directory, Durability::Fsync).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_of_a_limit_store_is_kept() {
    for durability in [Durability::Fsync, Durability::Process, Durability::None] {
        let report = check_all(async |max_entries| {
            let clock = Arc::new(ManualClock::at(START_MS));
            let options = options(&SimulatedDisk::new(), clock.clone() as _, durability);
            let options = Options { upkeep: Upkeep::Thread, ..options };
            let deadline = Duration::from_millis(500);
            let driver_options = DriverOptions { deadline, ..DriverOptions::new("embedded", max_entries) };
            let open = move || EmbeddedBackend::open(&options).unwrap();
            if durability == Durability::None {
                Handles::in_process(open(), &driver_options, Some(clock))
            } else {
                Handles::reopenable(open, &driver_options, Some(clock))
            }
        })
        .await
        .unwrap_or_else(|violations| panic!("{durability:?}: {violations}"));
        let expected = if durability == Durability::None { 1 } else { 0 };
        assert_eq!(report.not_shown.len(), expected, "{report:?}");
    }
}

#[tokio::test]
async fn a_caller_that_gives_up_half_way_does_no_harm() {
    let directory = Directory::new("cancelled");
    let store = open(&directory, Durability::Fsync).unwrap();
    for round in 0..20_u64 {
        let loaded = store.load(&[key(1)]).await.unwrap();
        let change = super::harness::put(1, &round.to_le_bytes(), loaded.now_ms + 60_000);
        let settled = store.commit(loaded.batch, vec![change]).await.unwrap();
        // Polled once and dropped.
        drop(tokio::time::timeout(Duration::ZERO, settled).await);
    }
    let loaded = store.load(&[]).await.unwrap();
    let last = super::harness::put(2, b"last", loaded.now_ms + 60_000);
    store.commit(loaded.batch, vec![last]).await.unwrap().await.unwrap();
    let loaded = store.load(&[key(1), key(2)]).await.unwrap();
    assert_eq!(loaded.rows[0].as_ref().unwrap().value.to_vec(), 19_u64.to_le_bytes());
    assert!(loaded.rows[1].is_some());
    assert!(loaded.now_ms >= ManualClock::at(0).now_ms());
}

#[test]
fn fuzzing_has_an_entry() {
    let mut random = crate::testing::Random::new(5);
    for seed in 0..150 {
        let segments: Vec<Vec<u8>> = (0..random.below(4))
            .map(|_| (0..random.below(700)).map(|_| random.number().to_le_bytes()[0]).collect())
            .collect();
        let slices: Vec<&[u8]> = segments.iter().map(Vec::as_slice).collect();
        println!("segments of round {seed}: {slices:?}");
        crate::testing::fuzz_recover(&slices);
    }
}
