//! A store by name. Nothing else in a program needs to know which store it is.

#[cfg(feature = "embedded")]
use std::time::Duration;
use std::{fmt, sync::Arc};

use thiserror::Error;
#[cfg(feature = "embedded")]
use tidegate_store::DriverOptions;
use tidegate_store::{
    Backend, BoxFuture, Driver, DriverStats, Lanes, LimitStore, MemoryBackend,
    clock::{Clock, SystemClock},
};
#[cfg(feature = "embedded")]
use tidegate_store_embedded::{self as embedded, EmbeddedBackend};
#[cfg(feature = "postgres")]
use tidegate_store_postgres::{self as postgres, PostgresBackend};
#[cfg(feature = "redis")]
use tidegate_store_redis::{self as redis, RedisBackend};
#[cfg(feature = "sql")]
use tidegate_store_sql::{self as sql, MySqlBackend, SqliteBackend};
use tokio::runtime::Handle;

use crate::{StoreKind, StoreOptions, late::Late};

/// Why a store can't be opened, or its tables not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The embedded one.
    #[cfg(feature = "embedded")]
    #[error(transparent)]
    Embedded(#[from] embedded::OpenError),
    /// PostgreSQL.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] postgres::OpenError),
    /// Redis or Valkey.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] redis::OpenError),
    /// The URL of Redis or Valkey.
    #[cfg(feature = "redis")]
    #[error("reading the store's URL")]
    RedisUrl(#[from] redis::UrlError),
    /// SQLite, MySQL or MariaDB.
    #[cfg(feature = "sql")]
    #[error(transparent)]
    Sql(#[from] sql::OpenError),
    /// The program was built without it.
    #[error("this program was built without the {store:?} store: tidegate-rate-limit has a feature for it")]
    NotBuilt {
        /// Which.
        store: StoreKind,
    },
}

impl OpenError {
    /// Whether opening it again may succeed with the options as they are: the store is away, damaged, or of another
    /// version. False where they can't be followed, or another process has it.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        match self {
            #[cfg(feature = "embedded")]
            Self::Embedded(embedded::OpenError::InUse { .. } | embedded::OpenError::Option { .. }) => false,
            #[cfg(feature = "redis")]
            Self::RedisUrl(_) => false,
            Self::NotBuilt { .. } => false,
            #[cfg(any(feature = "embedded", feature = "postgres", feature = "redis", feature = "sql"))]
            _ => true,
        }
    }

    /// Whether another process has it open.
    #[must_use]
    pub const fn is_in_use(&self) -> bool {
        match self {
            #[cfg(feature = "embedded")]
            Self::Embedded(embedded::OpenError::InUse { .. }) => true,
            _ => false,
        }
    }
}

/// An open store, whichever it is. Clones are handles on the same one.
#[derive(Clone)]
pub struct OpenStore {
    running: Arc<dyn Running>,
    clock: Arc<dyn Clock>,
    /// The same, where it is the embedded one.
    #[cfg(feature = "embedded")]
    embedded: Option<Lanes<EmbeddedBackend>>,
}

/// A store that is yet to be opened, and handles on it that are there already. Clones are of the same one.
#[derive(Clone)]
pub struct Opening {
    late: Late,
    store: OpenStore,
}

/// What all stores have in common.
pub(crate) trait Running: Send + Sync {
    fn limit_store(&self) -> Arc<dyn LimitStore>;
    fn stats(&self) -> DriverStats;
    /// The store behind this one, once it is open.
    fn opened(&self) -> Option<&OpenStore> {
        None
    }
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

/// The embedded engine frees expired rows at the cost of those rows alone, so it is asked often.
#[cfg(feature = "embedded")]
const EMBEDDED_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

impl OpenStore {
    /// Opens the store on the present tokio runtime, whose timer must be enabled.
    ///
    /// # Errors
    /// See [`OpenError`]; nothing is left running.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn open(options: &StoreOptions) -> Result<Self, OpenError> {
        Self::open_on(options, &[Handle::current()]).await
    }

