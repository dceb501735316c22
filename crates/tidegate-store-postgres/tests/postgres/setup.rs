//! A store of its own for each test, and the few words that the tests are written in.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tidegate_store::{Driver, DriverOptions, Entry, Key, LimitStore, LimitStoreExt, StoreError};
use tidegate_store_postgres::{Options, PostgresBackend, migrate};
use tidegate_test_servers::PostgresServer;
use tokio::time::Instant;
use tokio_postgres::{Client, NoTls, Row};

pub(crate) type Store = Driver<PostgresBackend>;

pub(crate) const LONG_MS: u64 = 60 * 60 * 1000;
/// For what the server or other tasks do soon, on a machine with other things to do.
const PATIENCE: Duration = Duration::from_secs(30);

/// An empty store in a schema of its own on the server that all tests share.
pub(crate) struct Fresh {
    pub(crate) server: Arc<PostgresServer>,
    pub(crate) options: Options,
}

impl Fresh {
    pub(crate) async fn new() -> Self {
        let server = PostgresServer::shared().unwrap();
        let options = options_on(&server);
        migrate(&options).await.unwrap();
        Self { server, options }
    }

    pub(crate) async fn backend(&self) -> PostgresBackend {
        PostgresBackend::connect(&self.options).await.unwrap()
    }

    pub(crate) async fn driver(&self, max_entries: u64) -> Store {
        Driver::start(self.backend().await, driver_options(max_entries))
    }

    /// A session that looks behind the scenes.
    pub(crate) async fn observer(&self) -> Observer {
        Observer::on(&self.server, &self.options.schema).await
    }
}

/// Options for a schema that no other test uses.
pub(crate) fn options_on(server: &PostgresServer) -> Options {
    static SCHEMAS: AtomicU64 = AtomicU64::new(0);
    let schema = format!("store_{}", SCHEMAS.fetch_add(1, Ordering::Relaxed));
    Options { schema, ..Options::at(server.url()) }
}

pub(crate) fn driver_options(max_entries: u64) -> DriverOptions {
    DriverOptions::new("postgres", max_entries)
}

/// A superuser's session in the schema of a store.
pub(crate) struct Observer(Client);

impl Observer {
    pub(crate) async fn on(server: &PostgresServer, schema: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(&server.superuser_url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
        Self(client)
    }

    pub(crate) async fn run(&self, statements: &str) {
        self.0.batch_execute(statements).await.unwrap();
    }

    pub(crate) async fn rows(&self, query: &str) -> Vec<Row> {
        self.0.query(query, &[]).await.unwrap()
    }

    pub(crate) async fn number(&self, query: &str) -> i64 {
        self.rows(query).await[0].get(0)
    }

    /// Waits until so many of the store's sessions wait for locks of others.
    pub(crate) async fn until_waiting(&self, sessions: i64) {
        // Those of this schema: the lock is on one of its rows, or its gate, or a transaction that holds one.
        let waiting = "SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity USING (pid) \
                       WHERE NOT granted AND application_name = 'tidegate' \
                       AND pid IN (SELECT pid FROM pg_locks WHERE relation = 'entries'::regclass)";
        within_patience("sessions that wait", async || self.number(waiting).await == sessions).await;
    }
}

/// Looks until `there` says yes.
pub(crate) async fn within_patience(what: &str, there: impl AsyncFn() -> bool) {
    let began = Instant::now();
    while !there().await {
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[expect(clippy::needless_pass_by_value, reason = "tests read better without the ampersands")]
pub(crate) fn key(name: impl ToString) -> Key {
    Key::of(&[b"test", name.to_string().as_bytes()])
}

pub(crate) fn count(entry: Option<&Entry>) -> u64 {
    entry.map_or(0, |entry| u64::from_le_bytes(entry.value.as_slice().try_into().unwrap()))
}

/// Adds one to the counter at `key`; answers what it is then.
pub(crate) async fn bump(store: &Store, key: Key) -> Result<u64, StoreError> {
    let update = store.update(vec![key], |view| {
        let next = count(view.get(0)) + 1;
        view.put(0, next.to_le_bytes().as_slice(), view.now_ms() + LONG_MS);
        next
    });
    update.await
}

/// The counter at `key`.
pub(crate) async fn counted(store: &Store, key: Key) -> u64 {
    count(store.read(vec![key]).await.unwrap()[0].as_ref())
}
