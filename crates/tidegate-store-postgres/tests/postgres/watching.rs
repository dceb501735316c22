//! Rows that batches only watch: nobody waits for whoever else watches, and a writer waits for all of them, but
//! not for ever.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tidegate_store::{Backend, BackendError, Change, Entry, Key, Loaded, NewState};
use tidegate_store_postgres::{Batch, PostgresBackend};
use tokio::{task::JoinSet, time::Instant};

use crate::setup::{Fresh, key, within_patience};

/// Loads rows, of which those after the first `written` names are only watched.
async fn load(
    backend: &PostgresBackend,
    names: &[&str],
    written: usize,
) -> Result<Loaded<Batch>, BackendError> {
    let mut keys: Vec<(Key, bool)> =
        names.iter().enumerate().map(|(place, name)| (key(name), place >= written)).collect();
    keys.sort_unstable();
    let (keys, watched): (Vec<Key>, Vec<bool>) = keys.into_iter().unzip();
    backend.load_watching(&keys, &watched).await
}

async fn watch(backend: &PostgresBackend, name: &str) -> Loaded<Batch> {
    load(backend, &[name], 0).await.unwrap()
}

fn byte(loaded: &Loaded<Batch>) -> u8 {
    loaded.rows[0].as_ref().unwrap().value[0]
}

fn put(name: &str, byte: u8) -> Vec<Change> {
    let entry = Entry { value: [byte].as_slice().into(), expires_at_ms: u64::MAX >> 16 };
    vec![Change { key: key(name), state: NewState::Put(entry) }]
}

async fn commit(backend: &PostgresBackend, loaded: Loaded<Batch>, changes: Vec<Change>) {
    backend.commit(loaded.batch, changes).await.unwrap().await.unwrap();
}

async fn write(backend: &PostgresBackend, name: &str, byte: u8) {
    let loaded = load(backend, &[name], 1).await.unwrap();
    commit(backend, loaded, put(name, byte)).await;
}

/// What keeps a stop: it can't be written, and so not be answered, before all that saw none have committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_watches_waits_for_nobody_and_is_waited_for() {
    let fresh = Fresh::new().await;
    let (first, second, third) = (fresh.backend().await, fresh.backend().await, fresh.backend().await);
    let observer = fresh.observer().await;
    write(&first, "fence", 1).await;
    write(&first, "work", 1).await;
    let looks = watch(&first, "fence").await;
    let works = load(&second, &["work", "fence"], 1).await.unwrap();
    let stop = tokio::spawn(async move { write(&third, "fence", 2).await });
    observer.until_waiting(1).await;
    commit(&first, looks, Vec::new()).await;
    // Another one may come before the stop or after it, and sees the fence accordingly.
    observer.until_waiting(1).await;
    assert!(!stop.is_finished(), "one batch that saw no stop has not committed");
    commit(&second, works, put("work", 2)).await;
    stop.await.unwrap();
    let seen = watch(&first, "fence").await;
    assert_eq!(byte(&seen), 2);
    commit(&first, seen, Vec::new()).await;
    let done = watch(&first, "work").await;
    assert_eq!(byte(&done), 2, "what was under way was finished before the stop was answered");
}

/// A batch that comes to watch while the row is being written sees what was written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_watches_waits_for_a_writer() {
    let fresh = Fresh::new().await;
    let (first, second) = (fresh.backend().await, fresh.backend().await);
    let observer = fresh.observer().await;
    write(&first, "fence", 1).await;
    let stop = load(&first, &["fence"], 1).await.unwrap();
    let watching = tokio::spawn(async move { byte(&watch(&second, "fence").await) });
    observer.until_waiting(1).await;
    commit(&first, stop, put("fence", 2)).await;
    assert_eq!(watching.await.unwrap(), 2);
}

/// Batches that watch each other's rows lock them in the order of their keys, whatever they do with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watching_and_writing_crosswise_is_no_deadlock() {
    let fresh = Fresh::new().await;
    let names = ["a", "b", "c", "d"];
    let backend = fresh.backend().await;
    for name in names {
        write(&backend, name, 0).await;
    }
    let mut callers = JoinSet::new();
    for caller in 0..4_usize {
        let backend = fresh.backend().await;
        callers.spawn(async move {
            for turn in 0..100_usize {
                let mut order = names;
                order.rotate_left((caller + turn) % 4);
                let loaded = load(&backend, &order, 1 + turn % 3).await.unwrap();
                commit(&backend, loaded, put(order[0], 1)).await;
            }
        });
    }
    callers.join_all().await;
}

/// Eight batches watch a row, each for a while of its own and again at once, so that it is never free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_gets_its_turn_however_many_watch() {
    let fresh = Fresh::new().await;
    let writer = fresh.backend().await;
    write(&writer, "fence", 1).await;
    let done = Arc::new(AtomicBool::new(false));
    let mut watchers = JoinSet::new();
    for caller in 0..8 {
        let (backend, done) = (fresh.backend().await, Arc::clone(&done));
        watchers.spawn(async move {
            while !done.load(Ordering::SeqCst) {
                let seen = watch(&backend, "fence").await;
                tokio::time::sleep(Duration::from_millis(15 + 3 * caller)).await;
                commit(&backend, seen, Vec::new()).await;
            }
        });
    }
    let began = Instant::now();
    for byte in 2..5 {
        write(&writer, "fence", byte).await;
    }
    println!("three writes among eight that watch, in {:?}", began.elapsed());
    done.store(true, Ordering::SeqCst);
    watchers.join_all().await;
    assert_eq!(byte(&watch(&writer, "fence").await), 4);
}

/// Why there is a turnstile: without it, whoever shares a row comes before whoever waits to write it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_takes_no_turn_is_passed_again_and_again() {
    let fresh = Fresh::new().await;
    let backends = [fresh.backend().await, fresh.backend().await];
    let (observer, plain) = (fresh.observer().await, fresh.observer().await);
    write(&backends[0], "fence", 1).await;
    let mut held = watch(&backends[0], "fence").await;
    let plain = tokio::spawn(async move { plain.run("SELECT FROM entries FOR UPDATE").await });
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted \
                   AND pid IN (SELECT pid FROM pg_locks WHERE relation = 'entries'::regclass)";
    within_patience("a writer that waits", async || observer.number(waiting).await > 0).await;
    for turn in 0..20 {
        let next = watch(&backends[(turn + 1) % 2], "fence").await;
        commit(&backends[turn % 2], held, Vec::new()).await;
        held = next;
        assert!(!plain.is_finished(), "turn {turn}");
    }
    commit(&backends[0], held, Vec::new()).await;
    plain.await.unwrap();
}
