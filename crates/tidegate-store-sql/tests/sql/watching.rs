//! Rows that batches only watch: nobody waits for whoever else watches, and a writer waits for all of them, but
//! not for ever.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tidegate_store::{Backend, BackendError, Key, Loaded};
use tokio::task::JoinSet;

use crate::harness::{commit, key, put};

const FOR_EVER_MS: u64 = u64::MAX >> 16;

/// Loads rows, of which those after the first `written` are only watched.
async fn load<B: Backend>(
    backend: &B,
    rows: &[u64],
    written: usize,
) -> Result<Loaded<B::Batch>, BackendError> {
    let mut keys: Vec<(Key, bool)> =
        rows.iter().enumerate().map(|(place, row)| (key(*row), place >= written)).collect();
    keys.sort_unstable();
    let (keys, watched): (Vec<Key>, Vec<bool>) = keys.into_iter().unzip();
    backend.load_watching(&keys, &watched).await
}

async fn watch<B: Backend>(backend: &B, row: u64) -> Loaded<B::Batch> {
    load(backend, &[row], 0).await.expect("it can be watched")
}

fn byte<B>(loaded: &Loaded<B>) -> u8 {
    loaded.rows[0].as_ref().expect("it is there").value[0]
}

async fn write<B: Backend>(backend: &B, row: u64, byte: u8) {
    let loaded = load(backend, &[row], 1).await.expect("it can be loaded");
    commit(backend, loaded.batch, vec![put(key(row), &[byte], FOR_EVER_MS)])
        .await
        .expect("it can be written");
}

async fn until(waiting: &impl AsyncFn() -> bool) {
    for _ in 0..1000 {
        if waiting().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("nobody waits");
}

/// What keeps a stop: it can't be written, and so not be answered, before all that saw none have committed.
/// `waiting` says whether somebody waits for a lock.
pub(crate) async fn side_by_side<B: Backend>(
    [first, second, third]: [B; 3],
    waiting: impl AsyncFn() -> bool,
) {
    const FENCE: u64 = 1;
    const WORK: u64 = 2;
    write(&first, FENCE, 1).await;
    write(&first, WORK, 1).await;
    let looks = watch(&first, FENCE).await;
    let works = load(&second, &[WORK, FENCE], 1).await.expect("it waits for nobody");
    let stop = tokio::spawn(async move {
        write(&third, FENCE, 2).await;
        third
    });
    until(&waiting).await;
    commit(&first, looks.batch, Vec::new()).await.expect("it answers");
    until(&waiting).await;
    assert!(!stop.is_finished(), "one batch that saw no stop has not committed");
    let work = vec![put(key(WORK), &[2], FOR_EVER_MS)];
    commit(&second, works.batch, work).await.expect("it answers");
    let third = stop.await.expect("it came to its end");
    let seen = load(&first, &[WORK], 0).await.expect("it answers");
    assert_eq!(byte(&seen), 2, "what was under way was finished before the stop was answered");
    commit(&first, seen.batch, Vec::new()).await.expect("it answers");
    // And whoever comes to watch while it is being written sees what was written.
    let resumes = load(&third, &[FENCE], 1).await.expect("it answers");
    assert_eq!(byte(&resumes), 2);
    let watching = tokio::spawn(async move { byte(&watch(&second, FENCE).await) });
    until(&waiting).await;
    let resume = vec![put(key(FENCE), &[3], FOR_EVER_MS)];
    commit(&third, resumes.batch, resume).await.expect("it answers");
    assert_eq!(watching.await.expect("it came to its end"), 3);
}

/// Batches that watch each other's rows lock them in the order of their keys, whatever they do with them.
pub(crate) async fn crosswise<B: Backend>(open: impl AsyncFn() -> B) {
    let rows = [0, 1, 2, 3];
    let backend = open().await;
    for row in rows {
        write(&backend, row, 0).await;
    }
    let mut callers = JoinSet::new();
    for caller in 0..4_usize {
        let backend = open().await;
        callers.spawn(async move {
            for turn in 0..100_usize {
                let mut order = rows;
                order.rotate_left((caller + turn) % 4);
                let loaded = load(&backend, &order, 1 + turn % 3).await.expect("no deadlock");
                let changes = vec![put(key(order[0]), &[1], FOR_EVER_MS)];
                commit(&backend, loaded.batch, changes).await.expect("no conflict");
            }
        });
    }
    callers.join_all().await;
}

/// Eight batches watch a row, each for a while of its own and again at once, so that it is never free.
pub(crate) async fn in_turn<B: Backend>(open: impl AsyncFn() -> B) {
    let writer = open().await;
    write(&writer, 0, 1).await;
    let done = Arc::new(AtomicBool::new(false));
    let mut watchers = JoinSet::new();
    for caller in 0..8 {
        let (backend, done) = (open().await, Arc::clone(&done));
        watchers.spawn(async move {
            while !done.load(Ordering::SeqCst) {
                let seen = watch(&backend, 0).await;
                tokio::time::sleep(Duration::from_millis(15 + 3 * caller)).await;
                commit(&backend, seen.batch, Vec::new()).await.expect("it answers");
            }
        });
    }
    for byte in 2..5 {
        write(&writer, 0, byte).await;
    }
    done.store(true, Ordering::SeqCst);
    watchers.join_all().await;
    assert_eq!(byte(&watch(&writer, 0).await), 4);
}
