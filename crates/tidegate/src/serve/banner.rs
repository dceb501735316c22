//! What a start says on the standard output: where things are, and what to try next.

use std::net::SocketAddr;

use tidegate_core::secret::Secret;

use crate::config::{Configuration, Durability, StoreKind};

pub(super) struct Addresses {
    pub(super) apps: String,
    pub(super) guard: SocketAddr,
    pub(super) admin: SocketAddr,
}

/// `code` signs somebody in to the dashboard once.
pub(super) fn text(
    configuration: &Configuration,
    addresses: &Addresses,
    first_start: bool,
    code: Option<&Secret>,
) -> String {
    let store = &configuration.store;
    let durability = match store.durability {
        Durability::Fsync => "an acknowledged write is on disk",
        Durability::Process => "an acknowledged write survives a killed process, not a power loss",
        Durability::None => "nothing survives a restart",
    };
    let kept = match store.kind {
        StoreKind::Memory => "in memory; nothing survives a restart".to_owned(),
        StoreKind::Embedded => format!("in {}; {durability}", store.path.display()),
        StoreKind::Sqlite => format!("in {}; SQLite", store.path.display()),
        StoreKind::Postgres => "on PostgreSQL".to_owned(),
        StoreKind::Redis => "on Redis or Valkey".to_owned(),
        StoreKind::MySql => "on MySQL or MariaDB".to_owned(),
    };
    let scheme = if configuration.listener.tls.is_some() { "https" } else { "http" };
    let admin_scheme = if configuration.admin.tls.is_some() { "https" } else { "http" };
    let secrets = if first_start {
        format!("\n  secrets  made now, and kept in {}/secrets.toml (mode 0600)", store.path.display())
    } else {
        String::new()
    };
    let guard = if configuration.guard.is_ok() {
        String::new()
    } else {
        "\n\n  The guard's configuration has faults: every RPC is answered 503. See `tidegate check`."
            .to_owned()
    };
    let sign_in = code.map_or_else(String::new, |code| {
        format!(
            "\nSee it in a browser; this link signs in once, within an hour:\n  {admin_scheme}://{}/sign-in?code={}\n",
            addresses.admin,
            code.expose(),
        )
    });
    format!(
        "tidegate {version}\n  apps     {apps}\n  guard    {scheme}://{guard_address}   POST /v1/rpc, /control/*, GET /healthz, GET /readyz\n  \
         admin    {admin_scheme}://{admin_address}   dashboard, /api/v1, GET /metrics\n  store    {kept}{secrets}{guard}\n{sign_in}\n\
         Try, from this folder:\n  \
         tidegate call win.hit login:alice 5/1m      # may alice try once more? five times a minute\n  \
         tidegate call kv.set job:42 owner me --ttl 10m --nx\n  \
         tidegate demo                               # a login under attack, and an app with visitors, one of them greedy\n  \
         tidegate control state                      # budgets, what is spent of them, and how to stop everything\n",
        version = env!("CARGO_PKG_VERSION"),
        apps = addresses.apps,
        guard_address = addresses.guard,
        admin_address = addresses.admin,
    )
}
