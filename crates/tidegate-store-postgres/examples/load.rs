//! Measures the store against one transaction a call, on the same server.
//!
//! `cargo run --release -p tidegate-store-postgres --example load -- [CALLERS] [KEYS] [SECONDS] [INSTANCES] [URL]`
//!
//! An update reads three rows, writes two of 100 bytes and inserts one, all with an expiry. Without a URL it
//! starts a server of its own, with the usual settings: a commit is flushed. In the other way each call has a
//! transaction of its own, on one of 16 connections: lock and read the rows, write them, commit.

#![expect(clippy::print_stdout, reason = "prints what it measured")]

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tidegate_store::{Driver, DriverOptions, Key, LimitStoreExt, StoreError, View};
use tidegate_store_postgres::{Options, PostgresBackend, migrate};
use tidegate_test_servers::{PostgresServer, PostgresSetup};
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};
use tokio_postgres::{Client, NoTls};

type Store = Driver<PostgresBackend>;
type Failed = Box<dyn Error + Send + Sync>;

const CONNECTIONS: usize = 16;
const LIFE_MS: u64 = 600_000;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| {
        arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (callers, keys, instances) = (number(0, 64), number(1, 100_000), number(3, 1));
    let time = Duration::from_secs(number(2, 10));
    let server = match arguments.get(4) {
        Some(_) => None,
        None => Some(PostgresServer::start_with(&PostgresSetup { fsync: true, tls: None })?),
    };
    let url = arguments.get(4).cloned().or(server.as_ref().map(PostgresServer::url)).unwrap_or_default();
    let options = Options { schema: "load".to_owned(), ..Options::at(url.clone()) };
    migrate(&options).await?;
    let mut stores = Vec::new();
    for _ in 0..instances {
        let backend = PostgresBackend::connect(&options).await?;
        stores.push(Driver::start(backend, DriverOptions::new("postgres", 50_000_000)));
    }
    fill(&stores[0], keys).await?;

    let one_each = Arc::new(OneEach::connect(&url).await?);
    let waits = measure(callers, time, |mut random| {
        let one_each = Arc::clone(&one_each);
        async move { one_each.update(names(&mut random, keys)).await.map(|()| random) }
    });
    println!("one transaction a call, {callers} callers: {}", waits.await?);
    let turn = AtomicU64::new(0);
    let waits = measure(callers, time, |mut random| {
        let turn = turn.fetch_add(1, Ordering::Relaxed);
        let store = stores[usize::try_from(turn % instances).unwrap_or(0)].clone();
        async move { store.update(names(&mut random, keys), write).await.map(|()| random).map_err(Into::into) }
    });
    println!("batches, {callers} callers, {instances} instances: {}", waits.await?);
    for store in stores {
        println!("{:?}", store.stats());
    }
    Ok(())
}

/// Lets `callers` call until the time is over; answers figures for people to read.
async fn measure<F: Future<Output = Result<u64, Failed>> + Send + 'static>(
    callers: u64,
    time: Duration,
    call: impl Fn(u64) -> F,
) -> Result<String, Failed> {
    let begun = Instant::now();
    let mut calls = JoinSet::new();
    let timed = |random: u64| {
        let asked = Instant::now();
        let call = call(random);
        async move { call.await.map(|random| (random, asked.elapsed())) }
    };
    for caller in 0..callers {
        calls.spawn(timed(caller << 32));
    }
    let mut waits = Vec::new();
    while let Some(called) = calls.join_next().await {
        let (random, waited) = called??;
        waits.push(waited);
        if begun.elapsed() < time {
            calls.spawn(timed(random));
        }
    }
    waits.sort_unstable();
    let at = |part: usize| waits[(waits.len() * part / 1000).min(waits.len() - 1)];
    let a_second = waits.len() as u128 * 1000 / begun.elapsed().as_millis().max(1);
    Ok(format!("{a_second} updates/s, p50 {:?}, p99 {:?}, p99.9 {:?}", at(500), at(990), at(999)))
}

async fn fill(store: &Store, keys: u64) -> Result<(), StoreError> {
    for start in (0..keys).step_by(500) {
        let names: Vec<Key> = (start..keys.min(start + 500)).map(row).collect();
        let count = names.len();
        let write = move |view: &mut View<'_>| {
            let expires_at_ms = view.now_ms() + LIFE_MS;
            (0..count).for_each(|index| view.put(index, [7; 100].as_slice(), expires_at_ms));
        };
        store.update(names, write).await?;
    }
    Ok(())
}

