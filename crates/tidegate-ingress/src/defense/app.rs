//! An app behind the defense: its policy in force, its clients' buckets, and what it has seen.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};
use tidegate_core::{
    address::Address,
    defense::{Facts, Verdict, decide},
    policy::Policy,
};

use super::{
    counters::{Counters, Kind, Step, Tallies, Window},
    log::{Log, LogBounds, Segment},
    metrics::AppMetrics,
    refusal::Cause,
    sources::Sources,
    store::Stored,
    table::Clients,
};

/// An app: a handle that stays good when the configuration changes.
#[derive(Clone)]
pub struct AppId(pub(super) Arc<App>);

pub(super) struct App {
    pub(super) name: String,
    /// Whether it has a domain and is not stopped.
    pub(super) routed: AtomicBool,
    pub(super) clients: Clients,
    pub(super) metrics: AppMetrics,
    in_force: RwLock<Arc<InForce>>,
    seen: Mutex<Seen>,
}

/// The policy that decides now.
#[derive(Debug)]
pub(super) struct InForce {
    pub(super) version: u64,
    pub(super) saved_at_ms: u64,
    pub(super) policy: Rules,
}

#[derive(Debug)]
pub(super) enum Rules {
    Policy(Box<Policy>),
    /// The store holds something else, and what is wrong with it.
    Invalid(String),
    /// The store has never been read.
    Unknown,
}

/// What the app has seen, behind one lock.
struct Seen {
    tallies: Tallies,
    log: Log,
    sources: Sources,
}

/// Where a request came from, for the status.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub(super) peer: Address,
    /// Whether it carries a forwarded header.
    pub(super) forwarded: bool,
    /// Whether the peer is a trusted proxy.
    pub(super) trusted: bool,
}

impl App {
    pub(super) fn new(name: &str, metrics: AppMetrics, tracked_max: usize, log: LogBounds) -> Self {
        let unknown = InForce { version: 0, saved_at_ms: 0, policy: Rules::Unknown };
        Self {
            name: name.to_owned(),
            routed: AtomicBool::new(false),
            clients: Clients::new(tracked_max),
            metrics,
            in_force: RwLock::new(Arc::new(unknown)),
            seen: Mutex::new(Seen {
                tallies: Tallies::new(),
                log: Log::new(log),
                sources: Sources::default(),
            }),
        }
    }

    /// What the policy says of a request; how it counts, and why it is refused if it is.
    pub(super) fn decide(&self, facts: &Facts<'_>) -> (Kind, Option<Cause>) {
        let in_force = self.in_force.read();
        let Rules::Policy(policy) = &in_force.policy else { return (Kind::FailOpen, None) };
        let verdict: Verdict = decide(policy, facts, &mut self.clients.of_one_client());
        let kind = Kind::from(verdict);
        match kind {
            Kind::Blocked(reason) => (kind, Some(Cause::Policy(reason, verdict.wait))),
            _ => (kind, None),
        }
    }

    /// Counts a request and appends it to the log; tells its number there.
    pub(super) fn record(&self, facts: &Facts<'_>, kind: Kind, status: u16, origin: Origin) -> u64 {
        self.metrics.count(kind);
        let mut seen = self.seen.lock();
        seen.tallies.count(kind, facts.at_ms);
        seen.sources.note(origin, facts.at_ms);
        seen.log.push(facts, kind, status)
    }

    /// Counts a request of which nothing more is known.
    pub(super) fn count_fail_open(&self, at_ms: u64) {
        self.metrics.count(Kind::FailOpen);
        self.seen.lock().tallies.count(Kind::FailOpen, at_ms);
    }

    pub(super) fn finish(&self, number: u64, status: u16) {
        self.seen.lock().log.finish(number, status);
    }

    /// Puts what was saved in force.
    pub(super) fn put_in_force(&self, stored: Stored) {
        *self.in_force.write() = Arc::new(InForce::from(stored));
    }

    /// Puts what the store held in force, unless something else than `before` is in force meanwhile: what was
    /// read may be older than that.
    pub(super) fn replace_in_force(&self, before: &Arc<InForce>, stored: Stored) {
        let next = Arc::new(InForce::from(stored));
        let mut in_force = self.in_force.write();
        if Arc::ptr_eq(&in_force, before) {
            *in_force = next;
        }
    }

    pub(super) fn in_force(&self) -> Arc<InForce> {
        self.in_force.read().clone()
    }

    pub(super) fn reconfigure(&self, routed: bool, tracked_max: usize, log: LogBounds, at_ms: u64) {
        self.routed.store(routed, Ordering::Relaxed);
        self.clients.resize(tracked_max, at_ms);
        self.seen.lock().log.set_bounds(log);
    }

    pub(super) fn counters(&self, window: Window, now_ms: u64) -> Counters {
        let series = self.seen.lock().tallies.series(window, now_ms);
        Counters::of(window, &series)
    }

    pub(super) fn steps(&self, window: Window, now_ms: u64) -> Vec<Step> {
        let series = self.seen.lock().tallies.series(window, now_ms);
        series.iter().map(Step::of).collect()
    }

    /// Whether the clients' addresses are likely hidden by a proxy that is not trusted.
    pub(super) fn hides_clients(&self, now_ms: u64) -> bool {
        self.seen.lock().sources.hide_clients(now_ms)
    }

    pub(super) fn log(&self) -> Vec<Arc<Segment>> {
        self.seen.lock().log.snapshot()
    }
}

impl From<Stored> for InForce {
    fn from(stored: Stored) -> Self {
        let policy = match stored.policy {
            Ok(policy) => Rules::Policy(Box::new(policy)),
            Err(fault) => Rules::Invalid(fault),
        };
        Self { version: stored.version, saved_at_ms: stored.saved_at_ms, policy }
    }
}

impl fmt::Debug for AppId {
    /// By its name: what it has seen says who its clients are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AppId").field(&self.0.name).finish()
    }
}
