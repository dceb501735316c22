//! What the server makes of the statements.

use std::time::Duration;

use tidegate_store::{Group, LASTING_MS, LimitStore, LimitStoreExt, Scope};

use crate::setup::{Fresh, Observer, Store, bump, key};

/// Updates of a sliding row touch no index, but for one each time that its sweep has to move; an index over the
/// expiry would have them touch all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_leave_the_indexes_alone() {
    let fresh = Fresh::new().await;
    let store = fresh.driver(1000).await;
    let observer = fresh.observer().await;
    bump(&store, key("row")).await.unwrap();
    let touched = updates_that_touch_indexes(&store, &observer).await;
    assert!(touched <= 2, "{touched} of 400 updates");
    observer.run("CREATE INDEX ON entries (expires_at_ms)").await;
    let touched = updates_that_touch_indexes(&store, &observer).await;
    assert!(touched >= 100, "{touched} of 400 updates, with another index");
}

/// Of 400 updates of one row in different milliseconds.
async fn updates_that_touch_indexes(store: &Store, observer: &Observer) -> i64 {
    observer.run("SELECT pg_stat_reset_single_table_counters('entries'::regclass)").await;
    for _ in 0..400 {
        bump(store, key("row")).await.unwrap();
    }
    let figures =
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'entries'::regclass";
    loop {
        let row = &observer.rows(figures).await[0];
        let (updates, beside): (i64, i64) = (row.get(0), row.get(1));
        if updates >= 350 {
            return updates - beside;
        }
        // A session tells its figures when it has time to.
        tokio::time::sleep(Duration::from_millis(50)).await;
        store.read(vec![key("row")]).await.unwrap();
    }
}

/// A table that grows after its plans were made is still read by its indexes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_do_not_outlive_an_empty_table() {
    let fresh = Fresh::new().await;
    let store = fresh.driver(100_000).await;
    let observer = fresh.observer().await;
    bump(&store, key("early")).await.unwrap();
    for hundred in 0..100 {
        let keys = (0..100).map(|number| key(hundred * 100 + number)).collect();
        let put = store.update(keys, |view| {
            (0..100).for_each(|index| view.put(index, b"x".as_slice(), view.now_ms() + 600_000));
        });
        put.await.unwrap();
    }
    observer.run("SELECT pg_stat_reset_single_table_counters('entries'::regclass)").await;
    for number in 0..20 {
        let update = store.update(vec![key(number), key(5000 + number)], |view| {
            view.put(0, b"y".as_slice(), view.now_ms() + 700_000);
            view.delete(1);
        });
        update.await.unwrap();
        store.sweep().await.unwrap();
        store.forget(Scope { group: Group::of(b"nobody"), member: None }).await.unwrap();
    }
    let figures = "SELECT seq_scan, idx_scan FROM pg_stat_user_tables WHERE relid = 'entries'::regclass";
    // A session tells them when it has time to.
    let scans = loop {
        let row = &observer.rows(figures).await[0];
        let (whole, by_index): (i64, i64) = (row.get(0), row.get(1));
        if by_index >= 60 {
            break whole;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        bump(&store, key("late")).await.unwrap();
    };
    assert_eq!(scans, 0, "scans of the whole table");
}

#[tokio::test]
async fn rows_are_kept_byte_by_byte() {
    let fresh = Fresh::new().await;
    let store = fresh.driver(1000).await;
    let value: Vec<u8> = (0..=255).collect();
    let expiry = store.update(vec![key("bytes"), key("lasting")], {
        let value = value.clone();
        move |view| {
            view.put(0, value.as_slice(), view.now_ms() + 1000);
            view.put_lasting(1, b"".as_slice());
            view.now_ms() + 1000
        }
    });
    let expires_at_ms = expiry.await.unwrap();
    let seen = store.read(vec![key("bytes"), key("lasting")]).await.unwrap();
    let seen: Vec<_> =
        seen.into_iter().flatten().map(|row| (row.value.to_vec(), row.expires_at_ms)).collect();
    assert_eq!(seen, [(value, expires_at_ms), (Vec::new(), LASTING_MS)]);
}
