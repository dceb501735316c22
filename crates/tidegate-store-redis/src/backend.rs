//! The backend: rows are read, decided on here, and written if they are still as they were read.

use std::{
    future::{Ready, ready},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use redis::cmd;
use tidegate_store::{Backend, BackendError, Change, Key, Loaded, NewState, Scope, Swept};

use crate::{
    link::{Effect, Link},
    names::{Names, after, bounds},
    options::Options,
    row::{Row, Version, encode},
    script::{Arguments, Scripts},
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
    /// For how long.
    pub(crate) turn_ms: &'static str,
}

/// A batch between its load and its commit. Nothing on the server waits for it, but for others while it has
/// the turn.
#[derive(Debug)]
pub struct Batch {
    keys: Vec<Key>,
    /// The scripts' keys for it.
    names: Vec<Vec<u8>>,
    /// What each row was.
    rows: Vec<Option<Seen>>,
    has_turn: bool,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    version: Version,
    expires_at_ms: u64,
}

/// The clock, how many rows there are, and the bytes of those asked for.
type LoadAnswer = (u64, u64, Vec<Option<Vec<u8>>>);

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
        let (keys, arguments) = ([self.names.secrets()], vec![own.clone().into_bytes()]);
        let ids = self.link.run(&self.scripts.secrets, &keys, &arguments, Effect::Repeatable).await;
        let mut ids: Vec<String> = ids.map_err(failed("looking for the secrets of rows"))?;
        ids.retain(|id| *id != own);
        ids.push(own);
        Ok(ids)
    }

    /// Removes up to `rows_max` expired rows that were written under one secret.
    async fn sweep_secret(&self, id: &str, rows_max: usize) -> Result<usize, BackendError> {
        let names = self.names.of_secret(id);
        let is_own = names.index() == self.names.index();
        let forgettable = if is_own { Vec::new() } else { id.as_bytes().to_vec() };
        let arguments = vec![rows_max.to_string().into_bytes(), forgettable];
        let keys = [names.index(), names.secrets()];
        let due = self.link.run(&self.scripts.due, &keys, &arguments, Effect::Repeatable).await;
        let due: Vec<Vec<u8>> = due.map_err(failed("looking for expired rows"))?;
        if due.is_empty() {
            return Ok(0);
        }
        let rows = due.iter().map(|key| names.row(key));
        let keys: Vec<Vec<u8>> = [names.index(), names.keys()].into_iter().chain(rows).collect();
        let removed = self.link.run(&self.scripts.sweep, &keys, &Arguments::new(), Effect::Repeatable).await;
        removed.map_err(failed("removing expired rows"))
    }

    /// Those of `keys` whose rows are there.
    async fn living(&self, mut keys: Vec<Key>) -> Result<Vec<Key>, BackendError> {
        if keys.is_empty() {
            return Ok(keys);
        }
        let rows: Vec<Vec<u8>> = keys.iter().map(|key| self.names.row(key.as_bytes())).collect();
        let living = self.link.run(&self.scripts.living, &rows, &Arguments::new(), Effect::Repeatable).await;
        let living: Vec<bool> = living.map_err(failed("looking for rows"))?;
        let mut living = living.into_iter();
        keys.retain(|_| living.next() == Some(true));
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
        let has_turn = self.in_conflict.load(Ordering::Relaxed);
        let turn_ms = if has_turn { self.turn_ms } else { "0" };
        let rows = keys.iter().map(|key| self.names.row(key.as_bytes()));
        let names = [self.names.index(), self.names.keys(), self.names.turn()];
        let names: Vec<Vec<u8>> = names.into_iter().chain(rows).collect();
        let arguments = vec![self.token.clone(), turn_ms.into()];
        let answer = self.link.run(&self.scripts.load, &names, &arguments, Effect::Repeatable).await;
        let answer: Option<LoadAnswer> = answer.map_err(failed(DOING))?;
        let Some((now_ms, rows_held, bytes)) = answer else { return Err(self.conflict(DOING)) };
        let rows = bytes.iter().map(|bytes| bytes.as_deref().map(Row::decode).transpose());
        let rows = rows.collect::<Result<Vec<Option<Row>>, _>>().map_err(failed(DOING))?;
        let seen = |row: &Row| Seen { version: row.version, expires_at_ms: row.entry.expires_at_ms };
        let seen = rows.iter().map(|row| row.as_ref().map(seen)).collect();
        let batch = Batch { keys: keys.to_vec(), names, rows: seen, has_turn };
        let rows = rows.into_iter().map(|row| row.map(|row| row.entry)).collect();
        Ok(Loaded { now_ms, rows, rows_held: Some(rows_held), batch })
    }

    async fn commit(&self, batch: Batch, changes: Vec<Change>) -> Result<Self::Settled, BackendError> {
        const DOING: &str = "committing a batch";
        if changes.is_empty() && !batch.has_turn {
            // What was only read was read at one instant.
            return Ok(ready(Ok(())));
        }
        let arguments = arguments(self.token.clone(), &batch, &changes)?;
        let done = self.link.run(&self.scripts.commit, &batch.names, &arguments, self.commits).await;
        if matches!(done, Ok(false)) {
            return Err(self.conflict(DOING));
        }
        self.in_conflict.store(false, Ordering::Relaxed);
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
        let mut count = cmd("ZCARD");
        count.arg(self.names.index());
        self.link.call(&count, Effect::Repeatable).await.map_err(failed("counting the rows"))
    }
}

/// The arguments of the script that commits.
fn arguments(token: Vec<u8>, batch: &Batch, changes: &[Change]) -> Result<Arguments, BackendError> {
    let version = unique();
    let mut arguments = Vec::with_capacity(1 + batch.rows.len() + 3 * changes.len());
    arguments.push(token);
    arguments.extend(batch.rows.iter().map(|row| row.map_or_else(Vec::new, |seen| seen.version.to_vec())));
    for change in changes {
        let Ok(row) = batch.keys.binary_search(&change.key) else {
            return Err(BackendError { doing: "writing a row that was not loaded".to_owned(), cause: None });
        };
        let (expires_at_ms, bytes) = match &change.state {
            NewState::Deleted => (String::new(), Vec::new()),
            NewState::Put(entry) => {
                let keeps = batch.rows[row].is_some_and(|seen| seen.expires_at_ms == entry.expires_at_ms);
                let expires_at_ms = if keeps { String::new() } else { entry.expires_at_ms.to_string() };
                (expires_at_ms, encode(version, entry))
            }
        };
        arguments.extend([(row + 1).to_string().into_bytes(), expires_at_ms.into_bytes(), bytes]);
    }
    Ok(arguments)
}

pub(crate) fn failed<E>(doing: &str) -> impl FnOnce(E) -> BackendError
where
    E: std::error::Error + Send + Sync + 'static,
{
    move |cause| BackendError { doing: doing.to_owned(), cause: Some(Box::new(cause)) }
}

/// Eight bytes that nobody else has.
fn unique() -> Version {
    let mut bytes = Version::default();
    getrandom::fill(&mut bytes).expect("the system has random numbers once it has started");
    bytes
}

/// A call goes on for so long after the callers have been answered: time to tell a slow server from a dead one.
const PATIENCE_BEYOND_DEADLINE: Duration = Duration::from_millis(250);

/// How long the others let an instance go first, in ms: many times what a batch takes, and little if the
/// instance is gone.
pub(crate) const TURN_MS: &str = "100";

/// Keys that are looked at in one step.
const PAGE_KEYS: usize = 1000;
