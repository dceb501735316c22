//! What the guard store counts. No label ever holds an identity, a key or anything else that callers choose.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

/// How an RPC ended, as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// 200, no step denied.
    Allowed,
    /// 200, at least one step denied.
    Denied,
    /// 400.
    BadRequest,
    /// 401.
    Unauthenticated,
    /// 409.
    Conflict,
    /// 413.
    TooLarge,
    /// 429.
    Limited,
    /// 503 by an operator or a budget.
    Stopped,
    /// 503 for any other reason.
    Unavailable,
}

/// The counters, with handles kept so that counting never looks anything up.
#[derive(Debug)]
pub struct Metrics {
    endings: [Counter; Ending::ALL.len()],
    /// Commands of RPCs that were executed, skipped ones included.
    pub commands: Counter,
    /// Steps answered from their operation record.
    pub steps_replayed: Counter,
    /// Connections turned away at the bound, or failed to accept.
    pub connections_refused: Counter,
    /// Requests refused unread, since their source had spent its budget of failed authentications.
    pub sources_cut: Counter,
    /// Seconds from a whole request head to the answer.
    pub seconds: Histogram,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndingLabel {
    ending: &'static str,
}

impl Ending {
    const ALL: [Self; 9] = [
        Self::Allowed,
        Self::Denied,
        Self::BadRequest,
        Self::Unauthenticated,
        Self::Conflict,
        Self::TooLarge,
        Self::Limited,
        Self::Stopped,
        Self::Unavailable,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::BadRequest => "bad_request",
            Self::Unauthenticated => "unauthenticated",
            Self::Conflict => "operation_conflict",
            Self::TooLarge => "body_too_large",
            Self::Limited => "guard_limited",
            Self::Stopped => "guard_stopped",
            Self::Unavailable => "guard_unavailable",
        }
    }
}

impl Metrics {
    /// The guard store's counters, registered.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let endings = Family::<EndingLabel, Counter>::default();
        registry.register("tidegate_guard_rpcs", "RPCs by how they ended", endings.clone());
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let commands = counter("tidegate_guard_commands", "Commands of executed RPCs, skipped ones included");
        let steps_replayed =
            counter("tidegate_guard_steps_replayed", "Steps answered from their operation record");
        let connections_refused =
            counter("tidegate_guard_connections_refused", "Connections turned away or not accepted");
        let sources_cut = counter(
            "tidegate_guard_unread_refusals",
            "Requests refused unread after too many failed authentications of their source",
        );
        let seconds =
            Histogram::new([0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 2.0]);
        registry.register(
            "tidegate_guard_rpc_seconds",
            "Seconds from request head to answer",
            seconds.clone(),
        );
        Self {
            endings: Ending::ALL
                .map(|ending| endings.get_or_create(&EndingLabel { ending: ending.name() }).clone()),
            commands,
            steps_replayed,
            connections_refused,
            sources_cut,
            seconds,
        }
    }

    /// Counts an RPC that ended so.
    pub fn count(&self, ending: Ending) {
        self.endings[ending as usize].inc();
    }
}
