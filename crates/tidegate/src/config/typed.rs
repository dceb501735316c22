//! A checked configuration: what the parts of the process are handed.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use tidegate_core::{admission::FamilyRules, forwarded::Source, network::PrefixSet, secret::Secret};
use tidegate_ingress::proxy::{App, ProxyOptions};
pub use tidegate_rate_limit::{Durability, StoreKind};

use super::{fault::Fault, tokens::Token, value::Hidden};

/// A configuration with which a process can start.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// Where state is kept.
    pub store: Store,
    /// How the guard is reached.
    pub listener: GuardListener,
    /// What the guard decides by; its faults where it has some, and then every RPC is answered
    /// `503 guard_unavailable`.
    pub guard: Result<GuardRules, Vec<Fault>>,
    /// How apps are reached, and what their clients are allowed.
    pub ingress: Ingress,
    /// The apps, by name.
    pub apps: Vec<App>,
    /// The apps' own certificates.
    pub app_tls: Vec<AppTls>,
    /// The admin API and the dashboard.
    pub admin: Admin,
    /// Logging.
    pub log: Log,
}

/// `[store]`.
#[derive(Debug, Clone)]
pub struct Store {
    /// The store's kind.
    pub kind: StoreKind,
    /// The data directory.
    pub path: PathBuf,
    /// The database of a shared store; there is one wherever the kind needs it.
    pub url: Option<Hidden>,
    /// What an acknowledgement means.
    pub durability: Durability,
    /// The most live entries.
    pub max_entries: u64,
    /// Every call is answered within this time.
    pub deadline_ms: u64,
    /// Calls past their deadline that may still run before new ones are refused.
    pub max_calls: u64,
    /// Hashes the names of entries.
    pub secret: Option<Secret>,
}

/// How the guard is reached.
#[derive(Debug, Clone)]
pub struct GuardListener {
    /// Where signed RPC and operator calls are served.
    pub listen: SocketAddr,
    /// A Unix socket that serves RPC without a signature.
    pub socket: Option<PathBuf>,
    /// The certificate and its key.
    pub tls: Option<Tls>,
    /// Connections at once.
    pub max_connections: u64,
    /// A request's header must have arrived within this time.
    pub header_timeout_ms: u64,
    /// A request's body must have arrived within this time.
    pub body_timeout_ms: u64,
    /// Failed authentications that one source may cause in a second before it is refused unread; 0: no bound.
    pub auth_failures_per_second: u64,
    /// How long running requests get when the process stops.
    pub shutdown_timeout_ms: u64,
}

/// Where a certificate and its key are (PEM). Both could be read when the configuration was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// What the guard decides by.
#[derive(Debug, Clone)]
pub struct GuardRules {
    /// Signing secrets, the current one first; empty: the one in the data directory.
    pub secrets: Vec<Secret>,
    /// The operator's token; none: the one in the data directory.
    pub operator_token: Option<Secret>,
    /// Commands a UTC day.
    pub daily_budget: u64,
    /// Every family, by name.
    pub families: BTreeMap<String, FamilyRules>,
}

/// `[ingress]`.
#[derive(Debug, Clone)]
pub struct Ingress {
    /// Where apps are served.
    pub listen: SocketAddr,
    /// Where they are served over TLS.
    pub tls_listen: Option<SocketAddr>,
    /// Where other proxies ask.
    pub authz_listen: Option<SocketAddr>,
    /// The certificate for hosts whose app has none of its own, and its key.
    pub tls: Option<Tls>,
    /// How trusted proxies name the client.
    pub forwarded: Forwarded,
    /// Clients that `deny` never refuses.
    pub allow: PrefixSet,
    /// Clients that every app refuses.
    pub deny: PrefixSet,
    /// Clients that each app remembers.
    pub max_tracked_clients: u64,
    /// Requests that each app's access log holds.
    pub access_log_entries: u64,
    /// For how long it holds one.
    pub access_log_minutes: u64,
    /// Connections at once.
    pub max_connections: u64,
    /// What clients and servers are allowed; the trusted proxies are in it.
    pub proxy: ProxyOptions,
}

/// How trusted proxies name the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forwarded {
    /// In a header.
    Header(Source),
    /// By the PROXY protocol.
    ProxyProtocol,
}

/// An app's own certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppTls {
    /// The app's domains.
    pub domains: Vec<String>,
    /// The certificate and its key.
    pub tls: Tls,
}

/// `[admin]`.
#[derive(Debug, Clone)]
pub struct Admin {
    /// Where it is served.
    pub listen: SocketAddr,
    /// The certificate and its key.
    pub tls: Option<Tls>,
    /// Tokens; empty: the one in the data directory.
    pub tokens: Vec<Token>,
    /// Whether `/metrics` is served without a token.
    pub metrics_public: bool,
    /// Where alerts are posted.
    pub webhook_url: Option<Hidden>,
    /// Signs what is posted.
    pub webhook_secret: Option<Secret>,
}

/// `[client]`, for `tidegate call`.
#[derive(Debug, Clone)]
pub struct Client {
    /// The guard store; none: `guard.listen` of this configuration.
    pub url: Option<Hidden>,
    /// Signs requests; none: the first signing secret of this configuration or of the data directory.
    pub secret: Option<Secret>,
    /// Hashes names; none: the pepper in the data directory.
    pub key_pepper: Option<Secret>,
    /// Hashes identities instead of the key pepper.
    pub fairness_pepper: Option<Secret>,
    /// How long a call may take, 100 to 2000.
    pub timeout_ms: u64,
}

/// `[log]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// How lines are written.
    pub format: LogFormat,
    /// What is logged: a level or directives.
    pub level: String,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