/// Two rows that are there, and a new one.
fn names(random: &mut u64, keys: u64) -> Vec<Key> {
    let mut next = || {
        // SplitMix64.
        *random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*random ^ (*random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let half = keys / 2;
    vec![row(next() % half), row(half + next() % half), Key::of(&[b"operation", &next().to_le_bytes()])]
}

fn row(index: u64) -> Key {
    Key::of(&[b"load", &index.to_le_bytes()])
}

fn write(view: &mut View<'_>) {
    let expires_at_ms = view.now_ms() + LIFE_MS;
    let seen = view.get(0).map_or(0, |entry| entry.value[0]);
    view.put(0, [seen.wrapping_add(1); 100].as_slice(), expires_at_ms);
    view.put(1, [seen; 100].as_slice(), expires_at_ms);
    view.put(2, [1; 16].as_slice(), view.now_ms() + 5000);
}

/// The other way: every call is a transaction of its own.
struct OneEach {
    clients: Vec<Client>,
    free: Semaphore,
    taken: parking_lot::Mutex<Vec<usize>>,
    select: Vec<tokio_postgres::Statement>,
    upsert: Vec<tokio_postgres::Statement>,
}

impl OneEach {
    async fn connect(url: &str) -> Result<Self, Failed> {
        let (mut clients, mut select, mut upsert) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..CONNECTIONS {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            tokio::spawn(connection);
            client.batch_execute("SET search_path = load; SET enable_seqscan = off").await?;
            select.push(
                client
                    .prepare(
                        "SELECT key, value, (extract(epoch FROM clock_timestamp()) * 1000)::int8 FROM entries \
                         WHERE secret_id = 0 AND key = ANY ($1) ORDER BY key FOR UPDATE",
                    )
                    .await?,
            );
            upsert.push(
                client
                    .prepare(
                        "INSERT INTO entries (secret_id, key, value, expires_at_ms, sweep_at_ms) \
                         SELECT 0, new.*, new.expires_at_ms \
                         FROM unnest($1::bytea[], $2::bytea[], $3::int8[]) AS new (key, value, expires_at_ms) \
                         ON CONFLICT (secret_id, key) DO UPDATE \
                         SET value = excluded.value, expires_at_ms = excluded.expires_at_ms, \
                             sweep_at_ms = greatest(entries.sweep_at_ms, excluded.sweep_at_ms)",
                    )
                    .await?,
            );
            clients.push(client);
        }
        let taken = parking_lot::Mutex::new((0..CONNECTIONS).collect());
        Ok(Self { clients, free: Semaphore::new(CONNECTIONS), taken, select, upsert })
    }

    async fn update(&self, names: Vec<Key>) -> Result<(), Failed> {
        let _place = self.free.acquire().await?;
        let index = self.taken.lock().pop().ok_or("as many as there are places")?;
        let done = self.update_on(index, &names).await;
        self.taken.lock().push(index);
        done
    }

    async fn update_on(&self, index: usize, names: &[Key]) -> Result<(), Failed> {
        let client = &self.clients[index];
        let keys: Vec<&[u8]> = names.iter().map(|key| key.as_bytes().as_slice()).collect();
        let (begun, found) = futures_util::future::join(
            client.batch_execute("BEGIN"),
            client.query(&self.select[index], &[&keys]),
        )
        .await;
        begun?;
        let found = found?;
        let row = found.first().ok_or("the rows are there")?;
        let (seen, now_ms) = (row.get::<_, &[u8]>(1)[0], row.get::<_, i64>(2));
        let (value, operation) = ([seen.wrapping_add(1); 100], [1; 16]);
        let values: [&[u8]; 3] = [&value, &value, &operation];
        let life_ms = LIFE_MS.cast_signed();
        let expiries = [now_ms + life_ms, now_ms + life_ms, now_ms + 5000];
        let (values, expiries): (&[&[u8]], &[i64]) = (&values, &expiries);
        let (written, committed) = futures_util::future::join(
            client.execute(&self.upsert[index], &[&keys, &values, &expiries]),
            client.batch_execute("COMMIT"),
        )
        .await;
        written?;
        Ok(committed?)
    }
}
