//! What a backend does for the driver: load the rows of a batch, commit its changes, sweep, count.

use std::{future::Future, sync::Arc};

use thiserror::Error;

use crate::{Entry, Key, Scope};

/// The storage behind a [`crate::Driver`]: no decisions, no deadlines, no bounds; those are the driver's.
///
/// The driver runs one `load` … `commit` pair at a time, the next one perhaps before the last has settled, and
/// never drops the futures, so a backend need not be safe against being cancelled half-way. Expiry is judged on the clock that [`Loaded::now_ms`] tells.
pub trait Backend: Send + Sync + 'static {
    /// What a batch carries from `load` to `commit`: an open transaction, say. Dropping it abandons the batch.
    type Batch: Send;

    /// What the answers to a batch wait for once it is committed: that all that it wrote, and all that it
    /// read, is as durable as the backend was told to make it. [`std::future::Ready`] where a commit answers
    /// no sooner.
    type Settled: Future<Output = Result<(), BackendError>> + Send + Unpin + 'static;

    /// Whether every instance of the application sees the same entries.
    fn shared(&self) -> bool;

    /// Reads the rows of `keys` (ascending, distinct), keeps others from changing them until the batch ends,
    /// and reads the store's clock. Rows at or past their expiry may be given or left out.
    fn load(&self, keys: &[Key]) -> impl Future<Output = Result<Loaded<Self::Batch>, BackendError>> + Send;

    /// [`Backend::load`] that knows which of `keys` this batch only reads: others may read them too meanwhile,
    /// but not change them. Where that makes no difference, it is the same.
    fn load_watching(
        &self,
        keys: &[Key],
        watched: &[bool],
    ) -> impl Future<Output = Result<Loaded<Self::Batch>, BackendError>> + Send {
        let _ = watched;
        self.load(keys)
    }

    /// Writes all `changes` or none, and ends the batch. Answers once every later load sees them. `changes` may
    /// be empty; a batch that only read settles like any other.
    fn commit(
        &self,
        batch: Self::Batch,
        changes: Vec<Change>,
    ) -> impl Future<Output = Result<Self::Settled, BackendError>> + Send;

    /// The keys of up to `keys_max` live rows of `scope`; fewer mean that there are no more. The driver may ask
    /// while a batch is under way.
    fn keys_in(
        &self,
        scope: Scope,
        keys_max: usize,
    ) -> impl Future<Output = Result<Vec<Key>, BackendError>> + Send;

    /// Does a step of a sweep, so short that a batch may wait for it: removes up to `rows_max` expired rows.
    fn sweep(&self, rows_max: usize) -> impl Future<Output = Result<Swept, BackendError>> + Send;

    /// How many rows the store holds of the current secret; expired ones that still take up room may count.
    fn count(&self) -> impl Future<Output = Result<u64, BackendError>> + Send;
}

/// The same backend: for whoever wants to look at it, or to outlive its driver.
impl<B: Backend> Backend for Arc<B> {
    type Batch = B::Batch;
    type Settled = B::Settled;

    fn shared(&self) -> bool {
        B::shared(self)
    }

    async fn load(&self, keys: &[Key]) -> Result<Loaded<B::Batch>, BackendError> {
        B::load(self, keys).await
    }

    async fn load_watching(&self, keys: &[Key], watched: &[bool]) -> Result<Loaded<B::Batch>, BackendError> {
        B::load_watching(self, keys, watched).await
    }

    async fn commit(&self, batch: B::Batch, changes: Vec<Change>) -> Result<B::Settled, BackendError> {
        B::commit(self, batch, changes).await
    }

    async fn keys_in(&self, scope: Scope, keys_max: usize) -> Result<Vec<Key>, BackendError> {
        B::keys_in(self, scope, keys_max).await
    }

    async fn sweep(&self, rows_max: usize) -> Result<Swept, BackendError> {
        B::sweep(self, rows_max).await
    }

    async fn count(&self) -> Result<u64, BackendError> {
        B::count(self).await
    }
}

/// `keys` in runs that are all watched or all not, in their order: so that a backend which locks the two in
/// different ways still locks all of them in the order of their keys. `watched` is as long as `keys`.
pub fn runs<'a>(keys: &'a [Key], watched: &'a [bool]) -> impl Iterator<Item = (&'a [Key], bool)> {
    watched.chunk_by(PartialEq::eq).scan(keys, |left, run| {
        let (keys, rest) = left.split_at_checked(run.len())?;
        *left = rest;
        Some((keys, run[0]))
    })
}

/// The rows of a batch.
#[derive(Debug)]
pub struct Loaded<B> {
    /// The store's clock, in ms since the epoch.
    pub now_ms: u64,
    /// As many as there were keys, in their order.
    pub rows: Vec<Option<Entry>>,
    /// What [`Backend::count`] would answer, as far as the backend knows it without asking.
    pub rows_held: Option<u64>,
    /// Handed back to [`Backend::commit`].
    pub batch: B,
}

/// What a step of a sweep came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    /// How many rows it removed.
    pub removed: usize,
    /// Whether no row was left that had expired when it began.
    pub complete: bool,
}

impl Swept {
    /// A step that removes as many as it may, unless fewer are left.
    #[must_use]
    pub const fn up_to(rows_max: usize, removed: usize) -> Self {
        Self { removed, complete: removed < rows_max }
    }
}

/// One row as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which row.
    pub key: Key,
    /// What becomes of it.
    pub state: NewState,
}

/// What becomes of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewState {
    /// It is written whole.
    Put(Entry),
    /// It is removed.
    Deleted,
}

/// Why a backend could not do it. Its source says what happened; the driver logs it.
#[derive(Debug, Error)]
#[error("{doing}")]
pub struct BackendError {
    /// What was being done.
    pub doing: String,
    /// The cause.
    #[source]
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Another instance changed the same rows first: nothing was written, and the batch can be tried again.
#[derive(Debug, Error)]
#[error("another instance changed the same rows first")]
struct Conflict;

impl BackendError {
    /// The batch was not committed, since another instance changed its rows after they were loaded (a
    /// serialization failure, a lost race for a row's first insert). The driver loads and decides it again, until
    /// nobody waits for it any more.
    #[must_use]
    pub fn conflict(doing: impl Into<String>) -> Self {
        Self { doing: doing.into(), cause: Some(Box::new(Conflict)) }
    }

    /// Whether it is one of [`BackendError::conflict`].
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.cause.as_ref().is_some_and(|cause| cause.is::<Conflict>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_keep_the_order_of_the_keys() {
        let keys: Vec<Key> = (0..6).map(|byte| Key::from_bytes([byte; Key::BYTES])).collect();
        type Runs<'a> = &'a [(&'a [Key], bool)];
        let table: [(&[bool], Runs<'_>); 4] = [
            (&[], &[]),
            (&[false; 6], &[(&keys, false)]),
            (&[true; 6], &[(&keys, true)]),
            (
                &[false, false, true, false, true, true],
                &[(&keys[..2], false), (&keys[2..3], true), (&keys[3..4], false), (&keys[4..], true)],
            ),
        ];
        for (watched, right) in table {
            assert_eq!(runs(&keys, watched).collect::<Vec<_>>(), right);
        }
    }
}
