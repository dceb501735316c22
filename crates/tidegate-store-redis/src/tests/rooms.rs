//! The bound on entries, and secrets that are replaced while instances run.

use std::time::Duration;

use tidegate_store::{DriverOptions, LimitStore, LimitStoreExt, StoreError, Unavailable};
use tidegate_test_servers::RedisServer;
use tokio::task::JoinSet;

use super::{LONG_MS, Store, bounded, bump, count, key, open, options};
use crate::Options;

const FULL: StoreError = StoreError::Unavailable(Unavailable::Full);

/// Asks each of `stores` for as many new rows at once; answers how many were admitted.
async fn flood(stores: &[Store], rows: usize) -> usize {
    let mut calls = JoinSet::new();
    for number in 0..rows {
        for (instance, store) in stores.iter().enumerate() {
            let (store, key) = (store.clone(), key(&format!("{instance}, {number}")));
            calls.spawn(async move { bump(&store, key).await });
        }
    }
    let answers = calls.join_all().await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(1) | Err(FULL))), "{answers:?}");
    answers.iter().filter(|answer| answer.is_ok()).count()
}

#[tokio::test]
async fn one_instance_keeps_the_bound_exactly() {
    let server = RedisServer::start(&[]).unwrap();
    let options = options(&server.url());
    let store = bounded(&options, 100).await;
    assert_eq!(flood(std::slice::from_ref(&store), 300).await, 100);
    assert_eq!(bump(&store, key("0, 0")).await, Ok(2), "what it holds goes on counting");
}

#[tokio::test]
async fn two_instances_pass_the_bound_by_one_batch_at_most() {
    let server = RedisServer::start(&[]).unwrap();
    let options = options(&server.url());
    let batch = 16;
    let mut stores = Vec::new();
    for _ in 0..2 {
        let driver = DriverOptions { batch_jobs_max: batch, ..DriverOptions::new("redis", 100) };
        stores.push(tidegate_store::Driver::start(open(&options).await, driver));
    }
    let admitted = flood(&stores, 300).await;
    // Each admits what is missing, and may not see yet what the other one has just admitted.
    assert!((100..=100 + batch).contains(&admitted), "{admitted} admitted");
    assert_eq!(bump(&stores[0], key("one more")).await, Err(FULL));
    let names = (0..300).flat_map(|number| [format!("0, {number}"), format!("1, {number}")]);
    let mut live = 0;
    for name in names {
        live += count(&stores[1], key(&name)).await.unwrap();
    }
    assert_eq!(live, admitted as u64, "what was admitted is there, as it was");
}

#[tokio::test]
async fn a_new_secret_starts_over_while_instances_with_the_old_one_go_on() {
    let server = RedisServer::start(&[]).unwrap();
    let old_options = Options { secret_id: Some(1), ..options(&server.url()) };
    let new_options = Options { secret_id: Some(0xfeed), ..old_options.clone() };
    let (old, new) = (bounded(&old_options, 3).await, bounded(&new_options, 3).await);
    for name in ["a", "b", "lives on"] {
        assert_eq!(bump(&old, key(name)).await, Ok(1));
    }
    for name in ["a", "b", "c"] {
        assert_eq!(bump(&new, key(name)).await, Ok(1), "rows of the old secret neither are read nor count");
    }
    assert_eq!(bump(&new, key("d")).await, Err(FULL));
    assert_eq!(bump(&old, key("a")).await, Ok(2), "the old instance goes on with its own");
    for name in ["a", "b"] {
        let expiring = old.update(vec![key(name)], |view| view.put(0, [0; 8].as_slice(), view.now_ms() + 50));
        expiring.await.unwrap();
    }
    // The server's clock can't be moved.
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(new.sweep().await, Ok(2), "what has expired goes, whichever secret it is of");
    assert_eq!(count(&old, key("lives on")).await, Ok(1), "and nothing sooner");
    assert_eq!(count(&new, key("a")).await, Ok(1));
    let ends = old.update(vec![key("lives on")], |view| view.delete(0));
    ends.await.unwrap();
    assert_eq!(new.sweep().await, Ok(0));
    let secrets = format!("SMEMBERS {{{}}}:secrets", new_options.prefix);
    assert!(
        !server.ask(&secrets).unwrap().contains("\r\n1\r\n"),
        "the id of a secret without rows is forgotten"
    );
    assert_eq!(bump(&old, key("late")).await, Ok(1));
    assert_eq!(old.sweep().await, Ok(0), "which notes its id again");
    assert!(server.ask(&secrets).unwrap().contains("\r\n1\r\n"));
}

/// Two sweeps at once over more rows than one step takes remove each row once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_that_sweep_at_once_do_no_harm() {
    let server = RedisServer::start(&[]).unwrap();
    let options = options(&server.url());
    let stores = [bounded(&options, 10_000).await, bounded(&options, 10_000).await];
    for part in 0..10 {
        let keys = (0..300).map(|number| key(&format!("{part}, {number}"))).collect();
        let fill = stores[0].update(keys, move |view| {
            for index in 0..300 {
                let life_ms = if index == 0 { LONG_MS } else { 1 };
                view.put(index, part.to_string().as_bytes(), view.now_ms() + life_ms);
            }
        });
        fill.await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    let swept = tokio::join!(stores[0].sweep(), stores[1].sweep());
    let rest = stores[0].sweep().await.unwrap();
    assert!(swept.0.unwrap() + swept.1.unwrap() + rest <= 2990);
    assert_eq!(server.ask(&format!("ZCARD {{{}}}:0:index", options.prefix)).unwrap(), ":10\r\n");
    assert_eq!(server.ask(&format!("ZCARD {{{}}}:0:keys", options.prefix)).unwrap(), ":10\r\n");
    assert_eq!(server.ask(&format!("HLEN {{{}}}:0:rows", options.prefix)).unwrap(), ":10\r\n");
    assert_eq!(server.ask("DBSIZE").unwrap(), ":5\r\n", "the rows, two indexes, the secrets, the format");
}
