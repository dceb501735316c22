//! How a defense is set up.

use tidegate_core::{forwarded::Source, network::PrefixSet};

use super::log::LogBounds;

/// The bounds and lists of a [`super::Defense`].
#[derive(Debug, Clone, Default)]
pub struct DefenseOptions {
    /// The apps.
    pub apps: Vec<AppSetup>,
    /// The most buckets of clients that are kept for an app; 8 at least.
    pub tracked_clients_max: usize,
    /// The most requests of an app that are kept for a replay; 0 for none.
    pub access_log_entries: usize,
    /// How long they are kept, in ms.
    pub access_log_ms: u64,
    /// Proxies whose forwarded header counts.
    pub trusted: PrefixSet,
    /// Which header that is.
    pub forwarded: Source,
    /// Clients that the firewall lets through, whatever it denies.
    pub firewall_allow: PrefixSet,
    /// Clients that it refuses.
    pub firewall_deny: PrefixSet,
}

/// An app that is to be defended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppSetup {
    /// Its name.
    pub name: String,
    /// Whether it has a domain and is not stopped.
    pub routed: bool,
}

/// What is asked for every request.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) trusted: PrefixSet,
    pub(super) forwarded: Source,
    pub(super) firewall_allow: PrefixSet,
    pub(super) firewall_deny: PrefixSet,
    pub(super) tracked_clients_max: usize,
    pub(super) log: LogBounds,
}

impl DefenseOptions {
    pub(super) fn split(self) -> (Settings, Vec<AppSetup>) {
        let settings = Settings {
            trusted: self.trusted,
            forwarded: self.forwarded,
            firewall_allow: self.firewall_allow,
            firewall_deny: self.firewall_deny,
            tracked_clients_max: self.tracked_clients_max,
            log: LogBounds { entries: self.access_log_entries, span_ms: self.access_log_ms },
        };
        (settings, self.apps)
    }
}
