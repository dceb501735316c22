//! What an application writes without a limit store: a transaction or a script a call.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use redis::{AsyncConnectionConfig, Script, aio::MultiplexedConnection};
use tidegate_core::INTEGER_MAX;
use tidegate_store::Key;
use tokio::sync::Semaphore;
use tokio_postgres::{Client, Config, NoTls};

use super::{DEADLINE, counter::RULE};

/// A table of counters, and a pool of connections to it.
pub(super) struct PlainPostgres {
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

struct Connection {
    client: Client,
    select: tokio_postgres::Statement,
    upsert: tokio_postgres::Statement,
}

/// As many as a pool has by default on a machine with a few cores.
const CONNECTIONS: usize = 16;
const TABLE: &str = "CREATE TABLE IF NOT EXISTS plain (key bytea PRIMARY KEY, used bigint NOT NULL, \
                     ends_at_ms bigint NOT NULL) WITH (fillfactor = 80)";
const SELECT: &str = "SELECT used, ends_at_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM plain \
                      WHERE key = $1 FOR UPDATE";
const UPSERT: &str = "INSERT INTO plain (key, used, ends_at_ms) VALUES ($1, $2, $3) ON CONFLICT (key) DO UPDATE \
                      SET used = excluded.used, ends_at_ms = excluded.ends_at_ms";
const FILL: &str =
    "INSERT INTO plain SELECT key, 1, $2 FROM unnest($1::bytea[]) AS key ON CONFLICT DO NOTHING";
const FILL_ROWS: usize = 10_000;
/// An end that no run sees, for rows that are filled in.
const FAR_MS: i64 = 253_402_300_800_000;

impl PlainPostgres {
    /// Connects to the database at `url`, with or without waiting for the disk at each commit.
    pub(super) async fn connect(url: &str, flushes: bool) -> Result<Self> {
        let mut config: Config = url.parse().context("reading a URL")?;
        config.options(if flushes { "-c synchronous_commit=on" } else { "-c synchronous_commit=off" });
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            let (client, connection) = config.connect(NoTls).await.context("connecting to PostgreSQL")?;
            tokio::spawn(connection);
            client.batch_execute(TABLE).await.context("making a table")?;
            let select = client.prepare(SELECT).await.context("preparing a statement")?;
            let upsert = client.prepare(UPSERT).await.context("preparing a statement")?;
            idle.push(Connection { client, select, upsert });
        }
        Ok(Self { idle: Mutex::new(idle), permits: Semaphore::new(CONNECTIONS) })
    }

    /// One transaction, on a connection of the pool.
    pub(super) async fn count(&self, key: Key) -> Result<bool> {
        let _permit = self.permits.acquire().await.context("waiting for a connection")?;
        let mut connection = self.take()?;
        let counted = connection.count(key).await;
        self.put_back(connection);
        counted
    }

    fn take(&self) -> Result<Connection> {
        let taken = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        taken.context("there are as many connections as permits")
    }

    fn put_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    pub(super) async fn fill(&self, keys: &[Key]) -> Result<()> {
        let _permit = self.permits.acquire().await.context("waiting for a connection")?;
        let connection = self.take()?;
        for rows in keys.chunks(FILL_ROWS) {
            let rows: Vec<&[u8]> = rows.iter().map(|key| key.as_bytes().as_slice()).collect();
            connection.client.execute(FILL, &[&rows, &FAR_MS]).await.context("filling a table")?;
        }
        self.put_back(connection);
        Ok(())
    }
}

impl Connection {
    async fn count(&mut self, key: Key) -> Result<bool> {
        let key = key.as_bytes().as_slice();
        let transaction = self.client.transaction().await.context("beginning a transaction")?;
        let row = transaction.query_opt(&self.select, &[&key]).await.context("locking a row")?;
        let (mut used, mut ends_at_ms) = (0_i64, FAR_MS);
        if let Some(row) = row {
            let now_ms: i64 = row.get(2);
            if row.get::<_, i64>(1) > now_ms {
                (used, ends_at_ms) = (row.get(0), row.get(1));
            }
        }
        let allowed = used < i64::try_from(INTEGER_MAX).unwrap_or(i64::MAX);
        if allowed {
            let written = transaction.execute(&self.upsert, &[&key, &(used + 1), &ends_at_ms]).await;
            written.context("writing a row")?;
        }
        transaction.commit().await.context("committing")?;
        Ok(allowed)
    }
}

/// Counters in Redis, by a script on one connection that all callers share.
#[derive(Clone)]
pub(super) struct PlainRedis {
    connection: MultiplexedConnection,
    script: Arc<Script>,
}

const SCRIPT: &str = r#"
local used = tonumber(redis.call("GET", KEYS[1]) or 0)
if used + 1 > tonumber(ARGV[1]) then return -1 end
used = redis.call("INCR", KEYS[1])
if used == 1 then redis.call("PEXPIRE", KEYS[1], ARGV[2]) end
return used
"#;

impl PlainRedis {
    pub(super) async fn connect(url: &str) -> Result<Self> {
        let client = redis::Client::open(url).context("reading a URL")?;
        let patience = AsyncConnectionConfig::new().set_response_timeout(Some(DEADLINE));
        let connection = client.get_multiplexed_async_connection_with_config(&patience).await;
        Ok(Self {
            connection: connection.context("connecting to Redis")?,
            script: Script::new(SCRIPT).into(),
        })
    }

    /// One EVALSHA.
    pub(super) async fn count(&self, key: Key) -> Result<bool> {
        let mut call = self.script.key(key.as_bytes().as_slice());
        let used: i64 = call
            .arg(RULE.limit)
            .arg(RULE.period_ms)
            .invoke_async(&mut self.connection.clone())
            .await
            .context("running a script")?;
        Ok(used > 0)
    }

    pub(super) async fn fill(&self, keys: &[Key]) -> Result<()> {
        for rows in keys.chunks(FILL_ROWS) {
            let mut pipe = redis::pipe();
            for key in rows {
                pipe.cmd("SET").arg(key.as_bytes().as_slice()).arg(1).arg("PX").arg(RULE.period_ms).ignore();
            }
            pipe.query_async::<()>(&mut self.connection.clone()).await.context("filling Redis")?;
        }
        Ok(())
    }
}
