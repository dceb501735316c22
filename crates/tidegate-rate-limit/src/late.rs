//! A store that is not open yet: whoever has a handle on it already is told that it is unavailable until it is.

use std::sync::{Arc, OnceLock};

use tidegate_store::{
    BoxFuture, DriverStats, Entry, Job, Key, Keys, LimitStore, Scope, StoreError, Unavailable,
};

use crate::{OpenStore, open::Running};

/// The place of a store that is opened later.
#[derive(Clone, Default)]
pub(crate) struct Late(Arc<OnceLock<Opened>>);

struct Opened {
    store: Arc<dyn LimitStore>,
    open: OpenStore,
}

impl Late {
    /// Every call goes to `open` from now on. Only the first one counts.
    pub(crate) fn fill(&self, open: OpenStore) {
        let store = open.limit_store();
        let _ = self.0.set(Opened { store, open });
    }

    fn store(&self) -> Result<&dyn LimitStore, StoreError> {
        self.0.get().map(|opened| &*opened.store).ok_or(StoreError::Unavailable(Unavailable::NotOpen))
    }
}

impl LimitStore for Late {
    fn shared(&self) -> bool {
        self.store().is_ok_and(LimitStore::shared)
    }

    fn run(&self, keys: Keys, job: Box<dyn Job>) -> BoxFuture<'_, Result<Box<dyn Job>, StoreError>> {
        Box::pin(async move { self.store()?.run(keys, job).await })
    }

    fn read(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Vec<Option<Entry>>, StoreError>> {
        Box::pin(async move { self.store()?.read(keys).await })
    }

    fn forget(&self, scope: Scope) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move { self.store()?.forget(scope).await })
    }

    fn sweep(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move { self.store()?.sweep().await })
    }
}

impl Running for Late {
    fn limit_store(&self) -> Arc<dyn LimitStore> {
        Arc::new(self.clone())
    }

    fn stats(&self) -> DriverStats {
        self.opened().map(OpenStore::stats).unwrap_or_default()
    }

    fn opened(&self) -> Option<&OpenStore> {
        self.0.get().map(|opened| &opened.open)
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(open) = self.opened() {
                open.shutdown().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{OpenStore, StoreKind, StoreOptions};
    use tidegate_store::{Key, StoreError, Unavailable};

    #[tokio::test]
    async fn it_is_unavailable_until_it_is_open() {
        let opening = OpenStore::unopened();
        let store = opening.store().limit_store();
        let read = async || store.read(vec![Key::of(&[b"some"])]).await;
        assert_eq!(read().await, Err(StoreError::Unavailable(Unavailable::NotOpen)));
        opening
            .open_on(&StoreOptions::of(StoreKind::Memory), &[tokio::runtime::Handle::current()])
            .await
            .unwrap();
        assert_eq!(read().await, Ok(vec![None]), "handles that were there before are good");
        assert!(opening.store().stats().jobs > 0);
        opening.store().shutdown().await;
        assert!(read().await.is_err());
    }
}
