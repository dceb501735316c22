//! A defense on a clock that the test moves, over a store in memory.

use std::{net::IpAddr, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_core::{
    forwarded::Source,
    network::{Prefix, PrefixSet},
};
use tidegate_ingress::defense::{AppSetup, Defense, DefenseOptions, Judged};
use tidegate_store::{
    Driver, DriverOptions, LimitStore, MemoryBackend,
    clock::ManualClock,
    testing::{FaultyBackend, Switch},
};

pub(crate) const NOW_MS: u64 = 1_800_000_000_000;
pub(crate) const PROXY: &str = "198.51.100.10";

pub(crate) struct Site {
    pub(crate) defense: Defense,
    pub(crate) store: Arc<dyn LimitStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) disturbance: Switch,
}

pub(crate) fn networks(texts: &[&str]) -> PrefixSet {
    texts.iter().map(|text| Prefix::parse(text).unwrap()).collect()
}

pub(crate) fn options() -> DefenseOptions {
    DefenseOptions {
        apps: vec![setup("shop", true), setup("blog", true)],
        tracked_clients_max: 10_000,
        access_log_entries: 10_000,
        access_log_ms: 900_000,
        trusted: networks(&["198.51.100.0/24"]),
        forwarded: Source::XForwardedFor,
        firewall_allow: networks(&["203.0.113.66"]),
        firewall_deny: networks(&["203.0.113.64/28"]),
    }
}

pub(crate) fn setup(name: &str, routed: bool) -> AppSetup {
    AppSetup { name: name.to_owned(), routed }
}

impl Site {
    pub(crate) async fn new() -> Self {
        Self::with(options()).await
    }

    pub(crate) async fn with(options: DefenseOptions) -> Self {
        let clock = Arc::new(ManualClock::at(NOW_MS));
        let disturbance = Switch::new();
        let backend = FaultyBackend::new(MemoryBackend::new(clock.clone()), disturbance.clone());
        let store: Arc<dyn LimitStore> =
            Arc::new(Driver::start(backend, DriverOptions::new("memory", 10_000)));
        let defense = Defense::open(store.clone(), clock.clone(), options).await;
        Self { defense, store, clock, disturbance }
    }

    /// Saves a policy for the shop.
    pub(crate) async fn put(&self, document: &str) -> u64 {
        let view = self.defense.put_policy("shop", None, document.as_bytes(), "operator").await;
        view.unwrap_or_else(|error| panic!("{document}: {error:?}")).version
    }

    pub(crate) fn ask(&self, client: &str) -> Judged {
        self.request("shop", client, "GET", "/", &[("user-agent", "curl/8")])
    }

    /// Whether so many requests of a client, one after the other, are let through.
    pub(crate) fn pass(&self, client: &str, count: usize) -> String {
        (0..count).map(|_| if self.ask(client).refusal.is_none() { '.' } else { 'x' }).collect()
    }

    /// A request that comes from `client` itself.
    pub(crate) fn request(
        &self,
        app: &str,
        client: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Judged {
        let (peer, headers): (IpAddr, _) = (client.parse().unwrap(), header_map(headers));
        let caller = self.defense.caller(peer, &headers);
        self.defense.judge(&self.defense.app(app).unwrap(), &caller, method, path)
    }
}

pub(crate) fn header_map(headers: &[(&str, &str)]) -> HeaderMap {
    let header = |(name, value): &(&str, &str)| {
        (HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap())
    };
    let mut map = HeaderMap::new();
    for (name, value) in headers.iter().map(header) {
        map.append(name, value);
    }
    map
}
