//! The store contract's own tests, on one server and on a cluster.

use std::sync::Arc;

use tidegate_store::{
    BoxFuture, Driver, DriverOptions, LimitStore,
    testing::{
        self, Disturbance, FaultyBackend, Handles, Harness, Reopened, Switch, check_processes,
        place_of_child, take_part,
    },
};
use tidegate_test_servers::{RedisCluster, RedisServer};

use super::{open, options, shared, store};
use crate::Options;

/// Two instances on one store, which can be opened again.
struct Instances {
    options: Options,
    driver: DriverOptions,
    switch: Switch,
}

impl Instances {
    async fn handle(&self) -> Arc<dyn LimitStore> {
        let backend = FaultyBackend::new(open(&self.options).await, self.switch.clone());
        Arc::new(Driver::start(backend, self.driver.clone()))
    }
}

impl Harness for Instances {
    fn disturb(&self, disturbance: Disturbance) -> bool {
        self.switch.set(disturbance);
        true
    }

    fn reopen(&self) -> BoxFuture<'_, Option<Reopened>> {
        Box::pin(async { Some((self.handle().await, self.handle().await)) })
    }
}

async fn check(url: &str) {
    let report = testing::check_all(async |max_entries| {
        let instances = Instances {
            options: options(url),
            driver: DriverOptions::new("redis", max_entries),
            switch: Switch::new(),
        };
        Handles {
            first: instances.handle().await,
            second: instances.handle().await,
            deadline: instances.driver.deadline,
            max_calls: instances.driver.max_calls,
            harness: Arc::new(instances),
        }
    });
    let report = report.await.unwrap_or_else(|violations| panic!("{violations}"));
    assert_eq!(report.not_shown, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_keeps_the_contract() {
    let server = RedisServer::start(&[]).unwrap();
    check(&server.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_keeps_the_contract() {
    let cluster = RedisCluster::start().unwrap();
    check(&cluster.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_keep_the_contract() {
    let server = RedisServer::start(&[]).unwrap();
    check_processes("tests::contract::one_of_two_processes", &server.url()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_processes() {
    let Some(url) = place_of_child() else { return };
    take_part(shared(store(&Options::at(url.parse().unwrap())).await)).await.unwrap();
}
