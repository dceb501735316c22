//! The one table of keys. Parsing, suggestions, `tidegate config`, `tidegate config --reference` and the names
//! of environment variables all come from it.

use tidegate_core::INTEGER_MAX;

use super::{fault::Scope, kind::Kind};

/// A key of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySpec {
    /// Section and name, such as `guard.listen`; `<name>` stands for a name that people choose.
    pub path: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Its default as TOML, or none for an optional key.
    pub default: Option<&'static str>,
    /// What a fault in it stops.
    pub scope: Scope,
    /// Whether a reload applies a change without a restart.
    pub reloads: bool,
    /// One line for people.
    pub doc: &'static str,
}

impl KeySpec {
    /// The section: what stands before the first dot.
    #[must_use]
    pub fn section(&self) -> &'static str {
        self.path.split_once('.').map_or(self.path, |(section, _)| section)
    }

    /// The last part of the path.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.path.rsplit_once('.').map_or(self.path, |(_, name)| name)
    }

    /// The environment variable that sets it.
    #[must_use]
    pub fn environment(&self) -> String {
        environment_name(self.path)
    }

    const fn reloads(mut self) -> Self {
        self.reloads = true;
        self
    }
}

/// The environment variable for a key's path. The client's own variables have kept their shorter form, which
/// applications set too.
pub(super) fn environment_name(path: &str) -> String {
    let separator = if path.starts_with("client.") { "_" } else { "__" };
    format!("TIDEGATE_{}", path.replace('.', separator).to_uppercase())
}

/// The key at `path`, in which a chosen name stands for `<name>`.
pub(super) fn find(path: &str) -> Option<&'static KeySpec> {
    KEYS.iter().find(|key| matches(key.path, path))
}

/// Whether keys lie below `path`.
pub(super) fn is_branch(path: &str) -> bool {
    let below = |key: &KeySpec| key.path.match_indices('.').any(|(dot, _)| matches(&key.path[..dot], path));
    KEYS.iter().any(below)
}

fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path) = (pattern.split('.'), path.split('.'));
    let same_length = pattern.clone().count() == path.clone().count();
    same_length && pattern.zip(path).all(|(pattern, part)| pattern == "<name>" || pattern == part)
}

const fn key(
    path: &'static str,
    kind: Kind,
    default: &'static str,
    scope: Scope,
    doc: &'static str,
) -> KeySpec {
    KeySpec { path, kind, default: Some(default), scope, reloads: false, doc }
}

const fn optional(path: &'static str, kind: Kind, scope: Scope, doc: &'static str) -> KeySpec {
    KeySpec { path, kind, default: None, scope, reloads: false, doc }
}

/// Longer than any caller waits: a time-out beyond it is a slip of the unit.
const TIMEOUT_MS_MAX: u64 = 600_000;
/// Longer than any upload or any silence that is meant.
const DAY_MS: u64 = 86_400_000;

use Kind::{
    Address, Axes, Boolean, Budgets, Choice, Domains, Integer, Level, Networks, Path, Secret, Secrets,
    Shares, Text, Tokens, Upstreams, Url, Words,
};
use Scope::{Client, Fatal, Guard, Warning};

