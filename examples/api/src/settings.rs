//! Where it listens, and how it reaches the guard store.
#![expect(clippy::disallowed_methods, reason = "the edge that reads the configuration")]

use std::{collections::BTreeMap, env, fs};

use tidegate_client::Selection;

/// `API_LISTEN`, or a port of this machine.
pub(crate) fn listen() -> String {
    env::var("API_LISTEN").unwrap_or_else(|_| "127.0.0.1:3000".into())
}

/// As the environment says (`TIDEGATE_CLIENT_…`). Where it says nothing, the server that was started in this
/// folder, with the secrets that it made for itself: that is for trying it out.
pub(crate) fn selection() -> Selection {
    if env::var_os("TIDEGATE_CLIENT_FAMILIES").is_some() {
        return Selection::from_env();
    }
    let made = fs::read_to_string("tidegate-data/secrets.toml").unwrap_or_default();
    let beside = beside(&made);
    Selection::from_variables(|name| beside.get(name).cloned())
}

fn beside(secrets: &str) -> BTreeMap<&'static str, String> {
    let secret = |name: &str| {
        let line = secrets.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
        line.and_then(|rest| rest.strip_suffix('"')).unwrap_or_default().to_owned()
    };
    BTreeMap::from([
        ("TIDEGATE_CLIENT_FAMILIES", "proxy,password".to_owned()),
        ("TIDEGATE_CLIENT_URL", "http://127.0.0.1:8787".to_owned()),
        ("TIDEGATE_CLIENT_SECRET", secret("guard_secret")),
        ("TIDEGATE_CLIENT_KEY_PEPPER", secret("pepper")),
    ])
}
