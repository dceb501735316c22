//! The contract that every limit store keeps.

use std::{any::Any, future::Future, pin::Pin};

use crate::{Entry, Key, Scope, StoreError, View};

/// What a store's future looks like behind a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A store of short-lived rows that are read and written together, atomically, on the store's own clock.
///
/// Every call is answered within the store's deadline, by an answer or by
/// [`StoreError::Unavailable`]. Nothing fails open or closed by itself: callers decide.
pub trait LimitStore: Send + Sync + 'static {
    /// Whether every instance of the application sees the same entries.
    fn shared(&self) -> bool;

    /// Atomically: reads the live entries of `keys`, runs `job` on them, writes what it changed, with no
    /// other update to those keys in between. Hands the job back once its effect is as durable as the
    /// store was told to make it. [`LimitStoreExt::update`] is the convenient form.
    fn run(&self, keys: Keys, job: Box<dyn Job>) -> BoxFuture<'_, Result<Box<dyn Job>, StoreError>>;

    /// The live entries of `keys`, judged on the store's clock.
    fn read(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Vec<Option<Entry>>, StoreError>>;

    /// Removes every entry of `scope` that was there when it was called; answers how many went. For an
    /// operator's hand, not for a request: it may look at every entry of the store. An error says that some
    /// may be left.
    fn forget(&self, scope: Scope) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Removes expired entries in bounded batches; answers how many went.
    fn sweep(&self) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// The keys of an update, in the order in which its view has them.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    pub(crate) all: Vec<Key>,
    pub(crate) watched: usize,
}

impl Keys {
    /// With `more` keys whose entries are read and never written. Nobody changes them during the update either,
    /// but a store that tells watching from writing lets instances that only watch them go on side by side.
    #[must_use]
    pub fn watching(mut self, more: impl IntoIterator<Item = Key>) -> Self {
        let before = self.all.len();
        self.all.extend(more);
        self.watched += self.all.len() - before;
        self
    }
}

impl From<Vec<Key>> for Keys {
    fn from(all: Vec<Key>) -> Self {
        Self { all, watched: 0 }
    }
}

/// A decision over rows: synchronous and pure, since it may run more than once.
pub trait Job: Send + 'static {
    /// Reads and changes the rows. The last run is the one that counts.
    fn apply(&mut self, view: &mut View<'_>);

    /// The job itself, to take its answer out.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// [`LimitStore::run`] with a closure.
pub trait LimitStoreExt: LimitStore {
    /// Atomically: hands the live entries of `keys` and the store's clock to `apply`, and writes what it
    /// changed.
    ///
    /// # Errors
    /// [`StoreError::Invalid`]: something is out of bounds; nothing was written.
    /// [`StoreError::Unavailable`]: no answer in time; the update may or may not have happened.
    fn update<R, F>(&self, keys: Vec<Key>, apply: F) -> impl Future<Output = Result<R, StoreError>> + Send
    where
        R: Send + 'static,
        F: FnMut(&mut View<'_>) -> R + Send + 'static,
    {
        self.update_watching(keys.into(), apply)
    }

    /// [`LimitStoreExt::update`] of which some keys are only watched.
    ///
    /// # Errors
    /// As there; and [`crate::Invalid::Watched`] if one of them is written.
    fn update_watching<R, F>(
        &self,
        keys: Keys,
        apply: F,
    ) -> impl Future<Output = Result<R, StoreError>> + Send
    where
        R: Send + 'static,
        F: FnMut(&mut View<'_>) -> R + Send + 'static,
    {
        let job = self.run(keys, Box::new(Closure { apply, answer: None }));
        async move {
            let done = job.await?.into_any().downcast::<Closure<F, R>>().ok();
            Ok(done.and_then(|job| job.answer).expect("a store hands back the job it was given, applied"))
        }
    }
}

impl<S: LimitStore + ?Sized> LimitStoreExt for S {}

struct Closure<F, R> {
    apply: F,
    answer: Option<R>,
}

impl<R, F> Job for Closure<F, R>
where
    R: Send + 'static,
    F: FnMut(&mut View<'_>) -> R + Send + 'static,
{
    fn apply(&mut self, view: &mut View<'_>) {
        self.answer = Some((self.apply)(view));
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
