//! What the guard store counts. No label ever holds an identity, a key or anything else that callers choose.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use tidegate_core::admission::Axis;
use tidegate_protocol::{name, response::StopReason};

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
    /// Refusals of identities that were answered from memory.
    pub refusals_remembered: Counter,
    denials: Family<DenialLabels, Counter>,
    stops: Family<StopLabels, Counter>,
    spent: Family<FamilyLabel, Gauge>,
    budget: Family<FamilyLabel, Gauge>,
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

/// The counters of a family, with handles kept as in [`Metrics`].
#[derive(Debug)]
pub(crate) struct FamilyMetrics {
    spent: Gauge,
    denials: [Counter; Axis::COUNT],
    stops: [Counter; STOP_REASONS.len()],
}

/// Families are named by the configuration alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FamilyLabel {
    family: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DenialLabels {
    family: String,
    axis: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StopLabels {
    family: String,
    reason: &'static str,
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
        let refusals_remembered = counter(
            "tidegate_guard_denials_remembered",
            "Denied identities that were answered from memory, without the store",
        );
        let seconds =
            Histogram::new([0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 2.0]);
        registry.register(
            "tidegate_guard_rpc_seconds",
            "Seconds from request head to answer",
            seconds.clone(),
        );
        let (denials, stops) = (Family::default(), Family::default());
        let (spent, budget) = (Family::default(), Family::default());
        registry.register(
            "tidegate_guard_denials",
            "RPCs refused since an identity had spent its share, by family and kind of identity",
            denials.clone(),
        );
        registry.register(
            "tidegate_guard_stops",
            "RPCs refused by an operator or for want of budget, by family and reason",
            stops.clone(),
        );
        registry.register(
            "tidegate_guard_family_spent",
            "Commands that the family has spent today, as of its last admitted RPC",
            spent.clone(),
        );
        registry.register("tidegate_guard_family_budget", "Commands of the family's day", budget.clone());
        Self {
            refusals_remembered,
            denials,
            stops,
            spent,
            budget,
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

    /// The counters of a family. They are those of an earlier guard of this process, if it had the family.
    pub(crate) fn of_family(&self, name: &name::Family, budget: u64) -> FamilyMetrics {
        let family = || name.as_str().to_owned();
        let label = FamilyLabel { family: family() };
        self.budget.get_or_create(&label).set(signed(budget));
        let denials = Axis::ALL.map(|axis| {
            self.denials.get_or_create(&DenialLabels { family: family(), axis: axis.as_str() }).clone()
        });
        let stops = STOP_REASONS.map(|reason| {
            self.stops.get_or_create(&StopLabels { family: family(), reason: reason.as_str() }).clone()
        });
        FamilyMetrics { spent: self.spent.get_or_create(&label).clone(), denials, stops }
    }
}

impl FamilyMetrics {
    /// Shows what the family has spent.
    pub(crate) fn spent(&self, used: u64) {
        self.spent.set(signed(used));
    }

    pub(crate) fn count_denial(&self, axis: Axis) {
        self.denials[axis as usize].inc();
    }

    pub(crate) fn count_stop(&self, reason: StopReason) {
        self.stops[reason as usize].inc();
    }
}

/// In the order of their numbers.
const STOP_REASONS: [StopReason; 3] =
    [StopReason::OperatorStop, StopReason::BudgetExhausted, StopReason::BudgetInsufficient];

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
