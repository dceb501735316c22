//! A server that is killed, paused or cut off in the middle of load.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tidegate_test_servers::RedisServer;
use tokio::{task::JoinSet, time::Instant};

use super::{Store, bump, count, key, options, store, wait_until};
use crate::Options;

const CALLERS: usize = 32;
const ROWS: usize = 5;

/// Callers that count on a few rows without a pause, over two instances.
pub(super) struct Load {
    stores: [Store; 2],
    tally: Arc<Tally>,
    callers: JoinSet<()>,
    deadline: Duration,
}

#[derive(Default)]
struct Tally {
    acknowledged: [AtomicU64; ROWS],
    unanswered: [AtomicU64; ROWS],
    longest_us: AtomicU64,
    ended: AtomicBool,
}

impl Load {
    pub(super) async fn start(options: &Options) -> Self {
        let stores = [store(options).await, store(options).await];
        let tally = Arc::<Tally>::default();
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            callers.spawn(call(stores[caller % 2].clone(), caller % ROWS, Arc::clone(&tally)));
        }
        Self { stores, tally, callers, deadline: options.deadline }
    }

    /// Waits until so many more calls were acknowledged; answers how long it took.
    pub(super) async fn proceed(&self, calls: u64) -> Duration {
        let (start, before) = (Instant::now(), self.acknowledged());
        wait_until("calls to be acknowledged", async || self.acknowledged() >= before + calls).await;
        start.elapsed()
    }

    /// Waits until a call was not answered.
    pub(super) async fn fail(&self) {
        let before = self.unanswered();
        wait_until("a call to fail", async || self.unanswered() > before).await;
    }

    /// Ends the load and compares what was acknowledged with what is there.
    pub(super) async fn check(mut self) {
        self.tally.ended.store(true, Ordering::Relaxed);
        while let Some(ended) = self.callers.join_next().await {
            ended.unwrap();
        }
        for row in 0..ROWS {
            let seen = count(&self.stores[row % 2], key(&row.to_string())).await.unwrap();
            let sure = self.tally.acknowledged[row].load(Ordering::Relaxed);
            let most = sure + self.tally.unanswered[row].load(Ordering::Relaxed);
            assert!((sure..=most).contains(&seen), "row {row} is {seen}, not {sure} to {most}");
        }
        let longest = Duration::from_micros(self.tally.longest_us.load(Ordering::Relaxed));
        println!(
            "{} acknowledged, {} not answered, at most {longest:?}",
            self.acknowledged(),
            self.unanswered()
        );
        assert!(longest < self.deadline + Duration::from_millis(500), "a call took {longest:?}");
    }

    fn acknowledged(&self) -> u64 {
        self.tally.acknowledged.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn unanswered(&self) -> u64 {
        self.tally.unanswered.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

async fn call(store: Store, row: usize, tally: Arc<Tally>) {
    while !tally.ended.load(Ordering::Relaxed) {
        let start = Instant::now();
        let counted = bump(&store, key(&row.to_string())).await;
        let took = start.elapsed();
        let counter = if counted.is_ok() { &tally.acknowledged } else { &tally.unanswered };
        counter[row].fetch_add(1, Ordering::Relaxed);
        tally.longest_us.fetch_max(u64::try_from(took.as_micros()).unwrap(), Ordering::Relaxed);
        if counted.is_err() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// A store whose callers wait for 600 ms at most.
fn impatient(server: &RedisServer) -> Options {
    Options { deadline: Duration::from_millis(600), ..options(&server.url()) }
}

pub(super) const RECOVERY: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_comes_back() {
    let mut server = RedisServer::start(&[]).unwrap();
    let load = Load::start(&impatient(&server)).await;
    for _ in 0..3 {
        load.proceed(200).await;
        server.kill();
        load.fail().await;
        server.restart().unwrap();
        let recovery = load.proceed(1).await;
        assert!(recovery < RECOVERY, "it took {recovery:?}");
    }
    load.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_paused() {
    let server = RedisServer::start(&[]).unwrap();
    let options = impatient(&server);
    let load = Load::start(&options).await;
    for pause in [options.deadline / 2, options.deadline * 3] {
        load.proceed(200).await;
        server.pause().unwrap();
        tokio::time::sleep(pause).await;
        server.resume().unwrap();
        let recovery = load.proceed(1).await;
        assert!(recovery < RECOVERY, "it took {recovery:?}");
    }
    load.proceed(200).await;
    load.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut() {
    let server = RedisServer::start(&[]).unwrap();
    let load = Load::start(&impatient(&server)).await;
    for _ in 0..50 {
        load.proceed(20).await;
        server.ask("CLIENT KILL TYPE normal SKIPME yes").unwrap();
        let recovery = load.proceed(1).await;
        assert!(recovery < RECOVERY, "it took {recovery:?}");
    }
    load.check().await;
}
