//! What admission counts. No label ever holds an identity or anything else that callers choose.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use tidegate_core::tracker::Cause;

use crate::refusal::{Dimension, Refusal};

/// The stage that decided.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stage {
    One,
    Two,
}

/// Counters with handles kept, so that counting never looks anything up.
#[derive(Debug)]
pub(crate) struct Metrics {
    admitted_by_stage: Family<StageLabel, Counter>,
    refused_by_reason: Family<RefusalLabels, Counter>,
    refused: [[Counter; CAUSES.len()]; Dimension::ALL.len()],
    pub(crate) bodies_too_large: Counter,
    pub(crate) peers_unknown: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabel {
    stage: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    dimension: &'static str,
    cause: &'static str,
}

const CAUSES: [Cause; 3] = [Cause::Rate, Cause::Concurrency, Cause::TrackedKeys];

impl Stage {
    pub(crate) const ALL: [Self; 2] = [Self::One, Self::Two];

    const fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Two => "two",
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let admitted_by_stage = Family::<StageLabel, Counter>::default();
        let refused_by_reason = Family::<RefusalLabels, Counter>::default();
        let refused = Dimension::ALL.map(|dimension| {
            CAUSES.map(|cause| {
                let labels = RefusalLabels { dimension: dimension.name(), cause: name(cause) };
                refused_by_reason.get_or_create(&labels).clone()
            })
        });
        let (bodies_too_large, peers_unknown) = Default::default();
        Self { admitted_by_stage, refused_by_reason, refused, bodies_too_large, peers_unknown }
    }
}

impl Metrics {
    pub(crate) fn register(&self, transport: &str, registry: &mut Registry) {
        let name = |what: &str| format!("tidegate_admission_{transport}_{what}");
        registry.register(
            name("admitted"),
            "What was admitted, by the stage that it passed",
            self.admitted_by_stage.clone(),
        );
        registry.register(
            name("refused"),
            "What was refused, by the budget or ceiling in the way",
            self.refused_by_reason.clone(),
        );
        if transport == "http" {
            registry.register(
                name("bodies_too_large"),
                "Requests refused for the size of their body",
                self.bodies_too_large.clone(),
            );
            registry.register(
                name("peers_unknown"),
                "Requests refused since nothing said where they came from: the service is wired wrongly",
                self.peers_unknown.clone(),
            );
        }
    }

    /// What the tracker counts in, by stage.
    pub(crate) fn admitted(&self) -> [Counter; Stage::ALL.len()] {
        Stage::ALL.map(|stage| {
            let label = StageLabel { stage: stage.name() };
            self.admitted_by_stage.get_or_create(&label).clone()
        })
    }

    pub(crate) fn count(&self, refusal: &Refusal) {
        self.refused[refusal.dimension as usize][refusal.cause as usize].inc();
    }
}

const fn name(cause: Cause) -> &'static str {
    match cause {
        Cause::Rate => "rate",
        Cause::Concurrency => "concurrency",
        Cause::TrackedKeys => "tracked_keys",
    }
}
