//! What is shown of an app: the shapes of the API's answers.

use std::collections::BTreeMap;

use serde::Serialize;
use tidegate_core::policy::{Mode, PolicyDocument};

use super::{
    counters::{Counters, Step, Window},
    status::Status,
};

/// An app's policy, and how it does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbuseView {
    /// The app's name.
    pub app: String,
    /// How often the policy has been saved: 0 while the default is in force.
    pub version: u64,
    /// The policy in force; null where there is none.
    pub policy: Option<PolicyDocument>,
    /// How it stands.
    pub status: Status,
    /// What it has counted.
    pub counters: Counters,
    /// A rate for each client that the recent traffic suggests; null where it suggests none.
    pub suggested_rps: Option<u64>,
}

/// An app in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AppOverview {
    /// The app's name.
    pub app: String,
    /// As in [`AbuseView`].
    pub version: u64,
    /// The mode of the policy in force.
    pub mode: Option<Mode>,
    /// How it stands.
    pub status: Status,
    /// The last hour.
    pub counters: Counters,
    /// Requests of each of the last 60 minutes, oldest first.
    pub sparkline: Vec<u64>,
    /// Buckets of clients that are kept.
    pub tracked_clients: u64,
}

/// An app's traffic over a window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrafficView {
    /// The app's name.
    pub app: String,
    /// Which window.
    pub window: Window,
    /// How long a step is, in ms.
    pub step_ms: u64,
    /// The sums.
    pub counters: Counters,
    /// Requests that the instance's firewall refused.
    pub firewall: u64,
    /// The steps, oldest first; the last one is still going on.
    pub series: Vec<Step>,
}

/// A request of the access log: whose it was is not told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccessLogEntry {
    /// When, in ms since the epoch.
    pub at_ms: u64,
    /// Its method.
    pub method: String,
    /// The normal form of its path, without the query, cut at 256 bytes.
    pub path: String,
    /// What was answered; null while it is going on.
    pub status: Option<u16>,
    /// What the policy said.
    pub outcome: &'static str,
    /// And why.
    pub reason: Option<&'static str>,
}

/// What a draft would have done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayReport {
    /// When the first request came that the log still holds, in ms since the epoch.
    pub from_ms: u64,
    /// When the last one did.
    pub to_ms: u64,
    /// How many there are.
    pub requests: u64,
    /// How many would have been blocked.
    pub would_block: WouldBlock,
    /// Over time.
    pub series: Vec<ReplayStep>,
    /// The clients that would have been hit most.
    pub top_clients: Vec<TopClient>,
    /// What speaks against trusting the numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Requests that would have been blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WouldBlock {
    /// All of them.
    pub total: u64,
    /// By reason.
    pub by_reason: BTreeMap<&'static str, u64>,
}

/// Part of a replay's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReplayStep {
    /// When it begins, in ms since the epoch.
    pub at_ms: u64,
    /// Requests that would have passed.
    pub allowed: u64,
    /// Requests that would not.
    pub would_block: u64,
}

/// A client of a replay. It is shown to whom it concerns and must not reach a log.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct TopClient {
    /// An IPv4 address or a prefix of IPv6.
    pub client: String,
    /// Its requests.
    pub requests: u64,
    /// Those that would have been blocked.
    pub would_block: u64,
}

impl std::fmt::Debug for TopClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TopClient").field("requests", &self.requests).finish_non_exhaustive()
    }
}
