//! A server that is killed, paused or cuts its connections, under load from two instances.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tidegate_store::{Driver, StoreError};
use tidegate_store_postgres::{PostgresBackend, migrate};
use tidegate_test_servers::{PostgresServer, PostgresSetup};
use tokio::{task::JoinHandle, time::Instant};

use crate::setup::{Observer, Store, bump, counted, driver_options, key, options_on};

const KEYS: usize = 4;
const CALLERS: usize = 32;
/// What a caller may wait beyond its deadline, on a machine with other things to do.
const SLACK: Duration = Duration::from_millis(700);
const RECOVERY_MAX: Duration = Duration::from_secs(5);

/// Callers who count up all the time, and what they were told.
struct Load {
    stores: [Store; 2],
    told: Arc<Told>,
    callers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Told {
    acknowledged: [AtomicU64; KEYS],
    /// Without an answer: counted or not.
    open: [AtomicU64; KEYS],
    done: AtomicBool,
}

impl Load {
    async fn start(server: &PostgresServer) -> Self {
        let options = options_on(server);
        migrate(&options).await.unwrap();
        let store =
            async || Driver::start(PostgresBackend::connect(&options).await.unwrap(), driver_options(1000));
        let stores = [store().await, store().await];
        let told = Arc::new(Told::default());
        let callers = (0..CALLERS)
            .map(|caller| tokio::spawn(count_up(stores[caller % 2].clone(), Arc::clone(&told), caller)))
            .collect();
        Self { stores, told, callers }
    }

    fn acknowledged(&self) -> u64 {
        self.told.acknowledged.iter().map(|count| count.load(Ordering::SeqCst)).sum()
    }

    /// Waits until so many more have been acknowledged.
    async fn until_served(&self, more: u64) {
        let until = self.acknowledged() + more;
        while self.acknowledged() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Checks that both instances serve again soon.
    async fn recovers(&self, what: &str) {
        let began = Instant::now();
        for store in &self.stores {
            while bump(store, key("after")).await.is_err() {
                assert!(began.elapsed() < RECOVERY_MAX, "{what}: no recovery");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        println!("{what}: served again after {:?}", began.elapsed());
        self.until_served(200).await;
    }

    /// Ends the load, and compares what was counted with what was told.
    async fn end(self) {
        self.told.done.store(true, Ordering::SeqCst);
        for caller in self.callers {
            caller.await.unwrap();
        }
        let (mut acknowledged_all, mut open_all) = (0, 0);
        for index in 0..KEYS {
            let counted = counted(&self.stores[0], key(index)).await;
            let acknowledged = self.told.acknowledged[index].load(Ordering::SeqCst);
            let open = self.told.open[index].load(Ordering::SeqCst);
            assert!(
                (acknowledged..=acknowledged + open).contains(&counted),
                "key {index}: {counted} counted, {acknowledged} acknowledged, {open} open"
            );
            acknowledged_all += acknowledged;
            open_all += open;
        }
        println!("{acknowledged_all} acknowledged, {open_all} open");
    }
}

async fn count_up(store: Store, told: Arc<Told>, caller: usize) {
    let deadline = driver_options(1).deadline;
    for turn in 0.. {
        if told.done.load(Ordering::SeqCst) {
            return;
        }
        let (index, began) = ((caller + turn) % KEYS, Instant::now());
        let answer = bump(&store, key(index)).await;
        let waited = began.elapsed();
        assert!(waited < deadline + SLACK, "a caller waited for {waited:?}: {answer:?}");
        match answer {
            Ok(_) => told.acknowledged[index].fetch_add(1, Ordering::SeqCst),
            Err(StoreError::Unavailable(_)) => {
                tokio::time::sleep(Duration::from_millis(5)).await;
                told.open[index].fetch_add(1, Ordering::SeqCst)
            }
            Err(error) => panic!("{error}"),
        };
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_loses_nothing_and_is_found_again() {
    let mut server = PostgresServer::start_with(&PostgresSetup { fsync: true, tls: None }).unwrap();
    let load = Load::start(&server).await;
    for round in 0..3 {
        load.until_served(500).await;
        server.kill();
        // Some are refused meanwhile.
        tokio::time::sleep(Duration::from_millis(200)).await;
        server =
            tokio::task::spawn_blocking(move || server.restart().map(|()| server)).await.unwrap().unwrap();
        load.recovers(&format!("killed, round {round}")).await;
    }
    load.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_keeps_nobody_waiting() {
    let server = PostgresServer::start().unwrap();
    let load = Load::start(&server).await;
    for (round, pause_ms) in [100, 1500, 4000].into_iter().enumerate() {
        load.until_served(500).await;
        server.pause().unwrap();
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        server.go_on().unwrap();
        load.recovers(&format!("paused for {pause_ms} ms, round {round}")).await;
    }
    load.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_are_made_again() {
    let server = PostgresServer::start().unwrap();
    let load = Load::start(&server).await;
    let observer = Observer::on(&server, "public").await;
    let cut =
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'tidegate'";
    for _ in 0..50 {
        load.until_served(100).await;
        observer.number(cut).await;
    }
    load.recovers("cut 50 times").await;
    load.end().await;
}

/// An instance that stops in the middle of a batch holds its rows; the server ends its transaction in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_hangs_does_not_hold_up_the_others_for_long() {
    use tidegate_store::Backend;
    let server = PostgresServer::start().unwrap();
    let load = Load::start(&server).await;
    load.until_served(100).await;
    let schema = {
        let observer = Observer::on(&server, "public").await;
        observer.rows("SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'store_%'").await[0].get(0)
    };
    let options = tidegate_store_postgres::Options { schema, ..options_on(&server) };
    let hanging = PostgresBackend::connect(&options).await.unwrap();
    let held = hanging.load(&[key(0)]).await.unwrap();
    load.recovers("beside an instance that hangs").await;
    let late = hanging.commit(held.batch, Vec::new()).await;
    assert!(late.is_err_and(|error| !error.is_conflict()), "its transaction is gone");
    let again = hanging.load(&[key(0)]).await.unwrap();
    hanging.commit(again.batch, Vec::new()).await.unwrap().await.unwrap();
    load.end().await;
}
