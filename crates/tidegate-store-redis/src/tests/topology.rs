//! Clusters and sentinels: finding the master, and finding the next one.

use std::time::Duration;

use tidegate_store::{Key, LimitStoreExt};
use tidegate_test_servers::{RedisCluster, RedisSentinels};

use super::{
    bump, count,
    failures::{Load, RECOVERY},
    key, options, shared, store,
};
use crate::Options;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_node_of_a_cluster_leads_to_the_right_one() {
    let mut cluster = RedisCluster::start().unwrap();
    let options = options(&cluster.url());
    let mut counted = 0;
    for node in &cluster.nodes {
        let url = node.url().replace("redis://", "redis+cluster://").parse().unwrap();
        let store = shared(store(&Options { url, ..options.clone() }).await);
        // Keys of many groups, in one update.
        let keys = (0..100).map(|number| Key::of(&[format!("group {number}").as_bytes()])).collect();
        counted += 1;
        let update = store.update(keys, |view| {
            let count = view.get(99).map_or(0, |row| row.value[0]) + 1;
            (0..100).for_each(|index| view.put(index, [count].as_slice(), view.now_ms() + 60_000));
            count
        });
        assert_eq!(update.await, Ok(counted));
    }
    let holds = |node: &tidegate_test_servers::RedisServer| node.ask("DBSIZE").unwrap() != ":0\r\n";
    let homes: Vec<usize> = (0..3).filter(|number| holds(&cluster.nodes[*number])).collect();
    assert_eq!(homes.len(), 1, "all of a store is on one node");
    let load = Load::start(&Options { deadline: Duration::from_millis(600), ..options }).await;
    load.proceed(100).await;
    cluster.nodes[homes[0]].kill();
    load.fail().await;
    cluster.nodes[homes[0]].restart().unwrap();
    let recovery = load.proceed(1).await;
    assert!(recovery < RECOVERY, "it took {recovery:?}");
    load.check().await;
}

/// With a replica that has every batch before it is answered, a failover loses nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_put_a_replica_in_the_masters_place() {
    let mut sentinels = RedisSentinels::start().unwrap();
    let options =
        Options { wait_replicas: 1, deadline: Duration::from_millis(1000), ..options(&sentinels.url()) };
    let load = Load::start(&options).await;
    load.proceed(200).await;
    sentinels.kill_sentinel(0);
    sentinels.master.kill();
    load.fail().await;
    // It comes back as a replica of the one that was its own, which needs it.
    let replica = &sentinels.replica;
    super::wait_until("a failover", async || replica.ask("ROLE").is_ok_and(|role| role.contains("master")))
        .await;
    sentinels.master.restart().unwrap();
    load.proceed(100).await;
    load.check().await;
    let store = store(&Options { wait_replicas: 0, ..options }).await;
    assert!(count(&store, key("0")).await.unwrap() > 0);
    assert_eq!(bump(&store, key("new")).await, Ok(1));
}
