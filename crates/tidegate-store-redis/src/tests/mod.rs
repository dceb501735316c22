//! The backend on real servers, which the tests start themselves.

mod contention;
mod contract;
mod failures;
mod losses;
mod opening;
mod proxy;
mod rooms;
mod rows;
mod tls;
mod topology;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tidegate_store::{Driver, DriverOptions, Key, LimitStore, LimitStoreExt, StoreError};

use crate::{Options, RedisBackend};

type Store = Driver<RedisBackend>;

const LONG_MS: u64 = 60 * 60 * 1000;

/// Options for a store at `url` that no other test has.
fn options(url: &str) -> Options {
    static STORES: AtomicUsize = AtomicUsize::new(0);
    let prefix = format!("test-{}", STORES.fetch_add(1, Ordering::Relaxed));
    Options { prefix, ..Options::at(url.parse().unwrap()) }
}

async fn open(options: &Options) -> RedisBackend {
    RedisBackend::connect(options).await.unwrap()
}

/// A driver of its own, as another instance would have it.
async fn store(options: &Options) -> Store {
    bounded(options, DriverOptions::DURABLE_ENTRIES).await
}

async fn bounded(options: &Options, max_entries: u64) -> Store {
    let driver = DriverOptions { deadline: options.deadline, ..DriverOptions::new("redis", max_entries) };
    Driver::start(open(options).await, driver)
}

fn key(name: &str) -> Key {
    Key::of(&[b"test", name.as_bytes()])
}

/// Adds one to a counter; answers what it is then.
async fn bump(store: &Store, key: Key) -> Result<u64, StoreError> {
    let update = store.update(vec![key], |view| {
        let count =
            view.get(0).map_or(0, |row| u64::from_le_bytes(row.value.as_slice().try_into().unwrap())) + 1;
        view.put(0, count.to_le_bytes().as_slice(), view.now_ms() + LONG_MS);
        count
    });
    update.await
}

async fn count(store: &Store, key: Key) -> Result<u64, StoreError> {
    let rows = store.read(vec![key]).await?;
    Ok(rows[0].as_ref().map_or(0, |row| u64::from_le_bytes(row.value.as_slice().try_into().unwrap())))
}

/// Waits until `done`, in real time: a real server can't be told what time it is.
async fn wait_until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    for _ in 0..3000 {
        if done().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited too long for {what}");
}

fn shared(store: Store) -> Arc<dyn LimitStore> {
    Arc::new(store)
}
