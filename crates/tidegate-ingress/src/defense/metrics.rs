//! What is counted for Prometheus. No label ever holds an address, a path or a User-Agent.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::counters::Kind;

/// The metrics of all apps.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    requests: Family<RequestLabels, Counter>,
    fail_open: Family<AppLabel, Counter>,
    tracked: Family<AppLabel, Gauge>,
    firewall: Family<AppLabel, Counter>,
    /// Forwarded headers with an element that is no address.
    pub(super) unreadable: Counter,
    /// Requests that a proxy asked about, of no app.
    pub(super) unknown_app: Counter,
}

/// Those of an app, so that counting looks nothing up.
#[derive(Debug)]
pub(super) struct AppMetrics {
    by_kind: [Counter; Kind::COUNT],
    pub(super) tracked: Gauge,
}

/// Apps are named by the configuration alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AppLabel {
    app: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    app: String,
    outcome: &'static str,
    /// Empty where nothing was found.
    reason: &'static str,
}

impl Metrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "http_abuse_requests",
            "Requests by what an app's policy said of them, and why",
            self.requests.clone(),
        );
        registry.register(
            "http_abuse_fail_open",
            "Requests that were served since the policy could not be asked",
            self.fail_open.clone(),
        );
        registry.register(
            "http_abuse_tracked_clients",
            "Buckets of clients that are kept in memory",
            self.tracked.clone(),
        );
        registry.register(
            "http_firewall_refused",
            "Requests refused by the instance's lists, before any policy",
            self.firewall.clone(),
        );
        registry.register(
            "http_forwarded_unreadable",
            "Requests of a trusted proxy whose forwarded header names something that is no address",
            self.unreadable.clone(),
        );
        registry.register(
            "http_authz_unknown_app",
            "Requests that a proxy asked about and that belong to no app here; they are let through",
            self.unknown_app.clone(),
        );
    }

    pub(super) fn of_app(&self, app: &str) -> AppMetrics {
        let label = || AppLabel { app: app.to_owned() };
        let by_kind = std::array::from_fn(|place| match Kind::at(place) {
            Kind::FailOpen => self.fail_open.get_or_create(&label()).clone(),
            Kind::Firewall => self.firewall.get_or_create(&label()).clone(),
            kind => {
                let reason = kind.reason().unwrap_or_default();
                let labels = RequestLabels { app: app.to_owned(), outcome: kind.outcome(), reason };
                self.requests.get_or_create(&labels).clone()
            }
        });
        AppMetrics { by_kind, tracked: self.tracked.get_or_create(&label()).clone() }
    }
}

impl AppMetrics {
    pub(super) fn count(&self, kind: Kind) {
        self.by_kind[kind.place()].inc();
    }

    /// How many requests of that kind there have been.
    pub(super) fn counted(&self, kind: Kind) -> u64 {
        self.by_kind[kind.place()].get()
    }
}
