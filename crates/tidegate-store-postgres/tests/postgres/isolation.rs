//! Batches of two instances, step by step: what one does between the load and the commit of the other.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tidegate_store::{
    Backend, BackendError, Change, Entry, Key, LimitStore, LimitStoreExt, Loaded, NewState, StoreError,
};
use tidegate_store_postgres::{Batch, PostgresBackend};

use crate::setup::{Fresh, LONG_MS, Store, key, within_patience};

/// The keys of `names`, as a driver would give them.
fn keys<const N: usize>(names: [&str; N]) -> Vec<Key> {
    let mut keys = names.map(key).to_vec();
    keys.sort_unstable();
    keys
}

async fn load<const N: usize>(backend: &PostgresBackend, names: [&str; N]) -> Loaded<Batch> {
    backend.load(&keys(names)).await.unwrap()
}

/// Writes `byte` into the row called `name`.
fn put(name: &str, byte: u8) -> Vec<Change> {
    let entry = Entry { value: [byte].as_slice().into(), expires_at_ms: u64::MAX >> 16 };
    vec![Change { key: key(name), state: NewState::Put(entry) }]
}

async fn commit(backend: &PostgresBackend, batch: Batch, changes: Vec<Change>) -> Result<(), BackendError> {
    backend.commit(batch, changes).await?.await
}

/// Commits what must not conflict.
async fn write(backend: &PostgresBackend, name: &str, byte: u8) {
    let loaded = load(backend, [name]).await;
    commit(backend, loaded.batch, put(name, byte)).await.unwrap();
}

#[expect(clippy::needless_pass_by_value, reason = "tests read better without the ampersands")]
fn assert_conflict(what: &str, seen: Result<(), BackendError>) {
    assert!(seen.as_ref().is_err_and(BackendError::is_conflict), "{what}: {seen:?}");
}

#[tokio::test]
async fn what_a_batch_found_absent_stays_absent_until_it_has_committed() {
    let fresh = Fresh::new().await;
    let (first, second) = (fresh.backend().await, fresh.backend().await);
    let table = [
        ("both insert the same row", ["a", "b"], "a", Some("a"), true),
        ("a row that was only looked at", ["c", "d"], "c", Some("d"), true),
        ("a batch that only reads", ["e", "f"], "e", None, true),
        ("a row that it had not asked for", ["g", "h"], "other", Some("g"), false),
        ("a row that it had not asked for, and no write", ["i", "j"], "another", None, false),
    ];
    for (what, names, theirs, ours, conflicts) in table {
        let loaded = load(&first, names).await;
        assert_eq!(loaded.rows, [None, None]);
        write(&second, theirs, 1).await;
        let committed = commit(&first, loaded.batch, ours.map_or_else(Vec::new, |name| put(name, 2))).await;
        if conflicts {
            assert_conflict(what, committed);
            let seen = load(&first, [theirs]).await;
            assert_eq!(seen.rows[0].as_ref().unwrap().value.as_slice(), [1], "{what}");
        } else {
            committed.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        }
    }
}

#[tokio::test]
async fn a_row_that_came_and_went_is_no_conflict() {
    let fresh = Fresh::new().await;
    let (first, second) = (fresh.backend().await, fresh.backend().await);
    let loaded = load(&first, ["a", "b"]).await;
    write(&second, "b", 1).await;
    let again = load(&second, ["b"]).await;
    commit(&second, again.batch, vec![Change { key: key("b"), state: NewState::Deleted }]).await.unwrap();
    commit(&first, loaded.batch, put("a", 2)).await.unwrap();
}

/// Two batches each miss the row that the other inserts: one of the two must be told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_missed_each_others_row_one_is_told() {
    let fresh = Fresh::new().await;
    let (first, second) = (fresh.backend().await, fresh.backend().await);
    let (mut both_told, rounds) = (0, 300);
    for round in 0..rounds {
        let (left, right) = (format!("{round}, left"), format!("{round}, right"));
        let one = load(&first, [&left, &right]).await.batch;
        let other = load(&second, [&left, &right]).await.batch;
        let (one, other) =
            tokio::join!(commit(&first, one, put(&left, 1)), commit(&second, other, put(&right, 2)));
        match (one, other) {
            (Ok(()), conflict) | (conflict, Ok(())) => assert_conflict(&format!("round {round}"), conflict),
            (one, other) => {
                assert_conflict("one", one);
                assert_conflict("other", other);
                both_told += 1;
            }
        }
    }
    assert_eq!(both_told, 0, "the first through the gate has no reason to fail");
}

