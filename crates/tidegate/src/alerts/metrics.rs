//! What is counted about alerts and their delivery.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::KINDS;

/// The counters. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Counters {
    by_kind: Family<KindLabel, Counter>,
    by_outcome: Family<OutcomeLabel, Counter>,
    /// In the order of [`KINDS`].
    pub(super) alerts: [Counter; KINDS.len()],
    pub(super) dropped: Counter,
    pub(super) delivered: Counter,
    pub(super) failed: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

impl Default for Counters {
    /// All there from the start, so that the first alert is a rise from 0.
    fn default() -> Self {
        let by_kind = Family::<KindLabel, Counter>::default();
        let by_outcome = Family::<OutcomeLabel, Counter>::default();
        let outcome = |outcome| by_outcome.get_or_create(&OutcomeLabel { outcome }).clone();
        Self {
            alerts: KINDS.map(|kind| by_kind.get_or_create(&KindLabel { kind }).clone()),
            dropped: Counter::default(),
            delivered: outcome("delivered"),
            failed: outcome("failed"),
            by_kind,
            by_outcome,
        }
    }
}

impl Counters {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("tidegate_alerts", "Alerts by kind", self.by_kind.clone());
        registry.register(
            "tidegate_webhook_deliveries",
            "Alerts that the webhook's receiver took, and those that it did not take at the last attempt",
            self.by_outcome.clone(),
        );
        registry.register(
            "tidegate_webhook_dropped",
            "Alerts that were not posted since too many waited",
            self.dropped.clone(),
        );
    }
}
