//! The store that the configuration names.

use std::{sync::Arc, time::Duration};

use sha2::{Digest, Sha256};
use thiserror::Error;
use tidegate_store::{
    Backend, BoxFuture, Driver, DriverOptions, DriverStats, Lanes, LimitStore, MemoryBackend,
    clock::{Clock, SystemClock},
};
use tidegate_store_embedded::{self as embedded, EmbeddedBackend};
use tidegate_store_postgres::{self as postgres, PostgresBackend};
use tidegate_store_redis::{self as redis, RedisBackend};
use tidegate_store_sql::{self as sql, MySqlBackend, MySqlOptions, SqliteBackend, SqliteOptions};
use tokio::runtime::Handle;

use crate::config::{Durability, Hidden, Store, StoreKind};

/// An open store, whichever it is, and the clock it goes by.
#[derive(Clone)]
pub(super) struct OpenStore {
    running: Arc<dyn Running>,
    clock: Arc<dyn Clock>,
    /// The same, where it is the embedded one.
    embedded: Option<Lanes<EmbeddedBackend>>,
}

/// What all stores have in common.
trait Running: Send + Sync {
    fn limit_store(&self) -> Arc<dyn LimitStore>;
    fn stats(&self) -> DriverStats;
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}

/// A driver on each thread.
impl<B: Backend> Running for Lanes<B> {
    fn limit_store(&self) -> Arc<dyn LimitStore> {
        Arc::new(self.clone())
    }

    fn stats(&self) -> DriverStats {
        Self::stats(self)
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::shutdown(self))
    }
}

/// One driver for all threads: a database is far away, and one batch of all callers is better than several.
impl<B: Backend> Running for Driver<B> {
    fn limit_store(&self) -> Arc<dyn LimitStore> {
        Arc::new(self.clone())
    }

    fn stats(&self) -> DriverStats {
        Self::stats(self)
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::shutdown(self))
    }
}

