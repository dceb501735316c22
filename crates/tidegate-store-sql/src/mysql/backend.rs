//! A database on a server as the backend of a limit store.

use std::{
    collections::BTreeMap,
    future::{Ready, ready},
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use sqlx::{Row, mysql::MySqlRow};
use tidegate_store::{Backend, BackendError, Change, Entry, Key, Loaded, Scope, Swept, Value};

use super::{
    MySqlOptions,
    connection::{Connection, Connections, Failure},
    migration::{self, at},
    statements::{self, Script},
};
use crate::{
    OpenError,
    changes::{self, Sorted},
    error::failed,
    scope::KeyRange,
};

/// A limit store in a database of MySQL or MariaDB, which any number of instances share.
#[derive(Debug)]
pub struct MySqlBackend {
    connections: Connections,
    secret_id: u64,
    slot: u8,
    patience: Duration,
}

/// A batch: an open transaction that holds the locks of its rows. Dropping it rolls back.
#[derive(Debug)]
pub struct Batch {
    connection: Connection,
    absent: Vec<Key>,
}

/// Counters of each secret's rows: so many instances commit at once without waiting for each other.
const SLOTS: u64 = 16;

/// How long connecting or migrating may take where a call of a store could not wait so long.
const OPEN_PATIENCE: Duration = Duration::from_secs(10);
const MIGRATION_PATIENCE: Duration = Duration::from_secs(10 * 60);

impl MySqlBackend {
    /// Connects to the server.
    ///
    /// # Errors
    /// See [`OpenError`]; a database with no tables, or others than this program works with, is left as it is.
    pub async fn connect(options: &MySqlOptions) -> Result<Self, OpenError> {
        let connections = Connections::new(options)?;
        let connection = within(OPEN_PATIENCE, async {
            let mut connection = connections.take().await.map_err(at("connecting to the server"))?;
            migration::check(&mut connection).await.map(|()| connection)
        });
        let connection = connection.await.map_err(OpenError::at("connecting to the server"))??;
        connections.give_back(connection);
        let slot = u8::try_from(RandomState::new().hash_one(()) % SLOTS).expect("there are few slots");
        let (secret_id, patience) = (options.secret_id.unwrap_or(0), options.call_patience());
        Ok(Self { connections, secret_id, slot, patience })
    }

    /// Brings the tables to the version that this program works with. The user needs the right to make tables,
    /// which the store's user itself does not need afterwards.
    ///
    /// # Errors
    /// See [`OpenError`]; a step that was cut off can be made again.
    pub async fn migrate(options: &MySqlOptions) -> Result<(), OpenError> {
        let connections = Connections::new(options)?;
        let migrated = within(MIGRATION_PATIENCE, async {
            let mut connection = connections.take().await.map_err(at("connecting to the server"))?;
            migration::migrate(&mut connection).await
        });
        migrated.await.map_err(OpenError::at("migrating the tables of the store"))?
    }

    /// Asks for rows, with no change that would last; so it can be asked again if the server had closed the
    /// connection meanwhile.
    async fn ask(&self, statements: String) -> Result<(Connection, Vec<MySqlRow>), Failure> {
        let mut connection = self.connections.take().await?;
        let mut answer = connection.ask(statements.clone()).await;
        if connection.reused && matches!(answer, Err(Failure::Broken(_))) {
            connection = self.connections.take_new().await?;
            answer = connection.ask(statements).await;
        }
        match answer {
            Ok(rows) => Ok((connection, rows)),
            Err(failure) => Err(self.give_up(connection, failure).await),
        }
    }

    /// Does what `script` says, which ends with a commit. Never again after a failure: it may have been done.
    async fn finish(&self, mut connection: Connection, script: Script) -> Result<(), Failure> {
        for statements in script.round_trips() {
            if let Err(failure) = connection.ask(statements).await {
                return Err(self.give_up(connection, failure).await);
            }
        }
        self.connections.give_back(connection);
        Ok(())
    }

    /// Keeps the connection after a conflict, which is nothing unusual.
    async fn give_up(&self, mut connection: Connection, failure: Failure) -> Failure {
        if matches!(failure, Failure::Conflict) && connection.roll_back().await.is_ok() {
            self.connections.give_back(connection);
        }
        failure
    }

    async fn call<T>(
        &self,
        doing: &str,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, BackendError> {
        let done = within(self.patience, work).await.map_err(|elapsed| failed(doing, elapsed))?;
        done.map_err(|failure| failure.doing(doing))
    }
}

impl Backend for MySqlBackend {
    type Batch = Batch;
    type Settled = Ready<Result<(), BackendError>>;

    fn shared(&self) -> bool {
        true
    }

    async fn load(&self, keys: &[Key]) -> Result<Loaded<Batch>, BackendError> {
        self.load_watching(keys, &vec![false; keys.len()]).await
    }

    async fn load_watching(&self, keys: &[Key], watched: &[bool]) -> Result<Loaded<Batch>, BackendError> {
        let loaded = self.call("loading rows from the server", async {
            let (connection, mut answer) = self.ask(statements::load(self.secret_id, keys, watched)).await?;
            let last = answer.pop().ok_or_else(no_answer)?;
            let (now_ms, rows_held) = (last.try_get(0)?, held(&last, 1)?);
            let rows = rows(keys, &answer)?;
            let batch = Batch { connection, absent: changes::absent(keys, &rows) };
            Ok(Loaded { now_ms, rows, rows_held: Some(rows_held), batch })
        });
        loaded.await
    }

    async fn commit(&self, batch: Batch, changes: Vec<Change>) -> Result<Self::Settled, BackendError> {
        let sorted = Sorted::new(&batch.absent, &changes);
        let script = statements::commit(self.secret_id, self.slot, &sorted);
        self.call("committing rows on the server", self.finish(batch.connection, script)).await?;
        Ok(ready(Ok(())))
    }

    async fn keys_in(&self, scope: Scope, keys_max: usize) -> Result<Vec<Key>, BackendError> {
        let statement = statements::keys_in(self.secret_id, &KeyRange::of(scope), keys_max);
        let found = self.call("looking for rows on the server", async {
            let (connection, rows) = self.ask(statement).await?;
            self.connections.give_back(connection);
            rows.iter().map(|row| key(row, 0)).collect()
        });
        found.await
    }

    async fn sweep(&self, rows_max: usize) -> Result<Swept, BackendError> {
        let swept = self.call("sweeping on the server", async {
            let (connection, rows) = self.ask(statements::expired(rows_max)).await?;
            let mut expired: BTreeMap<u64, Vec<Key>> = BTreeMap::new();
            for row in &rows {
                expired.entry(row.try_get(0)?).or_default().push(key(row, 1)?);
            }
            let expired = expired.iter().map(|(secret_id, keys)| (*secret_id, keys.as_slice()));
            self.finish(connection, statements::remove(self.slot, expired)).await?;
            Ok(rows.len())
        });
        Ok(Swept::up_to(rows_max, swept.await?))
    }

    async fn count(&self) -> Result<u64, BackendError> {
        let counted = self.call("counting the rows on the server", async {
            let (connection, rows) = self.ask(statements::count(self.secret_id)).await?;
            self.connections.give_back(connection);
            held(rows.first().ok_or_else(no_answer)?, 0)
        });
        counted.await
    }
}

/// The row of every key: `answer` holds those that there are.
fn rows(keys: &[Key], answer: &[MySqlRow]) -> Result<Vec<Option<Entry>>, Failure> {
    let mut rows = vec![None; keys.len()];
    for row in answer {
        let place = keys.binary_search(&key(row, 0)?).map_err(|_| no_answer())?;
        let value = Value::from_slice(row.try_get(1)?);
        rows[place] = Some(Entry { value, expires_at_ms: row.try_get(2)? });
    }
    Ok(rows)
}

fn key(row: &MySqlRow, column: usize) -> Result<Key, Failure> {
    let bytes: &[u8] = row.try_get(column)?;
    bytes.try_into().map(Key::from_bytes).map_err(|_| no_answer())
}

fn held(row: &MySqlRow, column: usize) -> Result<u64, Failure> {
    let held: i64 = row.try_get(column)?;
    Ok(held.max(0).cast_unsigned())
}

fn no_answer() -> Failure {
    Failure::Broken("the server's answer makes no sense".into())
}

async fn within<T>(patience: Duration, work: impl Future<Output = T>) -> Result<T, String> {
    tokio::time::timeout(patience, work).await.map_err(|_| format!("no answer within {patience:?}"))
}
