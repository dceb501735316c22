//! A backend that hangs or fails when a test says so.

use std::sync::Arc;

use tokio::sync::watch;

use crate::{Backend, BackendError, BoxFuture, Change, Key, Loaded, Scope, Swept};

/// What is to be wrong with a backend from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// Nothing. Calls that hang go on.
    None,
    /// It does not answer.
    Hang,
    /// It answers every call with an error.
    Fail,
    /// It answers, and what it is told to keep does not settle.
    Unsettled,
}

/// Turns a [`Disturbance`] on and off; clones turn the same one.
#[derive(Debug, Clone)]
pub struct Switch(Arc<watch::Sender<Disturbance>>);

/// `inner`, disturbed as its switch says.
#[derive(Debug)]
pub struct FaultyBackend<B> {
    inner: B,
    switch: Switch,
}

impl Switch {
    /// A switch at [`Disturbance::None`].
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Disturbance::None)))
    }

    /// From now on it is `disturbance`.
    pub fn set(&self, disturbance: Disturbance) {
        self.0.send_replace(disturbance);
    }

    /// Waits while calls hang.
    ///
    /// # Errors
    /// When they fail.
    pub async fn pass(&self) -> Result<(), BackendError> {
        if self.once_not(Disturbance::Hang).await == Disturbance::Fail {
            return Err(BackendError { doing: "failing as the test says".to_owned(), cause: None });
        }
        Ok(())
    }

    /// Waits while nothing settles.
    pub async fn settle(&self) {
        self.once_not(Disturbance::Unsettled).await;
    }

    async fn once_not(&self, disturbance: Disturbance) -> Disturbance {
        let mut seen = self.0.subscribe();
        *seen.wait_for(|now| *now != disturbance).await.expect("its sender is in self")
    }
}

impl Default for Switch {
    fn default() -> Self {
        Self::new()
    }
}

impl<B> FaultyBackend<B> {
    /// `inner`, disturbed as `switch` says.
    pub fn new(inner: B, switch: Switch) -> Self {
        Self { inner, switch }
    }

    /// What disturbs it.
    pub fn switch(&self) -> &Switch {
        &self.switch
    }
}

impl<B: Backend> Backend for FaultyBackend<B> {
    type Batch = B::Batch;
    type Settled = BoxFuture<'static, Result<(), BackendError>>;

    fn shared(&self) -> bool {
        self.inner.shared()
    }

    async fn load(&self, keys: &[Key]) -> Result<Loaded<B::Batch>, BackendError> {
        self.switch.pass().await?;
        self.inner.load(keys).await
    }

    async fn load_watching(&self, keys: &[Key], watched: &[bool]) -> Result<Loaded<B::Batch>, BackendError> {
        self.switch.pass().await?;
        self.inner.load_watching(keys, watched).await
    }

    async fn commit(&self, batch: B::Batch, changes: Vec<Change>) -> Result<Self::Settled, BackendError> {
        self.switch.pass().await?;
        let settled = self.inner.commit(batch, changes).await?;
        let switch = self.switch.clone();
        Ok(Box::pin(async move {
            switch.settle().await;
            settled.await
        }))
    }

    async fn keys_in(&self, scope: Scope, keys_max: usize) -> Result<Vec<Key>, BackendError> {
        self.switch.pass().await?;
        self.inner.keys_in(scope, keys_max).await
    }

    async fn sweep(&self, rows_max: usize) -> Result<Swept, BackendError> {
        self.switch.pass().await?;
        self.inner.sweep(rows_max).await
    }

    async fn count(&self) -> Result<u64, BackendError> {
        self.switch.pass().await?;
        self.inner.count().await
    }
}