/// Why a store can't be opened or migrated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The embedded one.
    #[error(transparent)]
    Embedded(#[from] embedded::OpenError),
    /// PostgreSQL.
    #[error(transparent)]
    Postgres(#[from] postgres::OpenError),
    /// Redis or Valkey.
    #[error(transparent)]
    Redis(#[from] redis::OpenError),
    /// The URL of Redis or Valkey.
    #[error("reading store.url")]
    RedisUrl(#[from] redis::UrlError),
    /// SQLite, MySQL or MariaDB.
    #[error(transparent)]
    Sql(#[from] sql::OpenError),
}

impl StoreError {
    /// Whether another process has it open.
    pub(super) const fn is_in_use(&self) -> bool {
        matches!(self, Self::Embedded(embedded::OpenError::InUse { .. }))
    }
}

/// The embedded engine frees expired rows at the cost of those rows alone, so it is asked often.
const EMBEDDED_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

impl OpenStore {
    /// Opens it: one in this process with a driver on each of `runtimes`, any other with one driver here.
    pub(super) async fn open(store: &Store, runtimes: &[Handle]) -> Result<Self, StoreError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let running: Arc<dyn Running> = match store.kind {
            StoreKind::Memory => {
                let backend = MemoryBackend::new(Arc::clone(&clock));
                Arc::new(Lanes::start(backend, &driver_options(store, "memory"), runtimes))
            }
            StoreKind::Embedded => {
                let backend = open_embedded(store, &clock)?;
                let options = DriverOptions {
                    sweep_interval: EMBEDDED_SWEEP_INTERVAL,
                    ..driver_options(store, "embedded")
                };
                let lanes = Lanes::start(backend, &options, runtimes);
                return Ok(Self { running: Arc::new(lanes.clone()), clock, embedded: Some(lanes) });
            }
            StoreKind::Postgres => {
                let backend = PostgresBackend::connect(&postgres_options(store)).await?;
                Arc::new(Driver::start(backend, driver_options(store, "postgres")))
            }
            StoreKind::Redis => {
                let url: redis::StoreUrl = url(store).parse()?;
                let options = redis::Options {
                    secret_id: id(store),
                    deadline: deadline(store),
                    ..redis::Options::at(url)
                };
                let backend = RedisBackend::connect(&options).await?;
                Arc::new(Driver::start(backend, driver_options(store, "redis")))
            }
            StoreKind::Sqlite => {
                let backend = SqliteBackend::connect(&sqlite_options(store, &clock)).await?;
                Arc::new(Driver::start(backend, driver_options(store, "sqlite")))
            }
            StoreKind::MySql => {
                let backend = MySqlBackend::connect(&mysql_options(store)).await?;
                Arc::new(Driver::start(backend, driver_options(store, "mysql")))
            }
        };
        Ok(Self { running, clock, embedded: None })
    }

    pub(super) fn limit_store(&self) -> Arc<dyn LimitStore> {
        self.running.limit_store()
    }

    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    pub(super) fn stats(&self) -> DriverStats {
        self.running.stats()
    }

    /// The embedded engine, where the store is one.
    pub(super) fn embedded(&self) -> Option<&EmbeddedBackend> {
        self.embedded.as_ref().map(Lanes::backend)
    }

    pub(super) async fn shutdown(&self) {
        self.running.shutdown().await;
    }
}

/// Makes or upgrades the tables of a store that has some; says what was done.
///
/// # Errors
/// See [`StoreError`]; the tables are as they were.
pub async fn migrate(store: &Store) -> Result<String, StoreError> {
    match store.kind {
        StoreKind::Embedded | StoreKind::Memory | StoreKind::Redis => {
            return Ok("this store has no tables; there is nothing to migrate".to_owned());
        }
        StoreKind::Postgres => drop(postgres::migrate(&postgres_options(store)).await?),
        StoreKind::Sqlite => {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
            SqliteBackend::migrate(&sqlite_options(store, &clock)).await?;
        }
        StoreKind::MySql => MySqlBackend::migrate(&mysql_options(store)).await?,
    }
    Ok("the tables are there, and of this version".to_owned())
}

fn driver_options(store: &Store, name: &'static str) -> DriverOptions {
    DriverOptions {
        deadline: deadline(store),
        max_calls: usize::try_from(store.max_calls).unwrap_or(usize::MAX),
        secret: store.secret.clone(),
        ..DriverOptions::new(name, store.max_entries)
    }
}

fn postgres_options(store: &Store) -> postgres::Options {
    postgres::Options { secret_id: id(store), deadline: deadline(store), ..postgres::Options::at(url(store)) }
}

fn mysql_options(store: &Store) -> MySqlOptions {
    MySqlOptions { secret_id: id(store), deadline: deadline(store), ..MySqlOptions::at(url(store)) }
}

fn sqlite_options(store: &Store, clock: &Arc<dyn Clock>) -> SqliteOptions {
    SqliteOptions {
        secret_id: id(store),
        deadline: deadline(store),
        durability: match store.durability {
            Durability::Fsync => sql::Durability::Full,
            Durability::Process | Durability::None => sql::Durability::Normal,
        },
        clock: Arc::clone(clock),
        ..SqliteOptions::at(store.path.join("tidegate.sqlite"))
    }
}

/// The configuration has one wherever the kind needs it.
fn url(store: &Store) -> &str {
    store.url.as_ref().map_or("", Hidden::expose)
}

fn deadline(store: &Store) -> Duration {
    Duration::from_millis(store.deadline_ms)
}

fn id(store: &Store) -> Option<u64> {
    store.secret.as_ref().map(|secret| secret_id(secret.expose()))
}

fn open_embedded(store: &Store, clock: &Arc<dyn Clock>) -> Result<EmbeddedBackend, embedded::OpenError> {
    EmbeddedBackend::open(&embedded::Options {
        durability: match store.durability {
            Durability::Fsync => embedded::Durability::Fsync,
            Durability::Process => embedded::Durability::Process,
            Durability::None => embedded::Durability::None,
        },
        clock: Arc::clone(clock),
        secret_id: id(store),
        ..embedded::Options::at(&store.path)
    })
}

/// Tells the rows of one secret from those of another, without telling anything of the secret.
fn secret_id(secret: &str) -> u64 {
    let digest = Sha256::new().chain_update(b"tidegate store secret id\n").chain_update(secret).finalize();
    u64::from_le_bytes(digest.first_chunk().copied().unwrap_or_default())
}
