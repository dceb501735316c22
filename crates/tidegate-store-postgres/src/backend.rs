//! The backend: a batch is one transaction, and batches behave as if one ran after the other.
//!
//! That they do, under READ COMMITTED, takes three things:
//!
//! - Rows that are there are locked when they are read, until the commit.
//! - Rows that are absent can't be locked. So the commit makes sure that they still are: a row that is
//!   inserted fails on the primary key if another instance was first, and keys that were absent and are not
//!   written are looked at again. Either way nothing is written, and the driver decides the batch again.
//! - Between that second look and the commit another instance might insert just such a row, and in turn have
//!   missed one that this batch inserts. So there is a gate (a lock that only the store uses): batches that
//!   insert pass it together, a batch that has looked for absent rows passes it alone. Batches that only
//!   change rows that are there, or that only read, don't meet it.
//!
//! Rows that are only watched are locked for sharing, so that instances which watch the same rows load side by
//! side. To PostgreSQL whoever shares a lock comes before whoever waits for it to write: where instances watch a
//! row without a pause, an operator's stop would wait for ever. So there is a turnstile, another lock that only
//! the store uses, whose waiters come in their order. Batches that watch pass it together, before their rows and
//! until they end. A batch that has waited for a row in vain begins again, and passes the turnstile alone: those
//! that watched have ended by then, and others come after it.
//!
//! So at the time of the second look all that a batch has read is as it was read, and stays so until its writes
//! can be seen. A batch that writes nothing needs only the second look: without it, a row might be seen as
//! another batch left it, and a row of the same batch not at all.
//!
//! The clock is read by a statement of its own, once all rows are locked. The batch that had them before has
//! been committed by then, so whoever finds a row finds it written at a time that is not after its own, as
//! far as the server's clock doesn't step back. The time at which a transaction began would not do: it waits
//! for its locks after that.

use std::time::Duration;

use tidegate_store::{Backend, BackendError, Change, Key, Loaded, Scope, Swept, runs};
use tokio_postgres::{Row, types::ToSql};

use crate::{
    Batch, OpenError, Options,
    batch::{Writes, in_order},
    connection::{Connection, Pool, Query},
    error::Failure,
    schema,
    statements::{BEGIN_PATIENTLY, Statements, begin_watching, begin_writing},
};

/// A limit store in a PostgreSQL database; for [`tidegate_store::Driver::start`].
pub struct PostgresBackend {
    pool: Pool,
    secret_id: i64,
    begin_writing: String,
    begin_watching: String,
    /// How long a statement may take, in ms, as the server is told.
    statement_ms: String,
}

/// How long a batch waits for rows that others hold before it waits alone behind the turnstile: a part of what
/// its callers wait, and longer than a batch takes on a server that is busy.
fn row_patience(deadline: Duration) -> Duration {
    (deadline / 8).max(Duration::from_millis(1))
}

impl PostgresBackend {
    /// Connects to the database and checks that its schema is the one that this program knows. Later
    /// connections are made, and made again, when they are needed.
    ///
    /// # Errors
    /// The server can't be reached, or [`crate::migrate`] has to run first.
    pub async fn connect(options: &Options) -> Result<Self, OpenError> {
        schema::check(options).await?;
        let pool = Pool::new(options)?;
        let opened = pool.ask(None, &[]).await;
        let (connection, _) =
            opened.map_err(|failure| failure.opening("preparing the store's statements"))?;
        pool.give_back(connection);
        let row_patience_ms = row_patience(options.deadline).as_millis();
        Ok(Self {
            secret_id: options.secret_id.unwrap_or(0).cast_signed(),
            begin_writing: begin_writing(row_patience_ms),
            begin_watching: begin_watching(row_patience_ms),
            statement_ms: pool.statement_ms().to_string(),
            pool,
        })
    }

    /// Opens a batch: the answers of the statements that lock its rows, and of the one that looks at the clock.
    async fn locked(&self, keys: &[Key], watched: &[bool]) -> Result<(Connection, Vec<Vec<Row>>), Failure> {
        let runs = runs(keys, watched).map(|(keys, watched)| {
            let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes().as_slice()).collect();
            (keys, watched)
        });
        let runs: Vec<_> = runs.collect();
        let mut queries: Vec<Query<'_>> = runs.iter().map(|run| self.lock(run)).collect();
        queries
            .push(Query::new(|statements| &statements.look, [&self.secret_id as _, &self.statement_ms as _]));
        let begin = if watched.contains(&true) { &self.begin_watching } else { &self.begin_writing };
        match self.pool.ask(Some(begin), &queries).await {
            Err(failure) if failure.is_out_of_time() => self.pool.ask(Some(BEGIN_PATIENTLY), &queries).await,
            answers => answers,
        }
    }

    /// Locks the rows of a run of keys, all watched or all not.
    fn lock<'a>(&'a self, (keys, watched): &'a (Vec<&'a [u8]>, bool)) -> Query<'a> {
        let parameters: [&(dyn ToSql + Sync); 2] = [&self.secret_id, keys];
        if *watched {
            Query::new(|statements| &statements.watch, parameters)
        } else {
            Query::new(|statements| &statements.lock, parameters)
        }
    }

    /// Asks what is no batch.
    async fn beside(
        &self,
        doing: &str,
        statement: fn(&Statements) -> &tokio_postgres::Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, BackendError> {
        let answered = self.pool.ask(None, &[Query::new(statement, parameters)]).await;
        let (connection, mut rows) = answered.map_err(|failure| failure.while_doing(doing))?;
        self.pool.give_back(connection);
        Ok(rows.pop().unwrap_or_default())
    }
}

