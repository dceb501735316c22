//! From settings to the typed configuration, with the checks that look at several keys.

use tidegate_core::secret::Secret;
use tidegate_rate_limit::{ConfigurationError, Url};

use super::{
    apps, credentials, families,
    fault::{Fault, Scope},
    ingress,
    kind::Kind,
    listeners,
    nearest::suggestion,
    settings::Settings,
    typed::{
        Admin, Client, Configuration, Durability, GuardListener, GuardRules, Log, LogFormat, Store, StoreKind,
    },
    value::{Hidden, Value},
};

/// Builds every section. What is faulty has its default, and `faults` says so.
pub(super) fn build(settings: &Settings, faults: &mut Vec<Fault>) -> (Configuration, Client, Vec<Secret>) {
    let store = store(settings, faults);
    let (listen, admin_listen) = listeners::addresses(settings, faults);
    let listener = GuardListener {
        listen,
        socket: listeners::socket(settings, faults),
        tls: listeners::tls(settings, faults),
        max_connections: settings.integer("guard.max_connections"),
        header_timeout_ms: settings.integer("guard.header_timeout_ms"),
        body_timeout_ms: settings.integer("guard.body_timeout_ms"),
        auth_failures_per_second: settings.integer("guard.auth_failures_per_second"),
        shutdown_timeout_ms: settings.integer("guard.shutdown_timeout_ms"),
    };
    let rules = GuardRules {
        secrets: credentials::signing_secrets(settings, faults),
        operator_token: credentials::operator_token(settings, faults),
        daily_budget: settings.integer("guard.daily_budget"),
        families: families::build(settings, faults),
    };
    let ingress = ingress::build(settings, faults);
    let (apps, app_tls) = apps::build(settings, &ingress, faults);
    let admin = admin(settings, admin_listen, faults);
    let client = client(settings, faults);
    let log = log(settings, faults);
    rate_limit(settings, faults);
    credentials::no_two_alike(settings, &rules, faults);
    let guard_faults: Vec<_> = faults.iter().filter(|fault| fault.scope == Scope::Guard).cloned().collect();
    let signing_secrets = rules.secrets.clone();
    let guard = if guard_faults.is_empty() { Ok(rules) } else { Err(guard_faults) };
    (Configuration { store, listener, guard, ingress, apps, app_tls, admin, log }, client, signing_secrets)
}

fn store(settings: &Settings, faults: &mut Vec<Fault>) -> Store {
    let kind = match settings.text("store.kind") {
        "memory" => StoreKind::Memory,
        "postgres" => StoreKind::Postgres,
        "redis" => StoreKind::Redis,
        "sqlite" => StoreKind::Sqlite,
        "mysql" => StoreKind::MySql,
        _ => StoreKind::Embedded,
    };
    let url = store_url(settings, kind, faults);
    let durability = match settings.text("store.durability") {
        "process" => Durability::Process,
        "none" => Durability::None,
        _ => Durability::Fsync,
    };
    let max_entries = match (settings.integer("store.max_entries"), kind) {
        (0, StoreKind::Memory) => 100_000,
        (0, _) => 1_000_000,
        (entries, _) => entries,
    };
    Store {
        kind,
        path: settings.path("store.path").unwrap_or_default(),
        url,
        durability,
        max_entries,
        deadline_ms: settings.integer("store.deadline_ms"),
        max_calls: settings.integer("store.max_calls"),
        secret: secret(settings, "store.secret"),
    }
}

/// The database's URL, which a store on a server needs and no other takes.
fn store_url(settings: &Settings, kind: StoreKind, faults: &mut Vec<Fault>) -> Option<Hidden> {
    let url = settings.url("store.url").cloned();
    let schemes: &[&str] = match kind {
        StoreKind::Postgres => &["postgres", "postgresql"],
        StoreKind::Redis => &["redis", "rediss", "valkey", "valkeys"],
        StoreKind::MySql => &["mysql", "mariadb"],
        StoreKind::Embedded | StoreKind::Memory | StoreKind::Sqlite => &[],
    };
    let name = settings.text("store.kind");
    let fault = match &url {
        None if schemes.is_empty() => None,
        None => {
            Some(format!("is missing; store.kind = {name:?} needs one that begins with {}://", schemes[0]))
        }
        Some(_) if schemes.is_empty() => Some(format!("has no meaning with store.kind = {name:?}")),
        Some(url) => {
            let scheme = url.expose().split_once("://").map_or("", |(scheme, _)| scheme);
            // How a server of Redis is found stands behind a plus.
            let plain = if kind == StoreKind::Redis { scheme.split('+').next() } else { Some(scheme) };
            let known = plain.is_some_and(|scheme| schemes.contains(&scheme));
            (!known).then(|| format!("must begin with {}://", schemes.join(":// or ")))
        }
    };
    if let Some(message) = fault {
        let place = if url.is_some() { settings.place("store.url") } else { settings.place("store.kind") };
        faults.push(Fault::new(Scope::Fatal, "store.url", place, message));
    }
    url
}

