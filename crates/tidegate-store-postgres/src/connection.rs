//! Connections: opened when they are needed, kept while they are sound, and never waited for without end.

use std::time::Duration;

use futures_util::future::{join, join_all};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio_postgres::{Client, Row, Statement, types::ToSql};

use crate::{
    OpenError, Options,
    error::Failure,
    options::Target,
    statements::{PLANNER, Statements},
};

/// The connections of a backend.
pub(crate) struct Pool {
    target: Target,
    /// What a session is set to.
    settings: String,
    limits: Limits,
    idle: Mutex<Vec<Connection>>,
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The server gives up a statement, and ends a transaction that idles so long: whoever asked for it has
    /// had another answer by then, and other instances wait for its locks.
    pub(crate) server: Duration,
    /// A server that says nothing for so long is given up, and its connection with it.
    pub(crate) client: Duration,
}

/// A session of the server; closed when dropped, whatever it was doing, which ends its transaction.
pub(crate) struct Session {
    pub(crate) client: Client,
    task: AbortHandle,
}

/// A session with the store's statements.
pub(crate) struct Connection {
    session: Session,
    statements: Statements,
}

/// One of the statements, and what it is given.
pub(crate) struct Query<'a> {
    statement: fn(&Statements) -> &Statement,
    parameters: Vec<&'a (dyn ToSql + Sync)>,
}

/// One for the batches, one for what goes on beside them.
const IDLE_MAX: usize = 2;
/// So that the server's word that it gave up arrives before we give up waiting for it.
const CLIENT_EXTRA: Duration = Duration::from_millis(500);

impl<'a> Query<'a> {
    pub(crate) fn new(
        statement: fn(&Statements) -> &Statement,
        parameters: impl Into<Vec<&'a (dyn ToSql + Sync)>>,
    ) -> Self {
        Self { statement, parameters: parameters.into() }
    }
}

impl Limits {
    /// What follows from the driver's deadline.
    pub(crate) fn of(deadline: Duration) -> Self {
        // Zero would mean to the server that there is no limit.
        let server = deadline.max(Duration::from_millis(1));
        Self { server, client: server + CLIENT_EXTRA }
    }
}

impl Session {
    /// Connects.
    pub(crate) async fn open(target: &Target) -> Result<Self, Failure> {
        let (client, connection) = target.config.connect(target.tls.clone()).await?;
        // What goes wrong there is told to whoever waits for an answer.
        let task = tokio::spawn(async move { drop(connection.await) }).abort_handle();
        Ok(Self { client, task })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    fn client(&self) -> &Client {
        &self.session.client
    }

    async fn ask(&self, begin: Option<&str>, queries: &[Query<'_>]) -> Result<Vec<Vec<Row>>, Failure> {
        let client = self.client();
        let begun = async {
            match begin {
                Some(begin) => client.batch_execute(begin).await,
                None => Ok(()),
            }
        };
        let answers =
            queries.iter().map(|query| client.query((query.statement)(&self.statements), &query.parameters));
        // Each is sent when it is first polled: all of them, in this order, before any answer is waited for.
        let (begun, answers) = join(begun, join_all(answers)).await;
        begun?;
        Ok(answers.into_iter().collect::<Result<_, _>>()?)
    }

    /// Runs `commands` in the open transaction and commits it, in one round trip. After a command that failed
    /// the server refuses the following ones, and the COMMIT rolls back: the first error tells what happened.
    pub(crate) async fn commit(&self, commands: &[Query<'_>]) -> Result<(), Failure> {
        let client = self.client();
        let done = commands
            .iter()
            .map(|query| client.execute((query.statement)(&self.statements), &query.parameters));
        let (done, committed) = join(join_all(done), client.batch_execute("COMMIT")).await;
        done.into_iter().collect::<Result<Vec<u64>, _>>()?;
        Ok(committed?)
    }
}

impl Pool {
    /// The connections that `options` ask for; none is opened yet.
    pub(crate) fn new(options: &Options) -> Result<Self, OpenError> {
        let limits = Limits::of(options.deadline);
        let limit_ms = limits.server.as_millis();
        let settings = format!(
            "SET search_path = \"{}\"; SET statement_timeout = {limit_ms}; \
             SET idle_in_transaction_session_timeout = {limit_ms}; {PLANNER}",
            options.schema
        );
        Ok(Self { target: options.url.target()?, settings, limits, idle: Mutex::default() })
    }

    /// How long the server works on a statement, in ms.
    pub(crate) fn statement_ms(&self) -> u128 {
        self.limits.server.as_millis()
    }

    /// Asks on some connection, in one round trip, and in a transaction that stays open if `begin` opens one. A
    /// session that turns out to have been lost while it idled (the server was restarted, say) is replaced
    /// once: the queries must do no harm twice.
    pub(crate) async fn ask(
        &self,
        begin: Option<&str>,
        queries: &[Query<'_>],
    ) -> Result<(Connection, Vec<Vec<Row>>), Failure> {
        if let Some(connection) = self.idle() {
            match self.within_limit(connection.ask(begin, queries)).await {
                Err(failure) if failure.is_lost_session() => drop(connection),
                answers => return Ok((connection, answers?)),
            }
        }
        let connection = self.within_limit(self.open()).await?;
        let answers = self.within_limit(connection.ask(begin, queries)).await?;
        Ok((connection, answers))
    }

    /// Takes back a connection that has no transaction open.
    pub(crate) fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }

    /// Waits for `work` no longer than the server is given.
    pub(crate) async fn within_limit<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let limit = self.limits.client;
        tokio::time::timeout(limit, work).await.unwrap_or(Err(Failure::Late(limit)))
    }

    fn idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        idle.retain(|connection| !connection.client().is_closed());
        idle.pop()
    }

    async fn open(&self) -> Result<Connection, Failure> {
        let session = Session::open(&self.target).await?;
        session.client.batch_execute(&self.settings).await?;
        let statements = Statements::prepare(&session.client).await?;
        Ok(Connection { session, statements })
    }
}
