//! The store contract's own tests, on one server and on a cluster.

use std::{sync::Arc, time::Duration};

use tidegate_store::{
    BoxFuture, Driver, DriverOptions, LimitStore,
    testing::{
        self, Disturbance, FaultyBackend, Handles, Harness, Reopened, Switch, Unlocked, place_of_child,
        take_part,
    },
};
use tidegate_test_servers::{RedisCluster, RedisServer};

use super::{open, options};
use crate::Options;

const UNCHECKED: &str = "unchecked";

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

/// Two processes on one store, as far as `checks` are there to keep them apart.
async fn two_processes(checks: &str, url: &str, max_entries: u64) -> Handles {
    let place = format!("{checks} {} {url}", options(url).prefix);
    let deadline = Duration::from_secs(1);
    let driver = DriverOptions { deadline, ..DriverOptions::new("redis", max_entries) };
    Handles::two_processes("tests::contract::one_of_two_processes", &place, &driver).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_keep_the_contract() {
    let server = RedisServer::start(&[]).unwrap();
    let report =
        testing::check_all(async |max_entries| two_processes("checked", &server.url(), max_entries).await);
    let report = report.await.unwrap_or_else(|violations| panic!("{violations}"));
    assert_eq!(report.not_shown, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_that_check_nothing_break_it() {
    let server = RedisServer::start(&[]).unwrap();
    let name = "first attempts at once are counted";
    let case = testing::contract_cases().into_iter().find(|case| case.name == name).unwrap();
    let violation = case.run(two_processes(UNCHECKED, &server.url(), case.max_entries).await).await;
    println!("{}", violation.unwrap_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_processes() {
    let Some((place, driver)) = place_of_child("redis") else { return };
    let [checks, prefix, url] = place.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let (prefix, deadline) = (prefix.to_owned(), driver.deadline);
    let backend = open(&Options { prefix, deadline, ..Options::at(url.parse().unwrap()) }).await;
    let instance = match checks {
        UNCHECKED => Handles::in_process(Unlocked(backend), &driver, None),
        _ => Handles::in_process(backend, &driver, None),
    };
    take_part(instance).await.unwrap();
}
