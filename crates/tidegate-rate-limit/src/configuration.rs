//! What `rate_limit.*` says.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use serde::{Deserialize, Deserializer, de::Error as _};
use thiserror::Error;
use tidegate_core::secret::Secret;
use tracing::warn;

use crate::{Durability, OpenError, OpenStore, StoreKind, StoreOptions, Url, migrate};

/// The section `rate_limit` of an application's configuration. Any format that serde reads will do; unknown
/// keys are refused. From the environment: [`Configuration::from_variables`].
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Configuration {
    /// `memory` (the default), `embedded`, `sqlite`, `postgres`, `mysql`, `redis`; or `database`: the one whose
    /// URL begins so.
    pub store: StoreName,
    /// That no other instance counts with this one: memory loses nothing then but at a restart.
    pub single_instance: bool,
    /// The most live entries; without it 100 000 in memory and 1 000 000 elsewhere.
    pub max_entries: Option<u64>,
    /// The server: `postgres://…`, `mysql://…`, `redis://…`.
    #[serde(deserialize_with = "url")]
    pub url: Option<Url>,
    /// The directory of `embedded` and `sqlite`.
    pub path: PathBuf,
    /// What an acknowledgement of `embedded` and `sqlite` means: `fsync` (the default), `process` or `none`.
    pub durability: Durability,
    /// Every call is answered within so many ms.
    pub deadline_ms: u64,
    /// Hashes the names of entries, 32 characters or more; a change starts every count afresh.
    #[serde(deserialize_with = "secret")]
    pub secret: Option<Secret>,
}

/// How a store is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreName {
    /// The memory of this process.
    #[default]
    Memory,
    /// A log in a directory, for one process.
    Embedded,
    /// A SQLite file.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MySQL or MariaDB.
    MySql,
    /// Redis or Valkey.
    Redis,
    /// PostgreSQL or MySQL, as the URL says.
    Database,
}

/// What is wrong with a configuration. Values are not in it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigurationError {
    /// There is no such key.
    #[error("rate_limit.{key} is not known; there are {}", KEYS.join(", "))]
    UnknownKey {
        /// Its name.
        key: String,
    },
    /// A value is not one of the key's.
    #[error("rate_limit.{key} {problem}")]
    Value {
        /// The key.
        key: &'static str,
        /// What it must be.
        problem: String,
    },
}

/// Why a configuration could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfiguredOpenError {
    /// It contradicts itself.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The store does not open.
    #[error("opening the store of rate_limit.store")]
    Open(#[from] OpenError),
}

impl std::str::FromStr for StoreName {
    type Err = ConfigurationError;

    fn from_str(text: &str) -> Result<Self, ConfigurationError> {
        let problem = format!("must be {STORES}");
        word(text).ok_or(ConfigurationError::Value { key: "store", problem })
    }
}

/// What variables of the environment begin with.
const PREFIX: &str = "TIDEGATE_RATE_LIMIT__";
const KEYS: [&str; 8] =
    ["store", "single_instance", "max_entries", "url", "path", "durability", "deadline_ms", "secret"];
/// Where a store keeps fewer, a bound that is hit is more likely a slip than a wish.
const ENTRIES: std::ops::RangeInclusive<u64> = 1_000..=4_000_000_000;
const DEADLINE_MS: std::ops::RangeInclusive<u64> = 10..=60_000;

impl Default for Configuration {
    fn default() -> Self {
        let StoreOptions { path, durability, deadline, .. } = StoreOptions::of(StoreKind::Memory);
        Self {
            store: StoreName::default(),
            single_instance: false,
            max_entries: None,
            url: None,
            path,
            durability,
            deadline_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
            secret: None,
        }
    }
}

impl Configuration {
    /// What the variables `TIDEGATE_RATE_LIMIT__STORE`, `…__SINGLE_INSTANCE` and so on say, of all that
    /// `variables` are: `Configuration::from_variables(std::env::vars_os())`.
    ///
    /// # Errors
    /// The first that is not known, or has a value that its key can't have.
    pub fn from_variables(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigurationError> {
        let mut configuration = Self::default();
        for (name, value) in variables {
            if let Some(key) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) {
                let key = key.to_ascii_lowercase();
                let known = KEYS.into_iter().find(|known| *known == key);
                let known = known.ok_or(ConfigurationError::UnknownKey { key })?;
                configuration.set(known, value)?;
            }
        }
        Ok(configuration)
    }

