//! One row that everybody wants, over two instances.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tidegate_store::{Driver, DriverOptions};
use tidegate_test_servers::RedisServer;
use tokio::{task::JoinSet, time::Instant};

use super::{
    Store, bump, count, key, open, options,
    proxy::{Fault, Proxy},
    store,
};
use crate::{Options, backend::TURN_MS, script::Script};

const CALLERS: usize = 512;
const RUN: Duration = Duration::from_secs(3);

/// Lets `callers` count on each of two instances; answers what each instance acknowledged, and the count in
/// the end.
async fn contend(stores: [Store; 2], callers: [usize; 2]) -> ([u64; 2], u64) {
    let acknowledged: Arc<[AtomicU64; 2]> = Arc::default();
    let end = Instant::now() + RUN;
    let mut tasks = JoinSet::new();
    for instance in [0, 1] {
        for _ in 0..callers[instance] {
            let (store, acknowledged) = (stores[instance].clone(), Arc::clone(&acknowledged));
            tasks.spawn(async move {
                while Instant::now() < end {
                    let counted = bump(&store, key("hot")).await.is_ok();
                    acknowledged[instance].fetch_add(u64::from(counted), Ordering::Relaxed);
                }
            });
        }
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let count = count(&stores[0], key("hot")).await.unwrap();
    let acknowledged = acknowledged.each_ref().map(|count| count.load(Ordering::Relaxed));
    for (store, acknowledged) in stores.iter().zip(acknowledged) {
        let stats = store.stats();
        println!(
            "{acknowledged} counted in {RUN:?}, {} batches, {} conflicts",
            stats.batches, stats.conflicts
        );
    }
    (acknowledged, count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hot_row_loses_no_count_and_starves_no_instance() {
    let server = RedisServer::start(&["--appendfsync", "everysec"]).unwrap();
    let options = options(&server.url());
    let stores = [store(&options).await, store(&options).await];
    let (acknowledged, count) = contend(stores, [CALLERS / 2; 2]).await;
    assert_eq!(count, acknowledged.iter().sum::<u64>());
    let (less, more) = (acknowledged.iter().min().unwrap(), acknowledged.iter().max().unwrap());
    assert!(less * 4 > *more, "one instance starved: {acknowledged:?}");
}

/// One instance next to the server, and one so far away that the other commits many times between its own load
/// and commit; each may have the turn for `turn_ms`. Answers what each counted.
async fn compete_from_afar(turn_ms: u64) -> [u64; 2] {
    let server = RedisServer::start(&["--appendfsync", "everysec"]).unwrap();
    let near = options(&server.url());
    let proxy = Proxy::start(server.port(), Fault::Slow(Duration::from_millis(10))).await;
    let far = Options { url: proxy.url().parse().unwrap(), ..near.clone() };
    let mut stores = Vec::new();
    for options in [near, far] {
        let mut backend = open(&options).await;
        backend.turn_ms = turn_ms;
        stores.push(Driver::start(backend, DriverOptions::new("redis", 1000)));
    }
    let (acknowledged, count) = contend(stores.try_into().unwrap(), [4, 32]).await;
    assert_eq!(count, acknowledged.iter().sum::<u64>());
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_distant_instance_gets_its_turn() {
    let [near, far] = compete_from_afar(TURN_MS).await;
    assert!(near > 100 && far > 100, "{near} near, {far} far");
}

/// The test above can fail: without turns the distant instance hardly ever comes through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_turns_a_distant_instance_starves() {
    let [near, far] = compete_from_afar(0).await;
    assert!(near > 100 && far < 100, "{near} near, {far} far");
}

/// The tests above can fail: a commit that does not compare loses counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_does_not_compare_loses_counts() {
    let server = RedisServer::start(&["--appendfsync", "everysec"]).unwrap();
    let options = options(&server.url());
    let blind: String =
        include_str!("../scripts/commit.lua").replace("~= string.sub(ARGV[7], ends - 7, ends)", "== 'never'");
    let blind: &'static str = blind.leak();
    let mut stores = Vec::new();
    for _ in 0..2 {
        let mut backend = open(&options).await;
        backend.scripts.commit = Script::new(blind);
        stores.push(Driver::start(backend, DriverOptions::new("redis", 1000)));
    }
    let (acknowledged, count) = contend(stores.try_into().unwrap(), [CALLERS / 2; 2]).await;
    assert!(count < acknowledged.iter().sum(), "{acknowledged:?}, {count}");
}
