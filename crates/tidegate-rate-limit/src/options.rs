//! Which store, where, and its bounds.

#[cfg(any(feature = "embedded", feature = "sql"))]
use std::sync::Arc;
use std::{fmt, path::PathBuf, time::Duration};

use tidegate_core::secret::Secret;
use tidegate_store::DriverOptions;
#[cfg(any(feature = "embedded", feature = "sql"))]
use tidegate_store::clock::Clock;
#[cfg(feature = "embedded")]
use tidegate_store_embedded as embedded;
#[cfg(feature = "postgres")]
use tidegate_store_postgres as postgres;
#[cfg(feature = "redis")]
use tidegate_store_redis as redis;
#[cfg(feature = "sql")]
use tidegate_store_sql::{self as sql, MySqlOptions, SqliteOptions};
use zeroize::Zeroizing;

/// Which store, where, and its bounds.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Which.
    pub kind: StoreKind,
    /// The directory of the embedded store, and of SQLite's file `tidegate.sqlite`.
    pub path: PathBuf,
    /// The server of PostgreSQL, Redis and MySQL, which can't do without.
    pub url: Option<Url>,
    /// What an acknowledgement of the embedded store and of SQLite means.
    pub durability: Durability,
    /// The most live entries.
    pub max_entries: u64,
    /// Every call is answered within this time.
    pub deadline: Duration,
    /// Calls past their deadline that may still run in the store before new ones are refused.
    pub max_calls: usize,
    /// Hashes the names of entries.
    pub secret: Option<Secret>,
}

/// The stores that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// The memory of this process.
    Memory,
    /// A log in a directory, for one process.
    Embedded,
    /// PostgreSQL.
    Postgres,
    /// Redis or Valkey.
    Redis,
    /// A SQLite file.
    Sqlite,
    /// MySQL or MariaDB.
    MySql,
}

/// What an acknowledgement means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// On the disk.
    #[default]
    Fsync,
    /// Survives a killed process, not a power loss.
    Process,
    /// In memory.
    None,
}

/// The URL of a server, which may hold a password: never printed, wiped when dropped.
#[derive(Clone)]
pub struct Url(Zeroizing<String>);

impl StoreOptions {
    /// A store of this kind with the defaults of everything else.
    #[must_use]
    pub fn of(kind: StoreKind) -> Self {
        let max_entries = match kind {
            StoreKind::Memory => DriverOptions::MEMORY_ENTRIES,
            _ => DriverOptions::DURABLE_ENTRIES,
        };
        let DriverOptions { deadline, max_calls, .. } = DriverOptions::new("", max_entries);
        Self {
            kind,
            path: PathBuf::from("./rate-limit-data"),
            url: None,
            durability: Durability::default(),
            max_entries,
            deadline,
            max_calls,
            secret: None,
        }
    }

    #[cfg(any(feature = "postgres", feature = "redis", feature = "sql"))]
    fn url(&self) -> &str {
        self.url.as_ref().map_or("", Url::expose)
    }

    #[cfg(any(feature = "embedded", feature = "postgres", feature = "redis", feature = "sql"))]
    fn secret_id(&self) -> Option<u64> {
        self.secret.as_ref().map(|secret| secret_id(secret.expose()))
    }

    pub(crate) fn driver(&self, name: &'static str) -> DriverOptions {
        DriverOptions {
            deadline: self.deadline,
            max_calls: self.max_calls,
            secret: self.secret.clone(),
            ..DriverOptions::new(name, self.max_entries)
        }
    }

    #[cfg(feature = "embedded")]
    pub(crate) fn embedded(&self, clock: &Arc<dyn Clock>) -> embedded::Options {
        embedded::Options {
            durability: match self.durability {
                Durability::Fsync => embedded::Durability::Fsync,
                Durability::Process => embedded::Durability::Process,
                Durability::None => embedded::Durability::None,
            },
            clock: Arc::clone(clock),
            secret_id: self.secret_id(),
            ..embedded::Options::at(&self.path)
        }
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn postgres(&self) -> postgres::Options {
        postgres::Options {
            secret_id: self.secret_id(),
            deadline: self.deadline,
            ..postgres::Options::at(self.url())
        }
    }

    #[cfg(feature = "redis")]
    pub(crate) fn redis(&self) -> Result<redis::Options, redis::UrlError> {
        Ok(redis::Options {
            secret_id: self.secret_id(),
            deadline: self.deadline,
            ..redis::Options::at(self.url().parse()?)
        })
    }

    #[cfg(feature = "sql")]
    pub(crate) fn mysql(&self) -> MySqlOptions {
        MySqlOptions { secret_id: self.secret_id(), deadline: self.deadline, ..MySqlOptions::at(self.url()) }
    }

    #[cfg(feature = "sql")]
    pub(crate) fn sqlite(&self, clock: &Arc<dyn Clock>) -> SqliteOptions {
        SqliteOptions {
            secret_id: self.secret_id(),
            deadline: self.deadline,
            durability: match self.durability {
                Durability::Fsync => sql::Durability::Full,
                Durability::Process | Durability::None => sql::Durability::Normal,
            },
            clock: Arc::clone(clock),
            ..SqliteOptions::at(self.path.join("tidegate.sqlite"))
        }
    }
}

/// Tells the rows of one secret from those of another, without telling anything of the secret.
#[cfg(any(feature = "embedded", feature = "postgres", feature = "redis", feature = "sql"))]
fn secret_id(secret: &str) -> u64 {
    use sha2::{Digest, Sha256};

    let digest = Sha256::new().chain_update(b"tidegate store secret id\n").chain_update(secret).finalize();
    u64::from_le_bytes(digest.first_chunk().copied().unwrap_or_default())
}

impl Url {
    /// The URL itself. It must not reach a log or an answer.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Url {
    fn from(url: T) -> Self {
        Self(Zeroizing::new(url.into()))
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Url(…)")
    }
}