    /// [`OpenStore::open`] with a driver on each of `runtimes`, where the store is in this process; see
    /// [`tidegate_store::lanes`]. One that is elsewhere has one driver, on the present runtime.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub async fn open_on(options: &StoreOptions, runtimes: &[Handle]) -> Result<Self, OpenError> {
        Self::open_by(Arc::new(SystemClock::new()), options, runtimes).await
    }

    /// A store that is opened later. Until then every call of its handles is answered
    /// [`tidegate_store::Unavailable::NotOpen`].
    #[must_use]
    pub fn unopened() -> Opening {
        let late = Late::default();
        let store = Self {
            running: Arc::new(late.clone()),
            clock: Arc::new(SystemClock::new()),
            #[cfg(feature = "embedded")]
            embedded: None,
        };
        Opening { late, store }
    }

    async fn open_by(
        clock: Arc<dyn Clock>,
        options: &StoreOptions,
        runtimes: &[Handle],
    ) -> Result<Self, OpenError> {
        let running: Arc<dyn Running> = match options.kind {
            StoreKind::Memory => {
                let backend = MemoryBackend::new(Arc::clone(&clock));
                Arc::new(Lanes::start(backend, &options.driver("memory"), runtimes))
            }
            #[cfg(feature = "embedded")]
            StoreKind::Embedded => {
                let driver =
                    DriverOptions { sweep_interval: EMBEDDED_SWEEP_INTERVAL, ..options.driver("embedded") };
                let backend = EmbeddedBackend::open(&options.embedded(&clock))?;
                let lanes = Lanes::start(backend, &driver, runtimes);
                return Ok(Self { running: Arc::new(lanes.clone()), clock, embedded: Some(lanes) });
            }
            #[cfg(feature = "postgres")]
            StoreKind::Postgres => {
                let backend = PostgresBackend::connect(&options.postgres()).await?;
                Arc::new(Driver::start(backend, options.driver("postgres")))
            }
            #[cfg(feature = "redis")]
            StoreKind::Redis => {
                let backend = RedisBackend::connect(&options.redis()?).await?;
                Arc::new(Driver::start(backend, options.driver("redis")))
            }
            #[cfg(feature = "sql")]
            StoreKind::Sqlite => {
                let backend = SqliteBackend::connect(&options.sqlite(&clock)).await?;
                Arc::new(Driver::start(backend, options.driver("sqlite")))
            }
            #[cfg(feature = "sql")]
            StoreKind::MySql => {
                let backend = MySqlBackend::connect(&options.mysql()).await?;
                Arc::new(Driver::start(backend, options.driver("mysql")))
            }
            #[cfg(not(all(feature = "embedded", feature = "postgres", feature = "redis", feature = "sql")))]
            store => return Err(OpenError::NotBuilt { store }),
        };
        Ok(Self {
            running,
            clock,
            #[cfg(feature = "embedded")]
            embedded: None,
        })
    }

    /// The store, to count in.
    #[must_use]
    pub fn limit_store(&self) -> Arc<dyn LimitStore> {
        self.running.limit_store()
    }

    /// The clock of this process, which a store in this process goes by.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// What has been done so far.
    #[must_use]
    pub fn stats(&self) -> DriverStats {
        self.running.stats()
    }

    /// The embedded engine, where the store is one.
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn embedded(&self) -> Option<&EmbeddedBackend> {
        let behind = || self.running.opened().and_then(Self::embedded);
        self.embedded.as_ref().map(Lanes::backend).or_else(behind)
    }

    /// Takes no more calls, works off those it took, and stops. Every handle on the store is shut then.
    pub async fn shutdown(&self) {
        self.running.shutdown().await;
    }
}

impl Opening {
    /// The store, open or not.
    #[must_use]
    pub const fn store(&self) -> &OpenStore {
        &self.store
    }

    /// Opens it; see [`OpenStore::open_on`]. Once that has succeeded it must not be called again.
    ///
    /// # Errors
    /// As there. It may be tried again.
    ///
    /// # Panics
    /// As there.
    pub async fn open_on(&self, options: &StoreOptions, runtimes: &[Handle]) -> Result<(), OpenError> {
        let open = OpenStore::open_by(self.store.clock(), options, runtimes).await?;
        self.late.fill(open);
        Ok(())
    }
}

/// Makes or upgrades the tables of a store that has some, and says whether it has. Forward only and under a
/// lock, so every instance may do it at its start.
///
/// # Errors
/// See [`OpenError`]; the tables are as they were.
pub async fn migrate(options: &StoreOptions) -> Result<bool, OpenError> {
    Ok(match options.kind {
        StoreKind::Memory | StoreKind::Embedded | StoreKind::Redis => false,
        #[cfg(feature = "postgres")]
        StoreKind::Postgres => postgres::migrate(&options.postgres()).await.map(|_| true)?,
        #[cfg(feature = "sql")]
        StoreKind::Sqlite => {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
            SqliteBackend::migrate(&options.sqlite(&clock)).await.map(|()| true)?
        }
        #[cfg(feature = "sql")]
        StoreKind::MySql => MySqlBackend::migrate(&options.mysql()).await.map(|()| true)?,
        #[cfg(not(all(feature = "postgres", feature = "sql")))]
        store => return Err(OpenError::NotBuilt { store }),
    })
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").field("is_open", &self.late.opened().is_some()).finish()
    }
}

impl fmt::Debug for OpenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenStore").finish_non_exhaustive()
    }
}