/// A batch that waited for a row sees it as another left it, and must not miss the other's new rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_sees_half_of_another_batch() {
    let fresh = Fresh::new().await;
    let (first, second) = (fresh.backend().await, fresh.backend().await);
    let observer = fresh.observer().await;
    write(&first, "old", 1).await;
    let held = load(&first, ["old", "new"]).await;
    let waiting = tokio::spawn(async move {
        let loaded = load(&second, ["old", "new"]).await;
        let seen = loaded.rows.iter().flatten().map(|row| row.value[0]).collect::<Vec<_>>();
        (seen, commit(&second, loaded.batch, Vec::new()).await)
    });
    observer.until_waiting(1).await;
    let mut changes = [put("old", 2), put("new", 2)].concat();
    changes.sort_unstable_by_key(|change| change.key);
    commit(&first, held.batch, changes).await.unwrap();
    let (seen, committed) = waiting.await.unwrap();
    assert_eq!(seen, [2], "it has the row that it waited for, and not the new one");
    assert_conflict("a batch that saw half", committed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_is_read_once_the_rows_are_locked() {
    let fresh = Fresh::new().await;
    let (first, second) = (fresh.backend().await, fresh.backend().await);
    let observer = fresh.observer().await;
    write(&first, "row", 1).await;
    let held = load(&first, ["row"]).await;
    let waiting = tokio::spawn(async move { load(&second, ["row"]).await.now_ms });
    observer.until_waiting(1).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    let now_ms = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::int8";
    let before_ms = observer.number(now_ms).await.cast_unsigned();
    commit(&first, held.batch, put("row", 2)).await.unwrap();
    let seen_ms = waiting.await.unwrap();
    assert!(seen_ms >= before_ms && before_ms >= held.now_ms + 60, "{seen_ms} after {before_ms}");
}

#[tokio::test]
async fn a_batch_that_is_dropped_lets_go_of_its_rows() {
    let fresh = Fresh::new().await;
    let (first, second) = (fresh.backend().await, fresh.backend().await);
    write(&first, "row", 1).await;
    drop(load(&first, ["row"]).await.batch);
    for backend in [&second, &first] {
        let loaded = load(backend, ["row"]).await;
        assert_eq!(loaded.rows[0].as_ref().unwrap().value.as_slice(), [1]);
        commit(backend, loaded.batch, Vec::new()).await.unwrap();
    }
}

/// Tokens move between places, so rows come and go all the time; whoever looks must see all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_that_move_are_never_lost_or_doubled() {
    const PLACES: usize = 8;
    const TOKENS: usize = 3;
    let places: Vec<Key> = (0..PLACES).map(key).collect();
    let fresh = Fresh::new().await;
    let stores = [fresh.driver(1000).await, fresh.driver(1000).await];
    let put = stores[0].update(places.clone(), |view| {
        (0..TOKENS).for_each(|place| view.put(place, b"token".as_slice(), view.now_ms() + LONG_MS));
    });
    put.await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let callers = (0..8).map(|caller| {
        let (store, places, done) = (stores[caller % 2].clone(), places.clone(), Arc::clone(&done));
        tokio::spawn(async move {
            for turn in 0.. {
                if caller < 4 {
                    step(&store, places.clone(), caller + turn).await.unwrap();
                } else {
                    let seen = store.read(places.clone()).await.unwrap();
                    assert_eq!(seen.iter().flatten().count(), TOKENS, "seen by caller {caller}");
                }
                if done.load(Ordering::SeqCst) {
                    return;
                }
            }
        })
    });
    let callers: Vec<_> = callers.collect();
    let conflicts = || stores.iter().map(|store| store.stats().conflicts).sum::<u64>();
    within_patience("conflicts between the two instances", async || conflicts() > 50).await;
    done.store(true, Ordering::SeqCst);
    for caller in callers {
        caller.await.unwrap();
    }
}

/// Moves the token at one place to the next that is free.
async fn step(store: &Store, places: Vec<Key>, from: usize) -> Result<(), StoreError> {
    let count = places.len();
    let update = store.update(places, move |view| {
        let taken = (from..from + count).map(|place| place % count).find(|place| view.get(*place).is_some());
        let free = (from..from + count).map(|place| place % count).find(|place| view.get(*place).is_none());
        if let (Some(taken), Some(free)) = (taken, free) {
            view.delete(taken);
            view.put(free, b"token".as_slice(), view.now_ms() + LONG_MS);
        }
    });
    update.await
}
