//! A SQLite file as the backend of a limit store.

use std::{
    future::{Ready, ready},
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use tidegate_store::{Backend, BackendError, Change, Key, Loaded, Scope, Swept};
use tokio::time::{Instant, sleep};

use super::{
    SqliteOptions,
    database::{Database, Failure, migrate},
    thread::DatabaseThread,
};
use crate::{OpenError, changes, error::failed, scope::KeyRange};

/// A limit store in a SQLite file. Any number of them, in any processes of one machine, may have it open.
///
/// Dropping it closes the file, once the thread has done what it was given.
#[derive(Debug)]
pub struct SqliteBackend {
    thread: DatabaseThread,
    lock_patience: Duration,
    call_patience: Duration,
}

/// A batch, which holds the write lock. Dropping it rolls back.
#[derive(Debug)]
pub struct Batch {
    thread: DatabaseThread,
    now_ms: u64,
    absent: Vec<Key>,
}

impl SqliteBackend {
    /// Opens the store.
    ///
    /// # Errors
    /// See [`OpenError`]; a file with no tables, or others than this program works with, is left as it is.
    pub async fn connect(options: &SqliteOptions) -> Result<Self, OpenError> {
        let database = Database::new(options.clone());
        let started = DatabaseThread::start(database);
        let thread = started.map_err(OpenError::at("starting the thread of the database"))?;
        let opened = thread.run(OPEN_PATIENCE, |database| Ok(database.open().map(|_| ()))).await;
        opened.map_err(|failure| OpenError::at("opening the file of the database")(failure.cause()))??;
        let (lock_patience, call_patience) = (options.lock_patience(), options.call_patience());
        Ok(Self { thread, lock_patience, call_patience })
    }

    /// Brings the tables to the version that this program works with; makes the file if there is none.
    ///
    /// # Errors
    /// See [`OpenError`]; the tables are as they were before.
    pub async fn migrate(options: &SqliteOptions) -> Result<(), OpenError> {
        let path = options.path.clone();
        let migrated = tokio::task::spawn_blocking(move || migrate(&path)).await;
        migrated.map_err(OpenError::at("migrating the tables of the store"))?
    }

    async fn run<T: Send + 'static>(
        &self,
        doing: &str,
        work: impl FnOnce(&mut Database) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, BackendError> {
        let done = self.thread.run(self.call_patience, work).await;
        done.map_err(|failure| failed(doing, failure.cause()))
    }

    /// Has `work` done, which takes the write lock, again and again while others have that.
    async fn run_locked<T: Send + 'static>(
        &self,
        doing: &str,
        work: impl FnOnce(&mut Database) -> Result<T, Failure> + Clone + Send + 'static,
    ) -> Result<T, BackendError> {
        let began = Instant::now();
        loop {
            match self.thread.run(self.call_patience, work.clone()).await {
                Err(Failure::Busy(_)) if began.elapsed() < self.lock_patience => sleep(lock_pause()).await,
                Err(failure) => {
                    // The lock may have come just when nobody waited for it any more.
                    self.thread.abandon();
                    return Err(failed(doing, failure.cause()));
                }
                Ok(done) => return Ok(done),
            }
        }
    }
}

impl Backend for SqliteBackend {
    type Batch = Batch;
    type Settled = Ready<Result<(), BackendError>>;

    fn shared(&self) -> bool {
        true
    }

    async fn load(&self, keys: &[Key]) -> Result<Loaded<Batch>, BackendError> {
        let keys: Arc<[Key]> = keys.into();
        let wanted = Arc::clone(&keys);
        let loaded =
            self.run_locked("loading rows from SQLite", move |database| database.load(&wanted)).await?;
        let absent = changes::absent(&keys, &loaded.rows);
        let batch = Batch { thread: self.thread.clone(), now_ms: loaded.now_ms, absent };
        Ok(Loaded { now_ms: loaded.now_ms, rows: loaded.rows, rows_held: Some(loaded.held), batch })
    }

    async fn commit(&self, mut batch: Batch, changes: Vec<Change>) -> Result<Self::Settled, BackendError> {
        let (now_ms, absent) = (batch.now_ms, std::mem::take(&mut batch.absent));
        let work = move |database: &mut Database| database.commit(now_ms, &absent, &changes);
        self.run("committing rows to SQLite", work).await?;
        Ok(ready(Ok(())))
    }

    async fn keys_in(&self, scope: Scope, keys_max: usize) -> Result<Vec<Key>, BackendError> {
        let range = KeyRange::of(scope);
        self.run("looking for rows in SQLite", move |database| database.keys_in(&range, keys_max)).await
    }

    async fn sweep(&self, rows_max: usize) -> Result<Swept, BackendError> {
        let swept = self.run_locked("sweeping SQLite", move |database| database.sweep(rows_max)).await?;
        Ok(Swept::up_to(rows_max, swept))
    }

    async fn count(&self) -> Result<u64, BackendError> {
        self.run("counting the rows in SQLite", Database::count).await
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // After a commit there is nothing left to roll back.
        self.thread.abandon();
    }
}

/// Between two tries to get the write lock: about what a batch of another process takes, and not as long twice,
/// so that no process keeps missing the moment when the lock is free.
fn lock_pause() -> Duration {
    let most = LOCK_PAUSE_US_MAX - LOCK_PAUSE_US_MIN;
    Duration::from_micros(LOCK_PAUSE_US_MIN + RandomState::new().hash_one(()) % most)
}

const LOCK_PAUSE_US_MIN: u64 = 100;
const LOCK_PAUSE_US_MAX: u64 = 3000;
/// Longer than the locks of others are waited for.
const OPEN_PATIENCE: Duration = Duration::from_secs(10);
