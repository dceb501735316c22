//! What takes turns: each store, and what it is measured beside.

use std::{fmt, path::Path, sync::Arc};

use anyhow::{Context, Result};
use tidegate_rate_limit::{Durability, OpenStore, StoreKind, StoreOptions};

use super::{
    counter::Counter,
    plain::{PlainPostgres, PlainRedis},
    servers::{self, Servers},
};

/// A way to keep counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    Memory,
    EmbeddedProcess,
    EmbeddedFsync,
    Sqlite,
    Postgres(Commit),
    PlainPostgres(Commit),
    MariaDb,
    Redis(Log),
    PlainRedis(Log),
}

/// PostgreSQL's `synchronous_commit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Commit {
    On,
    Off,
}

/// Redis's `appendfsync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Log {
    Everysec,
    Always,
}

/// In the order of their turns: what is compared stands side by side.
pub(super) const SYSTEMS: [System; 13] = [
    System::Memory,
    System::EmbeddedProcess,
    System::EmbeddedFsync,
    System::Sqlite,
    System::MariaDb,
    System::Postgres(Commit::On),
    System::PlainPostgres(Commit::On),
    System::Postgres(Commit::Off),
    System::PlainPostgres(Commit::Off),
    System::Redis(Log::Everysec),
    System::PlainRedis(Log::Everysec),
    System::Redis(Log::Always),
    System::PlainRedis(Log::Always),
];

impl System {
    /// What an application would write on the same server.
    pub(super) const fn plain(self) -> Option<Self> {
        match self {
            Self::Postgres(commit) => Some(Self::PlainPostgres(commit)),
            Self::Redis(log) => Some(Self::PlainRedis(log)),
            _ => None,
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::EmbeddedProcess => f.write_str("embedded, `process`"),
            Self::EmbeddedFsync => f.write_str("embedded, `fsync`"),
            Self::Sqlite => f.write_str("SQLite, `fsync`"),
            Self::MariaDb => f.write_str("MariaDB"),
            Self::Postgres(commit) => write!(f, "PostgreSQL, synchronous_commit {commit}"),
            Self::PlainPostgres(commit) => write!(f, "a transaction a call on PostgreSQL, {commit}"),
            Self::Redis(log) => write!(f, "Redis `{log}`"),
            Self::PlainRedis(log) => write!(f, "an EVALSHA a call on Redis `{log}`"),
        }
    }
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::On { "on" } else { "off" })
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Always { "always" } else { "everysec" })
    }
}

/// A system that is up.
pub(super) struct Contender {
    pub(super) system: System,
    pub(super) counter: Counter,
    /// The process of its server, where it has one.
    pub(super) server: Option<u32>,
    store: Option<OpenStore>,
}

impl Contender {
    /// Starts what `system` needs; its files lie in `folder`.
    pub(super) async fn start(system: System, servers: &mut Servers, folder: &Path) -> Result<Self> {
        let in_folder = |kind, name: &str, durability| StoreOptions {
            path: folder.join(name),
            durability,
            ..servers::options(kind)
        };
        let (options, server) = match system {
            System::Memory => (servers::options(StoreKind::Memory), None),
            System::EmbeddedProcess => (in_folder(StoreKind::Embedded, "process", Durability::Process), None),
            System::EmbeddedFsync => (in_folder(StoreKind::Embedded, "fsync", Durability::Fsync), None),
            System::Sqlite => (in_folder(StoreKind::Sqlite, "", Durability::Fsync), None),
            System::Postgres(commit) => {
                let server = servers.postgres()?;
                let url = format!("{}?options=-c%20synchronous_commit%3D{commit}", server.url());
                (at(StoreKind::Postgres, url), Some(server.process_id()))
            }
            System::MariaDb => {
                let (server, url) = servers.mariadb()?;
                (at(StoreKind::MySql, url.clone()), Some(server.process_id()))
            }
            System::Redis(_) => {
                let server = servers.redis()?;
                (at(StoreKind::Redis, server.url()), Some(server.process_id()))
            }
            System::PlainPostgres(commit) => {
                let server = servers.postgres()?;
                let plain = PlainPostgres::connect(&server.url(), commit == Commit::On).await?;
                let counter = Counter::PlainPostgres(Arc::new(plain));
                return Ok(Self { system, counter, server: Some(server.process_id()), store: None });
            }
            System::PlainRedis(_) => {
                let server = servers.redis()?;
                let counter = Counter::PlainRedis(PlainRedis::connect(&server.url()).await?);
                return Ok(Self { system, counter, server: Some(server.process_id()), store: None });
            }
        };
        let store = servers::open(options).await?;
        Ok(Self { system, counter: Counter::Store(store.limit_store()), server, store: Some(store) })
    }

    /// Makes its server what the system says, before its turn.
    pub(super) fn prepare(&self, servers: &Servers) -> Result<()> {
        match self.system {
            System::Redis(log) | System::PlainRedis(log) => {
                servers.redis_flushes(&log.to_string()).context("telling Redis when to flush")
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn stop(self) {
        if let Some(store) = self.store {
            store.shutdown().await;
        }
    }
}

fn at(kind: StoreKind, url: String) -> StoreOptions {
    StoreOptions { url: Some(url.into()), ..servers::options(kind) }
}
