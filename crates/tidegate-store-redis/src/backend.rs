//! The backend: rows are read, decided on here, and written if they are still as they were read.

use std::{
    future::{Ready, ready},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use redis::cmd;
use tidegate_store::{Backend, BackendError, Change, Key, Loaded, Scope, Swept};

use crate::{
    batch::Batch,
    link::{Effect, Link},
    names::{Names, after, bounds},
    options::Options,
    reading::{self, Reading, Wish},
    row::{Row, unique},
    script::Scripts,
};

/// A store on Redis or Valkey that instances share, on the server's clock.
#[derive(Debug)]
pub struct RedisBackend {
    pub(crate) link: Link,
    pub(crate) names: Names,
    pub(crate) scripts: Scripts,
    secret_id: u64,
    commits: Effect,
    /// Tells this instance from the others.
    token: Vec<u8>,
    /// The last batch was in conflict with another's: the next one asks for the turn.
    in_conflict: AtomicBool,
    /// For how many ms; with 0 it never does.
    pub(crate) turn_ms: u64,
}

impl RedisBackend {
    /// A backend that has not talked to its server yet; see [`Link::new`].
    pub(crate) fn new(options: &Options, root_certificates: Option<Vec<u8>>) -> Self {
        let secret_id = options.secret_id.unwrap_or(0);
        Self {
            link: Link::new(
                options.url.clone(),
                root_certificates,
                options.deadline + PATIENCE_BEYOND_DEADLINE,
            ),
            names: Names::new(&options.prefix, secret_id),
            scripts: Scripts::default(),
            secret_id,
            commits: Effect::Once { replicas: options.wait_replicas },
            token: unique().to_vec(),
            in_conflict: AtomicBool::new(false),
            turn_ms: TURN_MS,
        }
    }

    fn conflict(&self, doing: &str) -> BackendError {
        self.in_conflict.store(true, Ordering::Relaxed);
        BackendError::conflict(doing)
    }

    /// The ids of all secrets that may have rows, this store's own last.
    async fn secrets(&self) -> Result<Vec<String>, BackendError> {
        let own = format!("{:x}", self.secret_id);
        let mut command = self.scripts.secrets.by_hash(&[self.names.secrets()], (8, 256));
        command.arg(&own);
        let ids = self.link.run(&self.scripts.secrets, &command, Effect::Repeatable).await;
        let mut ids: Vec<String> = ids.map_err(failed("looking for the secrets of rows"))?;
        ids.retain(|id| *id != own);
        ids.push(own);
        Ok(ids)
    }

    /// Removes up to `rows_max` expired rows that were written under one secret.
    async fn sweep_secret(&self, id: &str, rows_max: usize) -> Result<usize, BackendError> {
        let names = self.names.of_secret(id);
        let is_own = names.rows() == self.names.rows();
        let keys = [names.rows(), names.index(), names.keys(), names.secrets()];
        let mut command = self.scripts.sweep.by_hash(&keys, (16, 512));
        command.arg(rows_max).arg(if is_own { "" } else { id });
        let removed = self.link.run(&self.scripts.sweep, &command, Effect::Repeatable).await;
        removed.map_err(failed("removing expired rows"))
    }

    /// Reads the rows of `keys` and the clock, and takes the turn if that is wished.
    async fn look(&self, keys: &[Key], wish: Option<Wish<'_>>, doing: &str) -> Result<Reading, BackendError> {
        let commands = reading::commands(&self.names, keys, wish);
        loop {
            let answers = self.link.call_all(&commands).await.map_err(failed(doing))?;
            if let Some(reading) = Reading::of(answers, keys.len()).map_err(failed(doing))? {
                return Ok(reading);
            }
        }
    }

    /// Those of `keys` whose rows are there.
    async fn living(&self, mut keys: Vec<Key>) -> Result<Vec<Key>, BackendError> {
        let Reading { rows, now_ms, .. } = self.look(&keys, None, "looking for rows").await?;
        let lives = |row: Option<Row>| row.is_some_and(|row| row.entry.expires_at_ms > now_ms);
        let mut rows = rows.into_iter().map(lives);
        keys.retain(|_| rows.next() == Some(true));
        Ok(keys)
    }
}

impl Backend for RedisBackend {
    type Batch = Batch;
    type Settled = Ready<Result<(), BackendError>>;

    fn shared(&self) -> bool {
        true
    }

    async fn load(&self, keys: &[Key]) -> Result<Loaded<Batch>, BackendError> {
        const DOING: &str = "loading a batch";
        let wishes = self.turn_ms > 0 && self.in_conflict.swap(false, Ordering::Relaxed);
        let wish = wishes.then_some(Wish { token: &self.token, turn_ms: self.turn_ms });
        let Reading { turn, now_ms, rows_held, rows } = self.look(keys, wish, DOING).await?;
        let has_turn = turn.as_ref() == Some(&self.token);
        if turn.is_some() && !has_turn {
            return Err(self.conflict(DOING));
        }
        let batch = Batch::of(keys, &rows, has_turn);
        let rows = rows.into_iter().map(|row| row.map(|row| row.entry)).collect();
        Ok(Loaded { now_ms, rows, rows_held: Some(rows_held), batch })
    }

    async fn commit(&self, batch: Batch, changes: Vec<Change>) -> Result<Self::Settled, BackendError> {
        const DOING: &str = "committing a batch";
        if changes.is_empty() && !batch.has_turn {
            // What was only read was read at one instant.
            return Ok(ready(Ok(())));
        }
        let script = &self.scripts.commit;
        let command = batch.commit(script, &self.names, &self.token, &changes)?;
        let done = self.link.run(script, &command, self.commits).await;
        if matches!(done, Ok(false)) {
            return Err(self.conflict(DOING));
        }
        done.map(|_| ready(Ok(()))).map_err(failed(DOING))
    }

    async fn keys_in(&self, scope: Scope, keys_max: usize) -> Result<Vec<Key>, BackendError> {
        let (mut first, last) = bounds(scope);
        let mut found = Vec::new();
        loop {
            let mut range = cmd("ZRANGEBYLEX");
            range.arg(self.names.keys()).arg(first).arg(&last).arg("LIMIT").arg(0).arg(PAGE_KEYS);
            let page = self.link.call(&range, Effect::Repeatable).await;
            let page: Vec<Vec<u8>> = page.map_err(failed("looking through the keys"))?;
            let keys = page.iter().filter_map(|key| Some(Key::from_bytes(key.as_slice().try_into().ok()?)));
            found.extend(self.living(keys.filter(|key| scope.holds(key)).collect()).await?);
            let Some(end) = page.last().filter(|_| page.len() == PAGE_KEYS && found.len() < keys_max) else {
                found.truncate(keys_max);
                return Ok(found);
            };
            first = after(end);
        }
    }

    async fn sweep(&self, rows_max: usize) -> Result<Swept, BackendError> {
        let mut removed = 0;
        for id in self.secrets().await? {
            while removed < rows_max {
                match self.sweep_secret(&id, rows_max - removed).await? {
                    0 => break,
                    rows => removed += rows,
                }
            }
        }
        Ok(Swept::up_to(rows_max, removed))
    }

    async fn count(&self) -> Result<u64, BackendError> {
        let mut count = cmd("HLEN");
        count.arg(self.names.rows());
        self.link.call(&count, Effect::Repeatable).await.map_err(failed("counting the rows"))
    }
}

pub(crate) fn failed<E>(doing: &str) -> impl FnOnce(E) -> BackendError
where
    E: std::error::Error + Send + Sync + 'static,
{
    move |cause| BackendError { doing: doing.to_owned(), cause: Some(Box::new(cause)) }
}

/// A call goes on for so long after the callers have been answered: time to tell a slow server from a dead one.
const PATIENCE_BEYOND_DEADLINE: Duration = Duration::from_millis(250);

/// How long the others let an instance go first, in ms: many times what a batch takes, and little if the
/// instance is gone.
pub(crate) const TURN_MS: u64 = 100;

/// Keys that are looked at in one step.
const PAGE_KEYS: usize = 1000;