/// Every key, by section, in the order in which people read them.
#[rustfmt::skip]
pub const KEYS: &[KeySpec] = &[
    key("store.kind", Choice(&["embedded", "memory", "postgres", "redis", "sqlite", "mysql"]), "\"embedded\"", Fatal,
        "Where state is kept."),
    key("store.path", Path, "\"./tidegate-data\"", Fatal,
        "The data directory: the embedded store and the secrets made at the first start (mode 0700)."),
    optional("store.url", Url, Fatal, "The database of a shared store."),
    key("store.durability", Choice(&["fsync", "process", "none"]), "\"fsync\"", Fatal,
        "What an acknowledgement means: on disk, safe from a killed process, or in memory only."),
    optional("store.max_entries", Integer(1_000, 4_000_000_000), Fatal,
        "The most live entries: 100000 for the memory store and 1000000 for the others where it is not set."),
    key("store.deadline_ms", Integer(10, 60_000), "2000", Fatal,
        "Every call to the store is answered within this time."),
    key("store.max_calls", Integer(1, 10_000), "64", Fatal,
        "How many calls past their deadline may still run in the store before new ones are refused."),
    optional("store.secret", Secret, Fatal,
        "Hashes the names of entries; a change starts every counter afresh."),

    key("guard.listen", Address, "\"127.0.0.1:8787\"", Fatal, "Where signed RPC and operator calls are served."),
    optional("guard.socket", Path, Fatal, "A Unix socket (mode 0600) that serves RPC without a signature."),
    optional("guard.secrets", Secrets, Guard,
        "Signing secrets, the current one first; without any, one is made and kept in the data directory.").reloads(),
    optional("guard.secrets_file", Path, Guard, "A file with the signing secrets, one a line.").reloads(),
    optional("guard.operator_token", Secret, Guard,
        "The bearer token of operator calls; without one, one is made and kept in the data directory.").reloads(),
    optional("guard.operator_token_file", Path, Guard, "A file with the operator token.").reloads(),
    key("guard.daily_budget", Integer(1, INTEGER_MAX), "1000000", Guard,
        "Commands a UTC day, over all families.").reloads(),
    optional("guard.family_budgets", Budgets, Guard,
        "The daily budget by family; without it offline has 60 %, replay 10 %, proxy 20 %, password 10 %.").reloads(),
    optional("guard.tls_cert", Path, Fatal, "The certificate chain of guard.listen (PEM)."),
    optional("guard.tls_key", Path, Fatal, "The private key of guard.listen (PEM)."),
    key("guard.allow_cleartext", Boolean, "false", Fatal, "Serve a public address without TLS."),
    key("guard.max_connections", Integer(1, 1_000_000), "10000", Guard,
        "Connections at once; more are closed at once."),
    key("guard.header_timeout_ms", Integer(10, TIMEOUT_MS_MAX), "10000", Guard,
        "A whole request header must have arrived within this time; an idle connection is closed after it."),
    key("guard.body_timeout_ms", Integer(10, TIMEOUT_MS_MAX), "10000", Guard,
        "A request's body must have arrived within this time."),
    key("guard.auth_failures_per_second", Integer(0, 1_000_000), "500", Guard,
        "How many failed authentications one source may cause in a second before it is refused unread; 0: no bound."),
    key("guard.shutdown_timeout_ms", Integer(10, TIMEOUT_MS_MAX), "10000", Guard,
        "Requests that are running get this time to end when the process stops."),
    optional("guard.families.<name>.requires", Axes, Guard,
        "What an RPC of this family must carry.").reloads(),
    optional("guard.families.<name>.shares_bp", Shares, Guard,
        "What one identity may spend of the family's budget a day; 500 for source and principal, 1500 for network/24 \
         and network/56, 2500 for network/48 where it is not set.").reloads(),
    optional("guard.families.<name>.reserve_bp", Integer(0, 10_000), Guard,
        "The basis points of the budget that are kept for known-good identities; 2000 where the family requires an \
         identity, 0 elsewhere.").reloads(),

    key("ingress.listen", Address, "\"127.0.0.1:8080\"", Fatal, "Where apps are served."),
    optional("ingress.tls_listen", Address, Fatal, "Where apps are served over TLS, HTTP/2 and HTTP/1.1."),
    optional("ingress.authz_listen", Address, Fatal,
        "Where other proxies ask about each of their requests: only they should reach it."),
    optional("ingress.tls_cert", Path, Fatal,
        "The certificate chain (PEM) for hosts whose app has none of its own; a changed file is read anew.").reloads(),
    optional("ingress.tls_key", Path, Fatal, "The private key of ingress.tls_cert (PEM).").reloads(),
    optional("ingress.trusted_proxies", Networks, Fatal,
        "Proxies whose word on the client's address counts; without any, the client is who connects.").reloads(),
    key("ingress.allow_broad_trust", Boolean, "false", Fatal,
        "Take trusted_proxies broader than /8 (IPv4) or /16 (IPv6): all of them may say who they are.").reloads(),
    key("ingress.forwarded", Choice(&["x-forwarded-for", "forwarded", "proxy-protocol"]), "\"x-forwarded-for\"", Fatal,
        "How trusted proxies name the client; with proxy-protocol nobody else connects.").reloads(),
    optional("ingress.allow_cidrs", Networks, Fatal, "Clients that ingress.deny_cidrs never refuses.").reloads(),
    optional("ingress.deny_cidrs", Networks, Fatal, "Clients that every app refuses.").reloads(),
    key("ingress.max_tracked_clients", Integer(64, 100_000_000), "100000", Fatal,
        "Clients whose buckets each app remembers; over it an arbitrary one is forgotten.").reloads(),
    key("ingress.access_log_entries", Integer(0, 100_000_000), "200000", Fatal,
        "Requests that each app's access log in memory holds.").reloads(),
    key("ingress.access_log_minutes", Integer(1, 1_440), "15", Fatal,
        "For how long the access log in memory holds a request.").reloads(),
    key("ingress.max_connections", Integer(1, 1_000_000), "10000", Fatal,
        "Connections at once; more are closed at once."),
    key("ingress.max_streams", Integer(1, 10_000), "128", Fatal,
        "Streams of an HTTP/2 connection at once.").reloads(),
    key("ingress.max_headers", Integer(8, 1_000), "100", Fatal, "Headers of a request.").reloads(),
    key("ingress.max_header_bytes", Integer(1_024, 1_048_576), "32768", Fatal, "Bytes of a request's head.").reloads(),
    key("ingress.max_concurrency", Integer(1, 10_000_000), "1024", Fatal,
        "Requests of an app at once, open WebSockets included, where its shield says no other.").reloads(),
    key("ingress.max_body_bytes", Integer(0, INTEGER_MAX), "104857600", Fatal,
        "Bytes of a request's body, as sent, where the app's shield says no other.").reloads(),
    key("ingress.header_timeout_ms", Integer(10, TIMEOUT_MS_MAX), "10000", Fatal,
        "A request's header must have arrived within this time.").reloads(),
    key("ingress.idle_timeout_ms", Integer(10, TIMEOUT_MS_MAX), "60000", Fatal,
        "A connection without a request is closed after this time.").reloads(),
    key("ingress.body_idle_timeout_ms", Integer(10, TIMEOUT_MS_MAX), "60000", Fatal,
        "A body, in either direction, may stand still for this time.").reloads(),
    key("ingress.body_timeout_ms", Integer(10, DAY_MS), "600000", Fatal,
        "A request's body must have arrived within this time.").reloads(),
    key("ingress.connect_timeout_ms", Integer(10, TIMEOUT_MS_MAX), "3000", Fatal,
        "An upstream must take a connection within this time.").reloads(),
    key("ingress.upstream_timeout_ms", Integer(10, TIMEOUT_MS_MAX), "60000", Fatal,
        "An upstream must begin its answer within this time.").reloads(),
    key("ingress.upstream_idle_timeout_ms", Integer(10, TIMEOUT_MS_MAX), "4000", Fatal,
        "A connection to an upstream is kept unused for this time: less than the upstream keeps it.").reloads(),
    key("ingress.upstream_idle_connections", Integer(0, 100_000), "256", Fatal,
        "Connections to each upstream that each thread keeps unused.").reloads(),
    key("ingress.unhealthy_ms", Integer(1, TIMEOUT_MS_MAX), "1000", Fatal,
        "An upstream that can't be reached is passed over for this time.").reloads(),
    key("ingress.tunnel_idle_timeout_ms", Integer(10, DAY_MS), "600000", Fatal,
        "A WebSocket on which nothing is sent is closed after this time.").reloads(),
    key("ingress.shutdown_timeout_ms", Integer(10, TIMEOUT_MS_MAX), "10000", Fatal,
        "Requests that are running get this time to end when the process stops.").reloads(),

    optional("apps.<name>.domains", Domains, Fatal,
        "Hosts of the app: exact, *.example.org for everything below, or * for every other host.").reloads(),
    optional("apps.<name>.upstreams", Upstreams, Fatal,
        "Servers of the app, such as http://127.0.0.1:3000; several are asked in turn.").reloads(),
    optional("apps.<name>.root", Path, Fatal, "A directory whose files are the app, in the place of upstreams.").reloads(),
    optional("apps.<name>.stopped", Boolean, Fatal, "Answer 503 in the app's place.").reloads(),
    optional("apps.<name>.allow_ambiguous_paths", Boolean, Fatal,
        "Let paths pass that programs may read differently: escaped slashes, backslashes, double escapes.").reloads(),
    optional("apps.<name>.tls_cert", Path, Fatal, "The certificate chain of the app's domains (PEM).").reloads(),
    optional("apps.<name>.tls_key", Path, Fatal, "The private key of the app's certificate (PEM).").reloads(),
    optional("apps.<name>.shield.max_concurrency", Integer(1, 10_000_000), Fatal,
        "Requests at once, open WebSockets included; ingress.max_concurrency where it is not set.").reloads(),
    optional("apps.<name>.shield.max_body_bytes", Integer(0, INTEGER_MAX), Fatal,
        "Bytes of a request's body, as sent; ingress.max_body_bytes where it is not set.").reloads(),

    key("admin.listen", Address, "\"127.0.0.1:9090\"", Fatal, "Where the dashboard, its API and /metrics are served."),
    optional("admin.tokens", Tokens, Fatal,
        "Tokens of the admin API; without any, one is made and kept in the data directory.").reloads(),
    optional("admin.tls_cert", Path, Fatal, "The certificate chain of admin.listen (PEM)."),
    optional("admin.tls_key", Path, Fatal, "The private key of admin.listen (PEM)."),
    key("admin.allow_cleartext", Boolean, "false", Fatal, "Serve a public address without TLS."),
    key("admin.metrics_public", Boolean, "false", Fatal, "Serve /metrics without a token.").reloads(),
    optional("admin.webhook_url", Url, Fatal, "Where alerts are posted.").reloads(),
    optional("admin.webhook_secret", Secret, Fatal, "Signs what is posted.").reloads(),

    key("rate_limit.store",
        Choice(&["memory", "embedded", "sqlite", "postgres", "mysql", "redis", "database"]), "\"memory\"", Warning,
        "For applications that keep limits themselves: where they count. `database` goes by rate_limit.url."),
    key("rate_limit.single_instance", Boolean, "false", Warning,
        "That no other instance of the application counts with it, so that memory loses nothing but at a restart."),
    optional("rate_limit.max_entries", Integer(1_000, 4_000_000_000), Warning,
        "The most live entries: 100000 in memory and 1000000 elsewhere where it is not set."),
    optional("rate_limit.url", Url, Warning, "The server of postgres, mysql and redis."),
    key("rate_limit.path", Path, "\"./rate-limit-data\"", Warning, "The directory of embedded and sqlite."),
    key("rate_limit.durability", Choice(&["fsync", "process", "none"]), "\"fsync\"", Warning,
        "What an acknowledgement of embedded and sqlite means."),
    key("rate_limit.deadline_ms", Integer(10, 60_000), "2000", Warning,
        "Every call to the application's store is answered within this time."),
    optional("rate_limit.secret", Secret, Warning,
        "Hashes the names of the application's entries; a change starts every count afresh."),

    key("log.format", Choice(&["text", "json"]), "\"text\"", Fatal, "How log lines are written to the standard error."),
    key("log.level", Level, "\"info\"", Fatal, "What is logged.").reloads(),
    optional("log.otlp_endpoint", Url, Warning, "Where traces are sent."),

    optional("client.families", Words, Client, "Families that applications have moved to this guard store."),
    optional("client.url", Url, Client,
        "The guard store that `tidegate call` asks; https, or http to this machine. Default: guard.listen."),
    optional("client.secret", Secret, Client, "Signs requests. Default: the first of guard.secrets."),
    optional("client.key_pepper", Secret, Client,
        "Hashes names before they are sent. Default: the pepper in the data directory."),
    optional("client.fairness_pepper", Secret, Client,
        "Hashes source, network and principal instead of the key pepper."),
    key("client.timeout_ms", Integer(0, TIMEOUT_MS_MAX), "750", Client,
        "How long a call may take; held between 100 and 2000."),
    optional("client.backend", Text, Client,
        "For applications: `legacy` keeps their own store, `off` reports this one as unavailable."),
];
