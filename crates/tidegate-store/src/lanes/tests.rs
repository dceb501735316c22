use std::sync::Arc;

use super::*;
use crate::{LimitStoreExt, MemoryBackend, Unavailable, clock::ManualClock};

/// Two threads with a runtime each, which end when this is dropped.
struct Threads {
    handles: Vec<Handle>,
    ends: Vec<tokio::sync::oneshot::Sender<()>>,
    joins: Vec<std::thread::JoinHandle<()>>,
}

impl Threads {
    fn start() -> Self {
        let mut threads = Self { handles: Vec::new(), ends: Vec::new(), joins: Vec::new() };
        for lane in 0..2 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let (end, ended) = tokio::sync::oneshot::channel();
            threads.handles.push(runtime.handle().clone());
            threads.ends.push(end);
            threads.joins.push(std::thread::spawn(move || {
                enter(lane);
                let _ = runtime.block_on(ended);
            }));
        }
        threads
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        for end in self.ends.drain(..) {
            let _ = end.send(());
        }
        self.joins.drain(..).for_each(|join| join.join().unwrap());
    }
}

fn store(threads: &Threads, max_entries: u64) -> Lanes<MemoryBackend> {
    let backend = MemoryBackend::new(Arc::new(ManualClock::at(1_000_000)));
    Lanes::start(backend, &DriverOptions::new("test", max_entries), &threads.handles)
}

/// Adds 1 to the counter at `key`, or answers why not.
async fn add(store: Lanes<MemoryBackend>, key: Key) -> Result<u8, StoreError> {
    store
        .update(vec![key], move |view| {
            let count = view.get(0).map_or(0, |entry| entry.value[0]) + 1;
            let expires_at_ms = view.now_ms() + 60_000;
            view.put(0, vec![count], expires_at_ms);
            count
        })
        .await
}

#[test]
fn no_update_is_lost_between_two_threads() {
    let threads = Threads::start();
    let store = store(&threads, 1000);
    let key = Key::of(&[b"one", b"key"]);
    let tasks: Vec<_> =
        (0..200).map(|number| threads.handles[number % 2].spawn(add(store.clone(), key))).collect();
    let main = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut counts: Vec<u8> =
        main.block_on(async { futures_in_turn(tasks).await }).into_iter().map(Result::unwrap).collect();
    counts.sort_unstable();
    assert_eq!(counts, (1..=200).collect::<Vec<u8>>());
    assert!(store.drivers.iter().all(|driver| driver.stats().jobs > 0), "both threads worked");
    assert_eq!(store.stats().jobs, 200);
}

#[test]
fn what_one_driver_sees_go_is_gone_for_all() {
    let threads = Threads::start();
    let clock = Arc::new(ManualClock::at(1_000_000));
    let backend = MemoryBackend::new(Arc::clone(&clock) as _);
    let store = Lanes::start(backend, &DriverOptions::new("test", 100), &threads.handles);
    let main = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let added = |lane: usize, rows: std::ops::Range<u8>| {
        let tasks =
            rows.map(|row| threads.handles[lane].spawn(add(store.clone(), Key::of(&[b"row", &[row]]))));
        assert!(main.block_on(futures_in_turn(tasks.collect())).iter().all(Result::is_ok));
    };
    added(0, 0..3);
    added(1, 3..10);
    assert_eq!(store.stats().entries, 10);
    clock.advance(60_000);
    assert_eq!(main.block_on(store.drivers[0].sweep()), Ok(10));
    assert_eq!(store.stats().entries, 0);
    added(1, 0..2);
    assert_eq!(store.stats().entries, 2);
}

#[test]
fn the_bound_is_one_for_both_threads() {
    let threads = Threads::start();
    let store = store(&threads, 10);
    let tasks: Vec<_> = (0..50_u8)
        .map(|number| {
            let key = Key::of(&[b"key", &[number]]);
            threads.handles[usize::from(number) % 2].spawn(add(store.clone(), key))
        })
        .collect();
    let main = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answers = main.block_on(async { futures_in_turn(tasks).await });
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 10);
    let full = Err(StoreError::Unavailable(Unavailable::Full));
    assert_eq!(answers.iter().filter(|answer| **answer == full).count(), 40);
}

async fn futures_in_turn<T>(tasks: Vec<tokio::task::JoinHandle<T>>) -> Vec<T> {
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}
