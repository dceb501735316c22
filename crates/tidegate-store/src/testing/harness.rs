//! A store as a contract case holds it, and what the case may do to it.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use super::faulty::{Disturbance, FaultyBackend, Switch};
use crate::{Backend, Driver, DriverOptions, LimitStore, clock::ManualClock, contract::BoxFuture};

/// Two handles on one fresh store, as two instances of an application would hold it.
pub struct Handles {
    /// One instance's handle.
    pub first: Arc<dyn LimitStore>,
    /// The other's; in a store of one process, a second handle on the same.
    pub second: Arc<dyn LimitStore>,
    /// The deadline that the store was opened with.
    pub deadline: Duration,
    /// How many calls past their deadline an instance lets wait before it answers `Busy`.
    pub max_calls: usize,
    /// What can be done to the store.
    pub harness: Arc<dyn Harness>,
}

/// What a test may do to a store from outside. By default, nothing: cases that need more are not shown.
pub trait Harness: Send + Sync + 'static {
    /// Moves the store's clock forward. False: it runs in real time.
    fn advance(&self, by_ms: u64) -> bool {
        let _ = by_ms;
        false
    }

    /// Disturbs what is behind the store. False: it can't.
    fn disturb(&self, disturbance: Disturbance) -> bool {
        let _ = disturbance;
        false
    }

    /// Opens the store again, whose handles have been dropped, as after the end of its process. None: it
    /// keeps nothing.
    fn reopen(&self) -> BoxFuture<'_, Option<Reopened>> {
        Box::pin(async { None })
    }
}

/// The two handles on a store that was opened again.
pub type Reopened = (Arc<dyn LimitStore>, Arc<dyn LimitStore>);

impl Handles {
    /// Two handles on one driver over `backend`, whose clock is `clock`, or real time.
    #[must_use]
    pub fn in_process<B: Backend>(
        backend: B,
        options: &DriverOptions,
        clock: Option<Arc<ManualClock>>,
    ) -> Self {
        let driver = Driver::start(FaultyBackend::new(backend, Switch::new()), options.clone());
        let store: Arc<dyn LimitStore> = Arc::new(driver.clone());
        let harness = Bare { clock, switch: driver.backend().switch().clone() };
        Self::new(Arc::clone(&store), store, options, harness)
    }

    /// Two handles on one driver over the backend that `open` makes. It is called again, when the driver has
    /// stopped and let go of the last backend, to show what a new process finds.
    #[must_use]
    pub fn reopenable<B: Backend>(
        open: impl Fn() -> B + Send + Sync + 'static,
        options: &DriverOptions,
        clock: Option<Arc<ManualClock>>,
    ) -> Self {
        let bare = Bare { clock, switch: Switch::new() };
        let harness = Reopening { bare, open, options: options.clone(), driver: Mutex::new(None) };
        let (first, second) = harness.start();
        Self::new(first, second, options, harness)
    }

    /// A driver over each of two backends on one shared store, which runs in real time.
    #[must_use]
    pub fn two_instances<B: Backend>(first: B, second: B, options: &DriverOptions) -> Self {
        let switch = Switch::new();
        let start = |backend| -> Arc<dyn LimitStore> {
            Arc::new(Driver::start(FaultyBackend::new(backend, switch.clone()), options.clone()))
        };
        Self::new(start(first), start(second), options, Bare { clock: None, switch: switch.clone() })
    }

    fn new(
        first: Arc<dyn LimitStore>,
        second: Arc<dyn LimitStore>,
        options: &DriverOptions,
        harness: impl Harness,
    ) -> Self {
        let (deadline, max_calls) = (options.deadline, options.max_calls);
        Self { first, second, deadline, max_calls, harness: Arc::new(harness) }
    }

    /// Lets `ms` pass on the store's clock, in real time where that can't be moved. Answers whether it was
    /// moved.
    pub async fn pass(&self, ms: u64) -> bool {
        let moved = self.harness.advance(ms);
        if !moved {
            // A little more: clocks are read in whole milliseconds.
            tokio::time::sleep(Duration::from_millis(ms + 2)).await;
        }
        moved
    }

    /// One of the two handles, by turns.
    #[must_use]
    pub fn by_turns(&self, number: usize) -> &Arc<dyn LimitStore> {
        if number.is_multiple_of(2) { &self.first } else { &self.second }
    }

    /// Opens the store again, if it keeps anything.
    pub async fn reopen(self) -> Option<Self> {
        let Self { first, second, deadline, max_calls, harness } = self;
        drop((first, second));
        let (first, second) = harness.reopen().await?;
        Some(Self { first, second, deadline, max_calls, harness })
    }
}

struct Bare {
    clock: Option<Arc<ManualClock>>,
    switch: Switch,
}

impl Harness for Bare {
    fn advance(&self, by_ms: u64) -> bool {
        self.clock.as_ref().inspect(|clock| clock.advance(by_ms)).is_some()
    }

    fn disturb(&self, disturbance: Disturbance) -> bool {
        self.switch.set(disturbance);
        true
    }
}

struct Reopening<B: Backend, F> {
    bare: Bare,
    open: F,
    options: DriverOptions,
    driver: Mutex<Option<Driver<FaultyBackend<B>>>>,
}

impl<B: Backend, F: Fn() -> B> Reopening<B, F> {
    fn start(&self) -> Reopened {
        let backend = FaultyBackend::new((self.open)(), self.bare.switch.clone());
        let driver = Driver::start(backend, self.options.clone());
        let store: Arc<dyn LimitStore> = Arc::new(driver.clone());
        *self.driver.lock() = Some(driver);
        (Arc::clone(&store), store)
    }
}

impl<B: Backend, F: Fn() -> B + Send + Sync + 'static> Harness for Reopening<B, F> {
    fn advance(&self, by_ms: u64) -> bool {
        self.bare.advance(by_ms)
    }

    fn disturb(&self, disturbance: Disturbance) -> bool {
        self.bare.disturb(disturbance)
    }

    fn reopen(&self) -> BoxFuture<'_, Option<Reopened>> {
        Box::pin(async {
            let driver = self.driver.lock().take();
            if let Some(driver) = driver {
                driver.shutdown().await;
            }
            Some(self.start())
        })
    }
}
