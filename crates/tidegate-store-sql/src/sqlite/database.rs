//! The connection to a SQLite file: opened, set up, migrated, and opened again after a failure.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::{Durability, SqliteOptions};
use crate::{OpenError, error::Cause, schema};

/// The tables, a step for each version. A step that was released is never changed.
///
/// `tidegate_held` counts the rows of each secret, since looking at all of them would take longer the more there
/// are; `tidegate_clock` is the last instant that the store has shown anybody.
const STEPS: &[&str] = &["
    CREATE TABLE tidegate_rows (
        secret_id INTEGER NOT NULL,
        id BLOB NOT NULL,
        value BLOB NOT NULL,
        expires_at_ms INTEGER NOT NULL,
        PRIMARY KEY (secret_id, id)
    ) WITHOUT ROWID;
    CREATE INDEX tidegate_rows_by_expiry ON tidegate_rows (expires_at_ms);
    CREATE TABLE tidegate_held (secret_id INTEGER PRIMARY KEY, held INTEGER NOT NULL);
    CREATE TABLE tidegate_clock (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), now_ms INTEGER NOT NULL);
    INSERT INTO tidegate_clock VALUES (1, 0);
"];

const VERSION_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS tidegate_schema (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
        version INTEGER NOT NULL
    )";

/// How long the locks of others are waited for while a connection is set up.
const OPEN_PATIENCE: Duration = Duration::from_secs(2);
/// The same while the tables are migrated: another migration may be under way.
const MIGRATION_PATIENCE: Duration = Duration::from_secs(60);
/// Each is turned away by another that changed the mode or wrote meanwhile.
const WAL_TRIES: u32 = 100;
/// The journal is cut to this after a large batch: 64 MiB.
const JOURNAL_BYTES_MAX: i64 = 64 << 20;

/// A store's file. It is opened at first use, and again after a failure.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) options: SqliteOptions,
    connection: Option<Connection>,
}

/// Why something was not done.
#[derive(Debug)]
pub(super) enum Failure {
    /// Another connection has the lock.
    Busy(Cause),
    /// Anything else.
    Other(Cause),
}

impl Database {
    pub(super) fn new(options: SqliteOptions) -> Self {
        Self { options, connection: None }
    }

    /// The open file.
    pub(super) fn open(&mut self) -> Result<&Connection, OpenError> {
        if self.connection.is_none() {
            self.connection = Some(connect(&self.options)?);
        }
        Ok(self.connection.as_ref().expect("it was opened just above"))
    }

    /// The connection, if a transaction is open on it.
    pub(super) fn in_transaction(&self) -> Option<&Connection> {
        self.connection.as_ref().filter(|connection| !connection.is_autocommit())
    }

    /// Rolls back the open transaction, if there is one.
    pub(super) fn abandon(&mut self) {
        let kept =
            self.in_transaction().is_none_or(|connection| connection.execute_batch("ROLLBACK").is_ok());
        if !kept {
            self.connection = None;
        }
    }

    /// Does `work`. Nothing of it stays if it fails, nor does the connection, unless others were just faster.
    pub(super) fn guard<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let done = work(self);
        match &done {
            Ok(_) => {}
            Err(Failure::Busy(_)) => self.abandon(),
            // Closing it rolls back.
            Err(Failure::Other(_)) => self.connection = None,
        }
        done
    }
}

impl Failure {
    /// What SQLite says of it.
    pub(super) fn cause(self) -> Cause {
        match self {
            Self::Busy(cause) | Self::Other(cause) => cause,
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy) => Self::Busy(error.into()),
            _ => Self::Other(error.into()),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::Other(error.into())
    }
}

/// Brings the tables at `path` to the newest version, all steps or none, and the file into WAL mode.
pub(super) fn migrate(path: &Path) -> Result<(), OpenError> {
    let mut connection = open_file(path, OpenFlags::SQLITE_OPEN_CREATE, MIGRATION_PATIENCE)?;
    use_wal(&connection)?;
    let lock = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let lock = lock.map_err(OpenError::at("waiting for the lock to migrate under"))?;
    let found = version(&lock)?;
    let step_failed = "making a step of the migration";
    lock.execute_batch(VERSION_TABLE).map_err(OpenError::at(step_failed))?;
    for (version, step) in schema::steps_from(found, STEPS)? {
        lock.execute_batch(step).map_err(OpenError::at(step_failed))?;
        lock.execute("INSERT OR REPLACE INTO tidegate_schema VALUES (1, ?1)", [version])
            .map_err(OpenError::at("writing the version of the tables"))?;
    }
    lock.commit().map_err(OpenError::at("committing the migration"))
}

fn connect(options: &SqliteOptions) -> Result<Connection, OpenError> {
    if !options.path.exists() {
        return Err(schema::missing(STEPS));
    }
    let connection = open_file(&options.path, OpenFlags::empty(), OPEN_PATIENCE)?;
    schema::check(version(&connection)?, STEPS)?;
    use_wal(&connection)?;
    set_up(&connection, options.durability).map_err(OpenError::at("setting up the connection"))?;
    Ok(connection)
}

fn open_file(path: &Path, flags: OpenFlags, patience: Duration) -> Result<Connection, OpenError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags);
    let connection = opened.map_err(OpenError::at("opening the file of the database"))?;
    connection.busy_timeout(patience).map_err(OpenError::at("setting up the connection"))?;
    Ok(connection)
}

/// Readers and the writer must not wait for each other, and a commit shall be one flush.
///
/// Of several that change the mode at once SQLite turns some away without waiting. Those wait for the lock as any
/// writer does, and find the mode changed then.
fn use_wal(connection: &Connection) -> Result<(), OpenError> {
    let doing = "bringing the database into WAL mode";
    let mut tries_left = WAL_TRIES;
    let mode = loop {
        tries_left -= 1;
        let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match mode.map_err(Failure::from) {
            Ok(mode) => break mode,
            Err(Failure::Busy(_)) if tries_left > 0 => {
                connection.execute_batch("BEGIN IMMEDIATE; COMMIT").map_err(OpenError::at(doing))?;
            }
            Err(failure) => return Err(OpenError::at(doing)(failure.cause())),
        }
    };
    if mode == "wal" { Ok(()) } else { Err(OpenError::at(doing)(format!("it stays in {mode} mode"))) }
}

fn set_up(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    let synchronous = match durability {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "journal_size_limit", JOURNAL_BYTES_MAX)?;
    // From here on the store waits by itself.
    connection.busy_timeout(Duration::ZERO)
}

/// The version of the tables; 0 where there are none.
fn version(connection: &Connection) -> Result<u32, OpenError> {
    let doing = "reading the version of the tables";
    // Not what the connection remembers of the tables: another one may have made them meanwhile.
    let exists = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'tidegate_schema')";
    let exists: bool = connection.query_row(exists, [], |row| row.get(0)).map_err(OpenError::at(doing))?;
    if !exists {
        return Ok(0);
    }
    let version = "SELECT COALESCE(MAX(version), 0) FROM tidegate_schema";
    connection.query_row(version, [], |row| row.get(0)).map_err(OpenError::at(doing))
}
