//! The defense: whose request it is, the instance's firewall, and each app's policy.
//!
//! [`Defense::judge`] is asked for every request and answers within about a microsecond. Everything that can
//! fail fails open: a policy that can't be read or a decision that panics lets the request pass and counts it.

mod app;
mod audit;
mod caller;
mod changes;
mod counters;
mod judge;
mod log;
mod metrics;
mod options;
mod policies;
mod refusal;
mod replaying;
mod sources;
mod status;
mod store;
mod suggestion;
mod table;
mod view;
mod watch;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock, atomic::AtomicUsize},
};

use parking_lot::RwLock;
use prometheus_client::registry::Registry;
use tidegate_core::defense::Facts;
use tidegate_store::{LimitStore, clock::Clock};

pub use app::AppId;
pub use audit::{AUDIT_ROWS_MAX, AuditEntry};
pub use caller::Caller;
pub use counters::{Counters, Step, Window};
pub use judge::{Judged, RecordHandle};
pub use options::{AppSetup, DefenseOptions};
pub use policies::PutError;
pub use refusal::{Refusal, RefusalBody};
pub use replaying::ReplayError;
pub use status::{Condition, Status};
pub use view::{
    AbuseView, AccessLogEntry, AppOverview, ReplayReport, ReplayStep, TopClient, TrafficView, WouldBlock,
};

use app::App;
use metrics::Metrics;
use options::Settings;

/// The defense of an instance; clones are handles of the same one.
#[derive(Clone)]
pub struct Defense(Arc<Inner>);

struct Inner {
    store: Arc<dyn LimitStore>,
    clock: Arc<dyn Clock>,
    settings: RwLock<Settings>,
    apps: RwLock<BTreeMap<String, AppId>>,
    metrics: Metrics,
    replays: AtomicUsize,
    /// Why the store could not be read when it was last tried.
    store_fault: RwLock<Option<String>>,
    hook: OnceLock<Hook>,
}

type Hook = Box<dyn Fn(&Facts<'_>) + Send + Sync>;

impl Defense {
    /// The defense of these apps, with the policies that the store holds. It never fails: as long as the store
    /// can't be read, requests pass and are counted. [`Defense::run`] keeps it up to date.
    pub async fn open(store: Arc<dyn LimitStore>, clock: Arc<dyn Clock>, options: DefenseOptions) -> Self {
        let inner = Inner {
            store,
            clock,
            settings: RwLock::new(Settings::default()),
            apps: RwLock::default(),
            metrics: Metrics::default(),
            replays: AtomicUsize::new(0),
            store_fault: RwLock::default(),
            hook: OnceLock::new(),
        };
        let defense = Self(Arc::new(inner));
        defense.reconfigure(options);
        defense.refresh().await;
        defense
    }

    /// Takes up a new configuration. Buckets, counters and logs live on. The policy of an app that is new is
    /// in force once [`Defense::run`] or [`Defense::refresh`] has read it.
    pub fn reconfigure(&self, options: DefenseOptions) {
        let now_ms = self.0.clock.now_ms();
        let (settings, setups) = options.split();
        let mut apps = self.0.apps.write();
        apps.retain(|name, _| setups.iter().any(|setup| setup.name == *name));
        for setup in setups {
            let app = apps.entry(setup.name).or_insert_with_key(|name| {
                let metrics = self.0.metrics.of_app(name);
                AppId(Arc::new(App::new(name, metrics, settings.tracked_clients_max, settings.log)))
            });
            app.0.reconfigure(setup.routed, settings.tracked_clients_max, settings.log, now_ms);
        }
        *self.0.settings.write() = settings;
    }

    /// The app of that name.
    #[must_use]
    pub fn app(&self, name: &str) -> Option<AppId> {
        self.0.apps.read().get(name).cloned()
    }

    /// Adds the defense's metrics.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.0.metrics.register(registry);
    }

    /// Says why the store can't be read, for the status of apps whose policy is not known until it can.
    pub fn note_store_fault(&self, fault: &str) {
        *self.0.store_fault.write() = Some(fault.to_owned());
    }

    /// Runs `hook` with every decision, to see in tests what a panic there does. Only the first one counts.
    #[doc(hidden)]
    pub fn interpose(&self, hook: impl Fn(&Facts<'_>) + Send + Sync + 'static) {
        let _ = self.0.hook.set(Box::new(hook));
    }

    /// Counts a request that a proxy asked about, of no app that is known here. It is let through.
    pub(crate) fn count_unknown_app(&self) {
        self.0.metrics.unknown_app.inc();
    }

    fn apps(&self) -> Vec<AppId> {
        self.0.apps.read().values().cloned().collect()
    }
}

impl fmt::Debug for Defense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Defense").field("apps", &self.0.apps.read().len()).finish_non_exhaustive()
    }
}
