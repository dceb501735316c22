//! The public contract, whole, on two instances that share a server.

use std::{sync::Arc, time::Duration};

use tidegate_store::{
    BoxFuture, Driver, DriverOptions, LimitStore,
    testing::{
        Disturbance, FaultyBackend, Handles, Harness, Reopened, Switch, check_all, check_processes,
        place_of_child, take_part,
    },
};
use tidegate_store_postgres::{Options, PostgresBackend};

use crate::setup::{Fresh, driver_options};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_of_a_limit_store_is_kept() {
    let report = check_all(async |max_entries| {
        let deadline = Duration::from_secs(1);
        let options = DriverOptions { deadline, ..driver_options(max_entries) };
        let instances =
            Instances { fresh: Fresh::new().await, options: options.clone(), switch: Switch::new() };
        let (first, second) = instances.start().await;
        Handles { first, second, deadline, max_calls: options.max_calls, harness: Arc::new(instances) }
    });
    let report = report.await.unwrap_or_else(|violations| panic!("{violations}"));
    assert_eq!(report.not_shown, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_keep_it_too() {
    let fresh = Fresh::new().await;
    let place = format!("{} {}", fresh.options.schema, fresh.server.url());
    check_processes("contract::one_of_two_processes", &place).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_processes() {
    let Some(place) = place_of_child() else { return };
    let (schema, url) = place.split_once(' ').unwrap();
    let options = Options { schema: schema.to_owned(), ..Options::at(url) };
    let backend = PostgresBackend::connect(&options).await.unwrap();
    take_part(Arc::new(Driver::start(backend, driver_options(10_000)))).await.unwrap();
}