    fn set(&mut self, key: &'static str, value: OsString) -> Result<(), ConfigurationError> {
        let fault = |problem: String| ConfigurationError::Value { key, problem };
        if key == "path" {
            self.path = value.into();
            return Ok(());
        }
        let value = value.into_string().map_err(|_| fault("is not UTF-8".to_owned()))?;
        let number = || value.parse().map_err(|_| fault("must be a whole number".to_owned()));
        match key {
            "store" => self.store = value.parse()?,
            "single_instance" => {
                self.single_instance =
                    value.parse().map_err(|_| fault("must be true or false".to_owned()))?;
            }
            "max_entries" => self.max_entries = Some(number()?),
            "deadline_ms" => self.deadline_ms = number()?,
            "durability" => {
                self.durability =
                    word(&value).ok_or_else(|| fault("must be fsync, process or none".to_owned()))?;
            }
            "secret" => self.secret = Some(Secret::new(value).map_err(|error| fault(error.to_string()))?),
            _ => self.url = Some(value.into()),
        }
        Ok(())
    }

    /// The store that it names.
    ///
    /// # Errors
    /// A URL is missing, superfluous or of another store, or a number is out of its bounds.
    pub fn store_options(&self) -> Result<StoreOptions, ConfigurationError> {
        let kind = self.kind()?;
        let bounded = |key, value: u64, bounds: std::ops::RangeInclusive<u64>| {
            let problem = format!("must be from {} to {}", bounds.start(), bounds.end());
            if bounds.contains(&value) { Ok(value) } else { Err(ConfigurationError::Value { key, problem }) }
        };
        let defaults = StoreOptions::of(kind);
        Ok(StoreOptions {
            path: self.path.clone(),
            url: self.url.clone(),
            durability: self.durability,
            max_entries: bounded("max_entries", self.max_entries.unwrap_or(defaults.max_entries), ENTRIES)?,
            deadline: Duration::from_millis(bounded("deadline_ms", self.deadline_ms, DEADLINE_MS)?),
            secret: self.secret.clone(),
            ..defaults
        })
    }

    /// Opens the store on the present tokio runtime, after making or upgrading its tables where it has some
    /// ([`migrate`]). Memory without `single_instance` logs one warning, which says what is lost.
    ///
    /// # Errors
    /// The configuration contradicts itself, or the store does not open.
    pub async fn open(&self) -> Result<OpenStore, ConfiguredOpenError> {
        let options = self.store_options()?;
        if options.kind == StoreKind::Memory && !self.single_instance {
            warn!(kind = "limit-store-single-instance", store = "memory", "{LOST}");
        }
        migrate(&options).await?;
        Ok(OpenStore::open(&options).await?)
    }

    fn kind(&self) -> Result<StoreKind, ConfigurationError> {
        let fault = |problem: String| Err(ConfigurationError::Value { key: "url", problem });
        let scheme = self.url.as_ref().map(|url| url.expose().split([':', '+']).next().unwrap_or_default());
        let (kind, schemes): (_, &[&str]) = match self.store {
            StoreName::Memory => (StoreKind::Memory, &[]),
            StoreName::Embedded => (StoreKind::Embedded, &[]),
            StoreName::Sqlite => (StoreKind::Sqlite, &[]),
            StoreName::Postgres => (StoreKind::Postgres, POSTGRES),
            StoreName::MySql => (StoreKind::MySql, MYSQL),
            StoreName::Redis => (StoreKind::Redis, REDIS),
            StoreName::Database if scheme.is_some_and(|scheme| MYSQL.contains(&scheme)) => {
                (StoreKind::MySql, MYSQL)
            }
            StoreName::Database if scheme.is_some_and(|scheme| POSTGRES.contains(&scheme)) => {
                (StoreKind::Postgres, POSTGRES)
            }
            StoreName::Database => return fault("must begin with postgres:// or mysql://".to_owned()),
        };
        match scheme {
            None if schemes.is_empty() => Ok(kind),
            Some(scheme) if schemes.contains(&scheme) => Ok(kind),
            Some(_) if schemes.is_empty() => fault("has no meaning with this store".to_owned()),
            _ => fault(format!("must begin with {}://", schemes.join(":// or "))),
        }
    }
}

const POSTGRES: &[&str] = &["postgres", "postgresql"];
const MYSQL: &[&str] = &["mysql", "mariadb"];
const REDIS: &[&str] = &["redis", "rediss", "valkey", "valkeys"];
const STORES: &str = "memory, embedded, sqlite, postgres, mysql, redis or database";
const LOST: &str = "limits count in the memory of this process alone: with several instances each counts for itself, \
                    so that a limit of 5 lets 5 through on each of them, and a restart forgets every count. \
                    rate_limit.store names a store that they share; rate_limit.single_instance = true says that \
                    there is one instance";

/// A word as serde reads it in any format.
fn word<'a, T: Deserialize<'a>>(value: &'a str) -> Option<T> {
    T::deserialize(serde::de::value::BorrowedStrDeserializer::<serde::de::value::Error>::new(value)).ok()
}

fn url<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Url>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.map(Url::from))
}

fn secret<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Secret>, D::Error> {
    Option::<String>::deserialize(from)?.map(Secret::new).transpose().map_err(D::Error::custom)
}

#[cfg(test)]
mod tests;
