//! The tables: made and changed by `migrate`, step by step, and never touched by anything else.

use std::time::Duration;

use tokio_postgres::{Client, error::SqlState};

use crate::{
    OpenError, Options,
    connection::{Limits, Session},
    error::Failure,
};

/// The version of the tables that this program works with.
pub const SCHEMA_VERSION: u32 = 1;

/// The steps, the n-th of which leads to version n. One that was released is never changed.
const STEPS: [&str; SCHEMA_VERSION as usize] = [include_str!("migrations/1.sql")];

/// What a migration did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; 0: there was nothing.
    pub from: u32,
    /// The version now.
    pub to: u32,
}

/// How long a migration waits for another one, and for whoever uses a table that it has to change.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// A migration may rewrite a table.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// Brings the tables to [`SCHEMA_VERSION`], all of it or nothing, and counts the rows anew: after somebody
/// has deleted rows by hand, say. Harmless when it is run again, or by several at once, or while instances
/// work. The role needs the right to create a schema in the database, or to create in the one that is there.
///
/// # Errors
/// The server can't be reached or refuses, or the tables are those of a later program. Nothing was changed.
pub async fn migrate(options: &Options) -> Result<Migrated, OpenError> {
    let session = open(options).await?;
    let migrated = tokio::time::timeout(PATIENCE, migrate_on(&session.client, &options.schema)).await;
    let failed = |failure: Failure| failure.opening("migrating the database");
    let found = migrated.map_err(|_| failed(Failure::Late(PATIENCE)))?.map_err(failed)?;
    refuse_newer(found)?;
    Ok(Migrated { from: found, to: SCHEMA_VERSION })
}

/// Checks that the tables are those that this program works with.
pub(crate) async fn check(options: &Options) -> Result<(), OpenError> {
    let session = open(options).await?;
    let limit = Limits::of(options.deadline).client;
    let found = tokio::time::timeout(limit, version(&session.client, &options.schema)).await;
    let failed = |failure: Failure| failure.opening("reading the version of the tables");
    match found.map_err(|_| failed(Failure::Late(limit)))?.map_err(failed)? {
        0 => Err(OpenError::SchemaMissing { schema: options.schema.clone() }),
        found if found < SCHEMA_VERSION => Err(OpenError::SchemaTooOld { found, needed: SCHEMA_VERSION }),
        found => refuse_newer(found),
    }
}

fn refuse_newer(found: u32) -> Result<(), OpenError> {
    if found > SCHEMA_VERSION {
        return Err(OpenError::SchemaTooNew { found, needed: SCHEMA_VERSION });
    }
    Ok(())
}

async fn open(options: &Options) -> Result<Session, OpenError> {
    options.check_schema()?;
    let target = options.url.target()?;
    let limit = Limits::of(options.deadline).client;
    let session = tokio::time::timeout(limit, Session::open(&target)).await;
    session
        .unwrap_or(Err(Failure::Late(limit)))
        .map_err(|failure| failure.opening("connecting to PostgreSQL"))
}

/// Does what is missing; answers the version that it found, and does nothing if that is a later one.
async fn migrate_on(client: &Client, schema: &str) -> Result<u32, Failure> {
    let patience_ms = LOCK_PATIENCE.as_millis();
    client
        .batch_execute(&format!(
            "BEGIN; SET LOCAL lock_timeout = {patience_ms}; SET LOCAL client_min_messages = warning; \
             SET LOCAL search_path = \"{schema}\""
        ))
        .await?;
    client
        .execute("SELECT pg_advisory_xact_lock(hashtextextended('tidegate migrate ' || $1, 0))", &[&schema])
        .await?;
    let there = client.query_opt("SELECT FROM pg_namespace WHERE nspname = $1", &[&schema]).await?;
    if there.is_none() {
        client.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await?;
    }
    client.batch_execute(VERSIONS).await?;
    let found = version_in(client, "schema_versions").await?;
    if found > SCHEMA_VERSION {
        return Ok(found);
    }
    for (step, version) in STEPS.iter().zip(1_i32..).skip(found as usize) {
        client.batch_execute(step).await?;
        client.execute("INSERT INTO schema_versions (version) VALUES ($1)", &[&version]).await?;
    }
    client.batch_execute(RECOUNT).await?;
    client.batch_execute("COMMIT").await?;
    Ok(found)
}

/// The version of the tables; 0 if there are none.
async fn version(client: &Client, schema: &str) -> Result<u32, Failure> {
    let found = version_in(client, &format!("\"{schema}\".schema_versions")).await;
    match found {
        Err(Failure::Postgres(error))
            if error.code().is_some_and(|code| {
                [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME].contains(code)
            }) =>
        {
            Ok(0)
        }
        found => found,
    }
}

async fn version_in(client: &Client, table: &str) -> Result<u32, Failure> {
    let row = client.query_one(&format!("SELECT coalesce(max(version), 0) FROM {table}"), &[]).await?;
    u32::try_from(row.get::<_, i32>(0)).map_err(|_| Failure::Unexpected("the tables' version is negative"))
}

const VERSIONS: &str = "CREATE TABLE IF NOT EXISTS schema_versions \
     (version integer PRIMARY KEY, migrated_at timestamptz NOT NULL DEFAULT now())";

/// One statement, so that it sees one state of both tables: what it adds is exactly what the counts are off by,
/// whatever instances do meanwhile. It has a slot of its own, so that none of them waits for it.
const RECOUNT: &str = "INSERT INTO entry_counts AS counts (secret_id, slot, entries) \
     SELECT secret_id, -1, coalesce(rows, 0) - coalesce(told, 0) \
     FROM (SELECT secret_id, count(*) AS rows FROM entries GROUP BY secret_id) AS found \
     FULL JOIN (SELECT secret_id, sum(entries)::int8 AS told FROM entry_counts GROUP BY secret_id) AS kept \
         USING (secret_id) \
     WHERE rows IS DISTINCT FROM told \
     ON CONFLICT (secret_id, slot) DO UPDATE SET entries = counts.entries + excluded.entries";
