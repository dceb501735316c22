//! Two instances on one database, as the contract's tests hold them, and a few words for the others.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tidegate_store::{
    Backend, BackendError, BoxFuture, Change, Driver, DriverOptions, Entry, Key, LimitStore, LimitStoreExt,
    NewState, StoreError,
    clock::ManualClock,
    testing::{Disturbance, FaultyBackend, Handles, Harness, Reopened, Switch},
};

/// Makes one more backend on the same database.
pub(crate) type Opener<B> = Box<dyn Fn() -> BoxFuture<'static, B> + Send + Sync>;

/// So long that no test sees its end, in ms.
pub(crate) const LONG_MS: u64 = 60 * 60 * 1000;

/// Two instances, each with its own connections, and what the contract's tests may do to them.
pub(crate) async fn two_instances<B: Backend>(
    open: Opener<B>,
    options: DriverOptions,
    clock: Option<Arc<ManualClock>>,
) -> Handles {
    let (deadline, max_calls) = (options.deadline, options.max_calls);
    let harness = Instances { open, options, clock, switch: Switch::new(), drivers: Mutex::default() };
    let (first, second) = harness.start().await;
    Handles { first, second, deadline, max_calls, harness: Arc::new(harness) }
}

struct Instances<B: Backend> {
    open: Opener<B>,
    options: DriverOptions,
    clock: Option<Arc<ManualClock>>,
    switch: Switch,
    drivers: Mutex<Vec<Driver<FaultyBackend<B>>>>,
}

impl<B: Backend> Instances<B> {
    async fn start(&self) -> Reopened {
        (self.start_one().await, self.start_one().await)
    }

    async fn start_one(&self) -> Arc<dyn LimitStore> {
        let backend = FaultyBackend::new((self.open)().await, self.switch.clone());
        let driver = Driver::start(backend, self.options.clone());
        self.drivers.lock().push(driver.clone());
        Arc::new(driver)
    }
}

impl<B: Backend> Harness for Instances<B> {
    fn advance(&self, by_ms: u64) -> bool {
        self.clock.as_ref().inspect(|clock| clock.advance(by_ms)).is_some()
    }

    fn disturb(&self, disturbance: Disturbance) -> bool {
        self.switch.set(disturbance);
        true
    }

    fn reopen(&self) -> BoxFuture<'_, Option<Reopened>> {
        Box::pin(async {
            let drivers = std::mem::take(&mut *self.drivers.lock());
            for driver in drivers {
                driver.shutdown().await;
            }
            Some(self.start().await)
        })
    }
}

/// A driver with the deadline of its backend.
pub(crate) fn drive<B: Backend>(backend: B, deadline: Duration) -> Driver<B> {
    Driver::start(backend, DriverOptions { deadline, ..DriverOptions::new("sql", 100_000) })
}

pub(crate) fn key(number: u64) -> Key {
    Key::of(&[b"test", &number.to_le_bytes()])
}

/// Adds one to a counter; answers what it is then.
pub(crate) async fn bump(store: &impl LimitStore, key: Key) -> Result<u64, StoreError> {
    let update = store.update(vec![key], |view| {
        let count = count(view.get(0)) + 1;
        view.put(0, count.to_le_bytes().as_slice(), view.now_ms() + LONG_MS);
        count
    });
    update.await
}

/// The counter at `key`, asked for until the store answers.
pub(crate) async fn counter(store: &impl LimitStore, key: Key) -> u64 {
    for _ in 0..100 {
        if let Ok(rows) = store.read(vec![key]).await {
            return count(rows[0].as_ref());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the store does not answer any more");
}

pub(crate) fn count(entry: Option<&Entry>) -> u64 {
    entry.map_or(0, |entry| u64::from_le_bytes(entry.value.as_slice().try_into().expect("a counter")))
}

/// Commits `changes` and waits until they have settled.
pub(crate) async fn commit<B: Backend>(
    backend: &B,
    batch: B::Batch,
    changes: Vec<Change>,
) -> Result<(), BackendError> {
    backend.commit(batch, changes).await?.await
}

/// A row as it shall be.
pub(crate) fn put(key: Key, value: &[u8], expires_at_ms: u64) -> Change {
    Change { key, state: NewState::Put(Entry { value: value.into(), expires_at_ms }) }
}

/// An error with all its causes, as a log would show it.
pub(crate) fn chain(error: impl std::error::Error + Send + Sync + 'static) -> String {
    format!("{:#} {0:?}", anyhow::Error::new(error))
}
