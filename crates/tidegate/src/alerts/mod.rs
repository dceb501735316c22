//! Alerts: the few log events that somebody should act on, counted and posted to a webhook.
//!
//! A crate raises one by logging with a `kind` that is one of [`KINDS`]. Nothing else is needed there: a layer
//! of its own beside the log lines takes it, whatever is logged as lines, counts it, and hands it to the task
//! that posts. Raising an alert never waits.
//!
//! The message of such an event is posted as it is, so it is a text without values; of the fields only those go
//! out that are listed in one place, the module `alert`.

mod alert;
mod layer;
mod metrics;
mod target;
mod webhook;

pub use layer::AlertLayer;
use prometheus_client::registry::Registry;
pub use target::{Target, TargetError};
use tokio::sync::mpsc;
pub use webhook::Webhook;

use self::{alert::Alert, metrics::Counters};

/// Every kind of alert. They are stable: people match on them.
pub const KINDS: [&str; 8] = [
    "budget-warning",
    "budget-exhausted",
    "reserve-entered",
    "fairness-denied",
    "fence-changed",
    "sweep-failing",
    "limit-store-filling",
    "limit-store-full",
];

/// The alerts of a process, before it is known where they are posted: those that come meanwhile wait.
#[derive(Debug)]
pub struct Alerts {
    counters: Counters,
    queue: mpsc::Receiver<Alert>,
}

/// A layer that takes alerts, and where they come out.
#[must_use]
pub fn channel() -> (AlertLayer, Alerts) {
    let (sender, queue) = mpsc::channel(WAITING_MAX);
    let counters = Counters::default();
    (AlertLayer::new(counters.clone(), sender), Alerts { counters, queue })
}

impl Alerts {
    /// Adds their counters to the metrics.
    pub fn register(&self, registry: &mut Registry) {
        self.counters.register(registry);
    }

    /// Posts those that wait and all that come to `target`; without one, they are counted and no more.
    ///
    /// Starts a task on the present runtime.
    #[must_use]
    pub fn attach(self, target: Option<Target>) -> Webhook {
        Webhook::start(self.queue, target, self.counters)
    }
}

/// A dead receiver costs this many short texts, and no more; older alerts say more about how a trouble began
/// than later ones, so what comes while the queue is full is dropped.
const WAITING_MAX: usize = 256;
