//! Which families go to the guard store, which stay on their legacy path, and which are off.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tidegate_core::secret::Secret;
use tidegate_protocol::name;
use tracing::{error, warn};

use crate::{Cause, GuardClient};

/// A family that a ready-made limit belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Bulk reads.
    Offline,
    /// Single-use tokens.
    Replay,
    /// Limits of routes.
    Proxy,
    /// Attempts at passwords.
    Password,
}

/// Where the calls of each family go. Read once, at the start.
#[derive(Clone)]
pub struct Selection {
    assigned: BTreeSet<Family>,
    /// Where assigned families go.
    guard: Backend,
    replay_legacy_until: Option<String>,
}

/// Where the calls of a family go.
#[derive(Debug, Clone)]
pub enum Backend {
    /// To the guard store.
    Guard(GuardClient),
    /// To whatever the application did before.
    Legacy,
    /// Nowhere; each call fails with this cause.
    Off(Cause),
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Offline, Self::Replay, Self::Proxy, Self::Password];

    /// Its name in the protocol and in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Offline => "offline",
            Self::Replay => "replay",
            Self::Proxy => "proxy",
            Self::Password => "password",
        }
    }

    pub(crate) fn name(self) -> name::Family {
        name::Family::parse(self.as_str()).expect("lower-case letters only")
    }
}

impl Selection {
    /// Reads the process's environment; see `protocol/README.md` for the variables.
    ///
    /// It does not fail: an assigned family whose configuration can't be used is off, and the log says why.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the edge that reads the configuration")]
    pub fn from_env() -> Self {
        Self::from_variables(|name| match std::env::var(name) {
            Ok(text) => Some(text),
            Err(std::env::VarError::NotPresent) => None,
            // Never an unset one; it can't be a valid value of any variable.
            Err(std::env::VarError::NotUnicode(_)) => Some("\u{fffd}".to_owned()),
        })
    }

    /// The same from elsewhere: `read` gives the value of a variable by its full name.
    #[must_use]
    pub fn from_variables(read: impl Fn(&str) -> Option<String>) -> Self {
        let variable = |name: &str| read(&format!("TIDEGATE_CLIENT_{name}")).filter(|text| !text.is_empty());
        let list = variable("FAMILIES").unwrap_or_default();
        let (assigned, unknown) = families(&list);
        unknown.iter().for_each(|name| warn_once(name));

        let backend = variable("BACKEND");
        let guard = match backend.as_deref() {
            None => match configured(&variable) {
                Ok(client) => Backend::Guard(client),
                Err(fault) => Backend::Off(Cause::Configuration(fault)),
            },
            Some("off") => Backend::Off(Cause::Off),
            Some("legacy") => Backend::Legacy,
            Some(_) => Backend::Off(Cause::Configuration("BACKEND must be legacy, off or unset".into())),
        };
        if let (Backend::Off(cause @ Cause::Configuration(_)), false) = (&guard, assigned.is_empty()) {
            error!(%cause, "the guard store is off for all assigned families");
        }
        Self { assigned, guard, replay_legacy_until: variable("REPLAY_LEGACY_UNTIL") }
    }

    /// These families go to this client, however it reaches the guard store.
    #[must_use]
    pub fn of(client: GuardClient, assigned: impl IntoIterator<Item = Family>) -> Self {
        Self {
            assigned: assigned.into_iter().collect(),
            guard: Backend::Guard(client),
            replay_legacy_until: None,
        }
    }

    /// Where the calls of `family` go.
    #[must_use]
    pub fn backend(&self, family: Family) -> Backend {
        if self.assigned.contains(&family) { self.guard.clone() } else { Backend::Legacy }
    }

    /// Until when the replay fence also reads the legacy store, as it was configured.
    pub(crate) fn replay_legacy_until(&self) -> Option<&str> {
        self.replay_legacy_until.as_deref()
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection")
            .field("assigned", &self.assigned)
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

/// The families that a list names, and the names of it that are none.
pub(crate) fn families(list: &str) -> (BTreeSet<Family>, Vec<&str>) {
    let (mut assigned, mut unknown) = (BTreeSet::new(), Vec::new());
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match Family::ALL.into_iter().find(|family| family.as_str() == name) {
            Some(family) => {
                assigned.insert(family);
            }
            None => unknown.push(name),
        }
    }
    (assigned, unknown)
}

/// The client that the variables describe.
///
/// # Errors
/// Which variable can't be used, and why; never its value.
fn configured(variable: &impl Fn(&str) -> Option<String>) -> Result<GuardClient, String> {
    let needed = |name: &str| variable(name).ok_or_else(|| format!("{name} is missing"));
    let secret = |name: &str, text: String| Secret::new(text).map_err(|fault| format!("{name} {fault}"));

    let pepper = secret("KEY_PEPPER", needed("KEY_PEPPER")?)?;
    let client = GuardClient::new(&needed("URL")?, secret("SECRET", needed("SECRET")?)?, &pepper);
    let client = client.map_err(|fault| format!("URL: {fault}"))?;
    let client = match variable("FAIRNESS_PEPPER") {
        Some(text) => client.with_fairness_pepper(&secret("FAIRNESS_PEPPER", text)?),
        None => client,
    };
    match variable("TIMEOUT_MS").as_deref().map(timeout) {
        None => Ok(client),
        Some(Some(timeout)) => Ok(client.with_timeout(timeout)),
        Some(None) => Err("TIMEOUT_MS must be a whole number of milliseconds".into()),
    }
}

/// Decimal digits only; more than fit are the longest.
fn timeout(text: &str) -> Option<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Duration::from_millis(text.parse().unwrap_or(u64::MAX)))
}

/// One warning for a name in the life of the process.
fn warn_once(name: &str) {
    static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    if warned.len() < WARNINGS_MAX && warned.insert(name.to_owned()) {
        warn!(name, "TIDEGATE_CLIENT_FAMILIES names an unknown family, which is ignored");
    }
}

/// More different names than that are no typing errors.
const WARNINGS_MAX: usize = 64;

#[cfg(test)]
mod tests;
