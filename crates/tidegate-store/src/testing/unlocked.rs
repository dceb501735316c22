//! A backend that does without the locks of another.

use std::future::{Ready, ready};

use crate::{Backend, BackendError, Change, Key, Loaded, Scope, Swept};

/// Gives back the locks as soon as it has read, and writes what was decided on that: what instances that share a store
/// are kept from doing.
#[derive(Debug)]
pub struct Unlocked<B>(pub B);

impl<B: Backend> Backend for Unlocked<B> {
    type Batch = Vec<Key>;
    type Settled = Ready<Result<(), BackendError>>;

    fn shared(&self) -> bool {
        true
    }

    async fn load(&self, keys: &[Key]) -> Result<Loaded<Vec<Key>>, BackendError> {
        let Loaded { now_ms, rows, rows_held, batch } = self.0.load(keys).await?;
        self.0.commit(batch, Vec::new()).await?.await?;
        Ok(Loaded { now_ms, rows, rows_held, batch: keys.to_vec() })
    }

    async fn commit(&self, keys: Vec<Key>, changes: Vec<Change>) -> Result<Self::Settled, BackendError> {
        let loaded = self.0.load(&keys).await?;
        self.0.commit(loaded.batch, changes).await?.await?;
        Ok(ready(Ok(())))
    }

    async fn keys_in(&self, scope: Scope, keys_max: usize) -> Result<Vec<Key>, BackendError> {
        self.0.keys_in(scope, keys_max).await
    }

    async fn sweep(&self, rows_max: usize) -> Result<Swept, BackendError> {
        self.0.sweep(rows_max).await
    }

    async fn count(&self) -> Result<u64, BackendError> {
        self.0.count().await
    }
}
