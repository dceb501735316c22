//! Connections to the server: few, never waited for without end, and thrown away when in doubt.

use std::{fmt, time::Duration};

use parking_lot::Mutex;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection as _, MySqlConnection,
    mysql::{MySqlConnectOptions, MySqlDatabaseError, MySqlRow},
    raw_sql,
};
use tidegate_store::BackendError;
use tokio::time::Instant;

use super::MySqlOptions;
use crate::{
    OpenError,
    error::{Cause, failed},
};

/// How the server is reached, and the connections that nobody uses at the moment.
pub(super) struct Connections {
    server: MySqlConnectOptions,
    session: String,
    idle: Mutex<Vec<Connection>>,
    /// The server closes a connection that says nothing for longer; it is not used again then.
    idle_max: Duration,
}

/// One connection. Dropping it closes it, and the server rolls back what is open.
#[derive(Debug)]
pub(super) struct Connection {
    connection: MySqlConnection,
    used_at: Instant,
    /// It has been used before, and may have been closed by the server since.
    pub(super) reused: bool,
}

/// Why statements did not do what they should.
#[derive(Debug)]
pub(super) enum Failure {
    /// Others were faster: the statement did nothing, and the transaction must be rolled back.
    Conflict,
    /// The server's word.
    Refused(u16, Cause),
    /// The connection broke. What was sent may have been done.
    Broken(Cause),
}

impl Connections {
    pub(super) fn new(options: &MySqlOptions) -> Result<Self, OpenError> {
        let wait_s = options.lock_patience_s();
        let idle_s = 4 * wait_s;
        // The server must not keep the locks of an instance whose machine has vanished, nor let one wait for them
        // longer than its callers do.
        let session = format!(
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
             SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1, \
             time_zone = '+00:00', wait_timeout = {idle_s}, \
             innodb_lock_wait_timeout = {wait_s}, lock_wait_timeout = {wait_s}"
        );
        let idle_max = Duration::from_secs(idle_s) / 2;
        Ok(Self { server: options.server()?, session, idle: Mutex::default(), idle_max })
    }

    /// A connection: one that was used before, or a new one.
    pub(super) async fn take(&self) -> Result<Connection, Failure> {
        let (idle, too_old) = {
            let mut idle = self.idle.lock();
            let too_old: Vec<_> =
                idle.extract_if(.., |idle| idle.used_at.elapsed() > self.idle_max).collect();
            (idle.pop(), too_old)
        };
        too_old.into_iter().for_each(Connection::close);
        match idle {
            Some(connection) => Ok(connection),
            None => self.connect().await,
        }
    }

    /// A new connection. Those that were used before are closed: what broke one of them broke them all.
    pub(super) async fn take_new(&self) -> Result<Connection, Failure> {
        self.idle.lock().clear();
        self.connect().await
    }

    /// Keeps a connection, with no transaction open, for the next one who needs it.
    pub(super) fn give_back(&self, mut connection: Connection) {
        connection.used_at = Instant::now();
        connection.reused = true;
        self.idle.lock().push(connection);
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let connection = self.server.connect().await?;
        let mut connection = Connection { connection, used_at: Instant::now(), reused: false };
        connection.ask(self.session.clone()).await?;
        Ok(connection)
    }
}

impl fmt::Debug for Connections {
    /// Without the server's options, which hold the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("idle", &self.idle).finish_non_exhaustive()
    }
}

impl Connection {
    /// Sends `statements` in one round trip; answers the rows of all of them. None after one that fails is run.
    pub(super) async fn ask(&mut self, statements: String) -> Result<Vec<MySqlRow>, Failure> {
        // They hold nothing but numbers and hexadecimal digits of ours.
        Ok(raw_sql(AssertSqlSafe(statements)).fetch_all(&mut self.connection).await?)
    }

    /// Closes it politely, in the background: servers log connections that just end.
    fn close(self) {
        tokio::spawn(tokio::time::timeout(CLOSE_PATIENCE, self.connection.close()));
    }

    /// Ends the transaction, with nothing done.
    pub(super) async fn roll_back(&mut self) -> Result<(), Failure> {
        self.ask("ROLLBACK".to_owned()).await.map(|_| ())
    }
}

impl Failure {
    /// As a backend says it.
    pub(super) fn doing(self, doing: &str) -> BackendError {
        match self {
            Self::Conflict => BackendError::conflict(doing),
            Self::Refused(_, cause) | Self::Broken(cause) => failed(doing, cause),
        }
    }

    /// What the server or the library says of it.
    pub(super) fn cause(self) -> Cause {
        match self {
            Self::Conflict => "another connection was faster".into(),
            Self::Refused(_, cause) | Self::Broken(cause) => cause,
        }
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        let number = error.as_database_error().and_then(|said| said.try_downcast_ref::<MySqlDatabaseError>());
        match number.map(MySqlDatabaseError::number) {
            Some(DUPLICATE_KEY | DEADLOCK | OUT_OF_RANGE | CHANGED_SINCE_READ) => Self::Conflict,
            Some(number) if !matches!(number, SHUTDOWN | KILLED) => Self::Refused(number, error.into()),
            _ => Self::Broken(error.into()),
        }
    }
}

const CLOSE_PATIENCE: Duration = Duration::from_secs(1);

/// A row that was absent when it was read.
const DUPLICATE_KEY: u16 = 1062;
/// The server has chosen this transaction to end, or, on a cluster, another node was faster.
const DEADLOCK: u16 = 1213;
/// What a look at keys that should be absent answers if they are not; see `statements`.
const OUT_OF_RANGE: u16 = 1690;
/// MariaDB, where another transaction was faster.
const CHANGED_SINCE_READ: u16 = 1020;
/// The server goes down.
const SHUTDOWN: u16 = 1053;
/// MariaDB's last word before it cuts a connection.
const KILLED: u16 = 1927;
/// There is no such table.
pub(super) const NO_TABLE: u16 = 1146;