impl Backend for PostgresBackend {
    type Batch = Batch;
    type Settled = std::future::Ready<Result<(), BackendError>>;

    fn shared(&self) -> bool {
        true
    }

    async fn load(&self, keys: &[Key]) -> Result<Loaded<Batch>, BackendError> {
        self.load_watching(keys, &vec![false; keys.len()]).await
    }

    async fn load_watching(&self, keys: &[Key], watched: &[bool]) -> Result<Loaded<Batch>, BackendError> {
        let failed = |failure: Failure| failure.while_doing("loading a batch");
        let (connection, answers) = self.locked(keys, watched).await.map_err(failed)?;
        let [found @ .., seen] = answers.as_slice() else { return Err(failed(NO_ANSWER)) };
        let (rows, held) = in_order(keys, found.iter().flatten()).map_err(failed)?;
        let seen = seen.first().ok_or(NO_ANSWER).map_err(failed)?;
        let now_ms = seen.get::<_, i64>(0).cast_unsigned();
        let rows_held = Some(seen.get::<_, i64>(1).try_into().unwrap_or(0));
        Ok(Loaded { now_ms, rows, rows_held, batch: Batch { connection, now_ms, keys: keys.to_vec(), held } })
    }

    async fn commit(&self, batch: Batch, changes: Vec<Change>) -> Result<Self::Settled, BackendError> {
        let Batch { connection, now_ms, keys, held } = batch;
        let writes = Writes::of(&keys, &held, now_ms, &changes);
        let growth = writes.growth();
        let commands = commands(&self.secret_id, &writes, &growth);
        let committed = self.pool.within_limit(connection.commit(&commands)).await;
        if committed.as_ref().err().is_none_or(Failure::is_conflict) {
            // The transaction has ended either way, and the connection is as good as before.
            self.pool.give_back(connection);
        }
        committed.map_err(|failure| failure.while_doing("committing a batch"))?;
        Ok(std::future::ready(Ok(())))
    }

    async fn keys_in(&self, scope: Scope, keys_max: usize) -> Result<Vec<Key>, BackendError> {
        let Range { first, last, end } = Range::of(scope);
        let (first, last, limit) = (first.as_slice(), last.as_slice(), limit(keys_max));
        let parameters: [&(dyn ToSql + Sync); 5] = [&self.secret_id, &first, &last, &end, &limit];
        let doing = "looking for the rows of a scope";
        let rows = self.beside(doing, |statements| &statements.keys_in, &parameters).await?;
        let keys = rows.into_iter().filter_map(|row| row.get::<_, &[u8]>(0).try_into().ok());
        Ok(keys.map(Key::from_bytes).collect())
    }

    async fn sweep(&self, rows_max: usize) -> Result<Swept, BackendError> {
        let rows = self.beside("sweeping", |statements| &statements.sweep, &[&limit(rows_max)]).await?;
        Ok(Swept::up_to(rows_max, number(&rows)))
    }

    async fn count(&self) -> Result<u64, BackendError> {
        let rows =
            self.beside("counting the rows", |statements| &statements.count, &[&self.secret_id]).await?;
        Ok(number(&rows))
    }
}

/// What a batch does before its COMMIT.
fn commands<'a>(secret_id: &'a i64, writes: &'a Writes<'_>, growth: &'a i64) -> Vec<Query<'a>> {
    let Writes { updated, inserted, deleted, absent } = writes;
    let mut commands = Vec::new();
    if !absent.is_empty() && !writes.is_empty() {
        commands.push(Query::new(|statements| &statements.close_gate, []));
    } else if !inserted.keys.is_empty() {
        commands.push(Query::new(|statements| &statements.share_gate, []));
    }
    if !absent.is_empty() {
        commands.push(Query::new(|statements| &statements.absent, [secret_id as _, absent as _]));
    }
    if !updated.keys.is_empty() {
        commands.push(Query::new(|statements| &statements.update, updated.parameters(secret_id)));
    }
    if !inserted.keys.is_empty() {
        commands.push(Query::new(|statements| &statements.insert, inserted.parameters(secret_id)));
    }
    if !deleted.is_empty() {
        commands.push(Query::new(|statements| &statements.delete, [secret_id as _, deleted as _]));
    }
    if *growth != 0 {
        commands.push(Query::new(|statements| &statements.add_to_count, [secret_id as _, growth as _]));
    }
    commands
}

/// The one number of an answer.
fn number<T: TryFrom<i64> + Default>(rows: &[Row]) -> T {
    rows.first().and_then(|row| row.get::<_, i64>(0).try_into().ok()).unwrap_or_default()
}

fn limit(rows_max: usize) -> i64 {
    i64::try_from(rows_max).unwrap_or(i64::MAX)
}

const NO_ANSWER: Failure = Failure::Unexpected("a query had no answer");

/// Where the keys of a scope lie.
struct Range {
    first: [u8; Key::BYTES],
    last: [u8; Key::BYTES],
    end: Vec<u8>,
}

/// Bytes that the keys of a group begin with, and those of a member end with.
const GROUP_BYTES: usize = 8;
const MEMBER_BYTES: usize = 6;

impl Range {
    fn of(scope: Scope) -> Self {
        // Any key of the scope shows what all have in common.
        let one = *match scope.member {
            Some(member) => scope.group.key_of(member, &[]),
            None => scope.group.key(&[]),
        }
        .as_bytes();
        let (mut first, mut last) = (one, one);
        first[GROUP_BYTES..].fill(0);
        last[GROUP_BYTES..].fill(u8::MAX);
        let end = scope.member.map(|_| one[Key::BYTES - MEMBER_BYTES..].to_vec());
        Self { first, last, end: end.unwrap_or_default() }
    }
}
