//! The servers that a run needs, each started when it is first asked for.

use anyhow::{Context, Result};
use tidegate_rate_limit::{OpenStore, StoreKind, StoreOptions, migrate};
use tidegate_test_servers::{MariaDb, PostgresServer, PostgresSetup, RedisServer};

use super::{DEADLINE, ENTRIES_MAX};

#[derive(Debug, Default)]
pub(super) struct Servers {
    postgres: Option<PostgresServer>,
    mariadb: Option<(MariaDb, String)>,
    redis: Option<RedisServer>,
}

impl Servers {
    /// PostgreSQL as it comes, flushing what it commits.
    pub(super) fn postgres(&mut self) -> Result<&PostgresServer> {
        started(&mut self.postgres, || {
            PostgresServer::start_with(&PostgresSetup { fsync: true, ..PostgresSetup::default() })
        })
    }

    /// MariaDB with room for all rows in its buffer pool, and the URL of a database in it.
    pub(super) fn mariadb(&mut self) -> Result<&(MariaDb, String)> {
        started(&mut self.mariadb, || {
            let server =
                MariaDb::start_with(&["--innodb-buffer-pool-size=512M", "--innodb-log-file-size=256M"])?;
            let url = server.fresh_database()?;
            Ok((server, url))
        })
    }

    /// Redis with a log.
    pub(super) fn redis(&mut self) -> Result<&RedisServer> {
        started(&mut self.redis, || RedisServer::start(&["--save", "", "--appendfsync", "everysec"]))
    }

    /// Tells Redis when to flush its log.
    pub(super) fn redis_flushes(&self, when: &str) -> Result<()> {
        let server = self.redis.as_ref().context("Redis was started")?;
        server.ask(&format!("CONFIG SET appendfsync {when}")).map(drop)
    }
}

fn started<T>(server: &mut Option<T>, start: impl FnOnce() -> Result<T>) -> Result<&T> {
    if server.is_none() {
        *server = Some(start()?);
    }
    server.as_ref().context("started just above")
}

/// How a store is opened for a run.
pub(super) fn options(kind: StoreKind) -> StoreOptions {
    StoreOptions { max_entries: ENTRIES_MAX, deadline: DEADLINE, ..StoreOptions::of(kind) }
}

/// A store on the server at `url`.
pub(super) async fn open_at(kind: StoreKind, url: String) -> Result<OpenStore> {
    open(StoreOptions { url: Some(url.into()), ..options(kind) }).await
}

pub(super) async fn open(options: StoreOptions) -> Result<OpenStore> {
    migrate(&options).await.with_context(|| format!("making the tables of {:?}", options.kind))?;
    OpenStore::open(&options).await.with_context(|| format!("opening {:?}", options.kind))
}