fn admin(settings: &Settings, listen: std::net::SocketAddr, faults: &mut Vec<Fault>) -> Admin {
    let webhook_url = web_url(settings, "admin.webhook_url", faults);
    let webhook_secret = secret(settings, "admin.webhook_secret");
    if webhook_url.is_some() && webhook_secret.is_none() && !settings.is_faulty("admin.webhook_secret") {
        let message = "needs admin.webhook_secret, so that the receiver can tell whose alerts they are";
        let place = settings.place("admin.webhook_url");
        faults.push(Fault::new(Scope::Fatal, "admin.webhook_url", place, message));
    }
    if webhook_url.as_ref().is_some_and(|url| !can_be_posted_to(url.expose())) {
        let message = "must be a host with a path; a user and password have no place in it, since what is \
                       posted is signed with admin.webhook_secret";
        let place = settings.place("admin.webhook_url");
        faults.push(Fault::new(Scope::Fatal, "admin.webhook_url", place, message));
    }
    let tokens = match settings.value("admin.tokens") {
        Some(Value::Tokens(tokens)) => tokens.clone(),
        _ => Vec::new(),
    };
    Admin {
        listen,
        tls: listeners::tls_pair(settings, "admin.tls_cert", "admin.tls_key", faults),
        tokens,
        metrics_public: settings.boolean("admin.metrics_public"),
        webhook_url,
        webhook_secret,
    }
}

fn client(settings: &Settings, faults: &mut Vec<Fault>) -> Client {
    let url = web_url(settings, "client.url", faults);
    if url.as_ref().is_some_and(|url| !listeners::is_private_url(url.expose())) {
        let message = "must be https, or http to this machine: a signature does not hide what is sent";
        faults.push(Fault::new(Scope::Client, "client.url", settings.place("client.url"), message));
    }
    let fairness_pepper = secret(settings, "client.fairness_pepper");
    Client {
        url,
        secret: secret(settings, "client.secret"),
        key_pepper: secret(settings, "client.key_pepper"),
        fairness_pepper,
        timeout_ms: settings.integer("client.timeout_ms").clamp(100, 2_000),
    }
}

fn log(settings: &Settings, faults: &mut Vec<Fault>) -> Log {
    if settings.url("log.otlp_endpoint").is_some() {
        let message = "traces are not sent by this build yet";
        let place = settings.place("log.otlp_endpoint");
        faults.push(Fault::new(Scope::Warning, "log.otlp_endpoint", place, message));
    }
    let format = if settings.text("log.format") == "json" { LogFormat::Json } else { LogFormat::Text };
    Log { format, level: settings.text("log.level").to_owned() }
}

/// What applications read; the server has no use for it.
fn rate_limit(settings: &Settings, faults: &mut Vec<Fault>) {
    let configuration = tidegate_rate_limit::Configuration {
        store: settings.text("rate_limit.store").parse().unwrap_or_default(),
        url: settings.url("rate_limit.url").map(|url| Url::from(url.expose())),
        ..tidegate_rate_limit::Configuration::default()
    };
    if let Err(ConfigurationError::Value { key, problem }) = configuration.store_options() {
        let path = format!("rate_limit.{key}");
        let written = if settings.url(&path).is_some() { path.as_str() } else { "rate_limit.store" };
        faults.push(Fault::new(Scope::Warning, &path, settings.place(written), problem));
    }
}

fn can_be_posted_to(url: &str) -> bool {
    let authority = url.parse::<http::Uri>().ok().and_then(|uri| uri.into_parts().authority);
    authority.is_some_and(|authority| !authority.host().is_empty() && !authority.as_str().contains('@'))
}

fn secret(settings: &Settings, path: &str) -> Option<Secret> {
    match settings.value(path) {
        Some(Value::Secret(secret)) => Some(secret.clone()),
        _ => None,
    }
}

/// A URL of the web.
fn web_url(settings: &Settings, path: &str, faults: &mut Vec<Fault>) -> Option<Hidden> {
    let url = settings.url(path)?;
    let scheme = url.expose().split_once("://").map_or("", |(scheme, _)| scheme);
    if matches!(scheme, "http" | "https") {
        return Some(url.clone());
    }
    let setting = settings.setting(path)?;
    debug_assert_eq!(setting.spec.kind, Kind::Url);
    let message = format!("must begin with https:// or http://{}", suggestion(scheme, ["https", "http"]));
    faults.push(Fault::new(setting.spec.scope, path, setting.place.clone(), message));
    None
}
