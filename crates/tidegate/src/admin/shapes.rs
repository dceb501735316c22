//! What the API answers, as its documents describe it, as the CLI reads it and as the pages show it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How many, by reason: `rate_limit`, `deny_cidr`, `deny_user_agent`, `missing_user_agent`.
pub(crate) type ByReason = BTreeMap<String, u64>;

/// Every app.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Apps {
    pub(crate) apps: Vec<App>,
}

/// An app at a glance.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct App {
    pub(crate) app: String,
    pub(crate) version: u64,
    /// As in its policy; null where there is none that can be used.
    pub(crate) mode: Option<String>,
    pub(crate) status: Status,
    /// The last hour.
    pub(crate) counters: Counters,
    /// Requests of each of the last 60 minutes, oldest first.
    pub(crate) sparkline: Vec<u64>,
    /// Clients whose tokens are kept.
    pub(crate) tracked_clients: u64,
}

/// An app's abuse defense.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Abuse {
    pub(crate) app: String,
    /// Also the `ETag`; what `If-Match` names.
    pub(crate) version: u64,
    /// The one in force; null where there is none that can be used.
    pub(crate) policy: Option<Policy>,
    pub(crate) status: Status,
    pub(crate) counters: Counters,
    /// What the busiest clients of the recent past would keep to; null without traffic.
    pub(crate) suggested_rps: Option<u64>,
}

/// An app's policy. A field that is left out has its default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct Policy {
    /// `off`, `log_only` or `enforce`.
    pub(crate) mode: String,
    /// Tokens a second for each client; 0 turns the limit off and leaves the lists.
    pub(crate) rps: f64,
    /// The most tokens that a client can have.
    pub(crate) burst: u64,
    /// Networks that are refused.
    pub(crate) deny_cidrs: Vec<Network>,
    /// User-Agents that are refused: parts of them in any case, or `re:` and a regular expression.
    pub(crate) deny_user_agents: Vec<String>,
    /// Refuse requests without a User-Agent.
    pub(crate) deny_missing_user_agent: bool,
    /// Networks that this policy never refuses.
    pub(crate) allow_cidrs: Vec<Network>,
    /// Which IPv6 prefix is one client.
    pub(crate) ipv6_prefix: u8,
    /// Stricter limits for some paths.
    pub(crate) routes: Vec<Route>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: "log_only".to_owned(),
            rps: 0.0,
            burst: 0,
            deny_cidrs: Vec::new(),
            deny_user_agents: Vec::new(),
            deny_missing_user_agent: false,
            allow_cidrs: Vec::new(),
            ipv6_prefix: 64,
            routes: Vec::new(),
        }
    }
}

impl Policy {
    /// As it is sent to the defense.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// A network of a list: only its text, or with a note and an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Network {
    /// Such as `203.0.113.0/24`.
    Plain(String),
    /// With more about it.
    Noted {
        /// Such as `203.0.113.0/24`.
        cidr: String,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// Until when, in ms since the epoch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at_ms: Option<u64>,
    },
}

/// A stricter limit for some paths.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Route {
    pub(crate) path_prefix: String,
    /// Of these methods; none: of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) methods: Option<Vec<String>>,
    pub(crate) rps: f64,
    pub(crate) burst: u64,
}

/// How a policy stands.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Status {
    /// `Enforcing`, `LogOnly`, `Off`, `NoRoutes`, `ClientIPHidden`, `InvalidPolicy` or `Pending`.
    pub(crate) condition: String,
    pub(crate) message: String,
}

/// Requests of a window.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Counters {
    /// `minute`, `hour` or `day`.
    pub(crate) window: String,
    pub(crate) allowed: u64,
    pub(crate) would_block: ByReason,
    pub(crate) blocked: ByReason,
    /// Served because they could not be judged.
    pub(crate) fail_open: u64,
}

impl Counters {
    pub(crate) fn would_block_total(&self) -> u64 {
        self.would_block.values().sum()
    }

    pub(crate) fn blocked_total(&self) -> u64 {
        self.blocked.values().sum()
    }
}

/// Requests of a span of time.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct Point {
    pub(crate) at_ms: u64,
    pub(crate) allowed: u64,
    pub(crate) would_block: u64,
    pub(crate) blocked: u64,
    pub(crate) fail_open: u64,
    /// Refused by the instance's firewall, before the policy.
    pub(crate) firewall: u64,
}

/// An app's traffic.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Traffic {
    pub(crate) app: String,
    /// `minute`, `hour` or `day`.
    pub(crate) window: String,
    /// How long a step of the series is.
    pub(crate) step_ms: u64,
    pub(crate) counters: Counters,
    /// Refused by the instance's firewall, before the policy.
    pub(crate) firewall: u64,
    /// Oldest first; the last one is still going on.
    pub(crate) series: Vec<Point>,
}

/// The newest requests of an app, newest first. Whose they are is not told.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct AccessLog {
    pub(crate) entries: Vec<AccessLogEntry>,
}

/// A request.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct AccessLogEntry {
    pub(crate) at_ms: u64,
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    /// Null while it is going on.
    pub(crate) status: Option<u16>,
    /// `allowed`, `would_block`, `blocked` or `fail_open`.
    pub(crate) outcome: String,
    /// What was found against it.
    pub(crate) reason: Option<String>,
}

/// What a policy would have done to the requests that the log still holds.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Replay {
    pub(crate) from_ms: u64,
    pub(crate) to_ms: u64,
    pub(crate) requests: u64,
    pub(crate) would_block: ReplayTotals,
    pub(crate) series: Vec<ReplayStep>,
    pub(crate) top_clients: Vec<TopClient>,
    /// What speaks against trusting the numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) warning: Option<String>,
}

/// Part of a replay's time.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct ReplayStep {
    pub(crate) at_ms: u64,
    pub(crate) allowed: u64,
    pub(crate) would_block: u64,
}

/// What would have been blocked.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct ReplayTotals {
    pub(crate) total: u64,
    pub(crate) by_reason: ByReason,
}

/// A client, for whoever may see addresses.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct TopClient {
    pub(crate) client: String,
    pub(crate) requests: u64,
    pub(crate) would_block: u64,
}

/// What is wrong with a policy.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct PolicyFault {
    pub(crate) field: String,
    pub(crate) message: String,
}

/// Why a call was refused.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct ErrorBody {
    pub(crate) error: ErrorDetail,
}

/// The refusal itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct ErrorDetail {
    pub(crate) code: String,
    pub(crate) message: String,
    /// With `forbidden`: what the token may not do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) missing_ability: Option<String>,
    /// With `invalid_policy`: every fault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) faults: Vec<PolicyFault>,
    /// With `stale_version`: the version in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<u64>,
}
