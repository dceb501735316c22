//! The public contract, whole, on two instances that share a server.

use std::{sync::Arc, time::Duration};

use tidegate_store::{
    BoxFuture, Driver, DriverOptions, LimitStore,
    testing::{
        Disturbance, FaultyBackend, Handles, Harness, Reopened, Switch, Unlocked, check_all, contract_cases,
        place_of_child, take_part,
    },
};
use tidegate_store_postgres::{Options, PostgresBackend};
use tidegate_test_servers::PostgresServer;

use crate::setup::{Fresh, driver_options};

const UNLOCKED: &str = "unlocked";

struct Instances {
    fresh: Fresh,
    options: DriverOptions,
    switch: Switch,
}

impl Instances {
    async fn start(&self) -> Reopened {
        (self.instance().await, self.instance().await)
    }

    async fn instance(&self) -> Arc<dyn LimitStore> {
        let backend = FaultyBackend::new(self.fresh.backend().await, self.switch.clone());
        Arc::new(Driver::start(backend, self.options.clone()))
    }
}

impl Harness for Instances {
    fn disturb(&self, disturbance: Disturbance) -> bool {
        self.switch.set(disturbance);
        true
    }

    fn reopen(&self) -> BoxFuture<'_, Option<Reopened>> {
        Box::pin(async { Some(self.start().await) })
    }
}

/// Deadlines that the cases can wait for.
fn brisk(max_entries: u64) -> DriverOptions {
    DriverOptions { deadline: Duration::from_secs(1), ..driver_options(max_entries) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_of_a_limit_store_is_kept() {
    let report = check_all(async |max_entries| {
        let instances =
            Instances { fresh: Fresh::new().await, options: brisk(max_entries), switch: Switch::new() };
        let (first, second) = instances.start().await;
        let DriverOptions { deadline, max_calls, .. } = instances.options;
        Handles { first, second, deadline, max_calls, harness: Arc::new(instances) }
    });
    let report = report.await.unwrap_or_else(|violations| panic!("{violations}"));
    assert_eq!(report.not_shown, []);
}

/// Two processes on one store, as far as `locks` are there to keep them apart.
async fn two_processes(locks: &str, max_entries: u64) -> Handles {
    let fresh = Fresh::new().await;
    let place = format!("{locks} {} {}", fresh.options.schema, fresh.server.url());
    Handles::two_processes("contract::one_of_two_processes", &place, &brisk(max_entries)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_keep_it_too() {
    let _kept = PostgresServer::shared().unwrap();
    let report = check_all(async |max_entries| two_processes("locked", max_entries).await).await;
    let report = report.unwrap_or_else(|violations| panic!("{violations}"));
    assert_eq!(report.not_shown, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_without_locks_break_it() {
    let attempts =
        contract_cases().into_iter().find(|case| case.name == "first attempts at once are counted").unwrap();
    let violation = attempts.run(two_processes(UNLOCKED, attempts.max_entries).await).await.unwrap_err();
    println!("{violation}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_processes() {
    let Some((place, driver)) = place_of_child("postgres") else { return };
    let [locks, schema, url] = place.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let options = Options { schema: schema.to_owned(), deadline: driver.deadline, ..Options::at(url) };
    let backend = PostgresBackend::connect(&options).await.unwrap();
    let instance = match locks {
        UNLOCKED => Handles::in_process(Unlocked(backend), &driver, None),
        _ => Handles::in_process(backend, &driver, None),
    };
    take_part(instance).await.unwrap();
}
