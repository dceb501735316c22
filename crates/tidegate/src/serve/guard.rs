//! The guard's face, from the configuration.

use std::sync::Arc;

use tidegate_guard::{Guard, Metrics, service::Face};
use tidegate_protocol::{name::Family, signature::Keyring};

use super::store::OpenStore;
use crate::{
    config::{Configuration, Fault, GuardRules},
    secrets::DataSecrets,
};

/// The guard that the configuration describes. One with faults answers every RPC `guard_unavailable`; the log
/// names each of them.
pub(super) fn face(
    configuration: &Configuration,
    secrets: Option<&DataSecrets>,
    store: &OpenStore,
    metrics: &Arc<Metrics>,
) -> Face {
    let face = configuration.guard.as_ref().map_err(|faults| log_faults(faults)).ok().and_then(|rules| {
        let keyring = keyring(rules, secrets)?;
        let families = rules.families.keys().filter_map(|name| Family::parse(name).ok());
        let guard = Guard::new(store.limit_store(), families, Arc::clone(metrics));
        Some(Face::Ready { guard, keyring })
    });
    face.unwrap_or(Face::Misconfigured)
}

/// The configured signing secrets, or the one of the data directory.
fn keyring(rules: &GuardRules, secrets: Option<&DataSecrets>) -> Option<Keyring> {
    let made = secrets.map(|secrets| secrets.guard_secret.clone());
    let secrets = if rules.secrets.is_empty() { made.into_iter().collect() } else { rules.secrets.clone() };
    Keyring::new(&secrets)
        .inspect_err(
            |error| tracing::error!(kind = "guard-misconfigured", %error, "every RPC is answered 503"),
        )
        .ok()
}

fn log_faults(faults: &[Fault]) {
    for fault in faults {
        tracing::error!(kind = "guard-misconfigured", %fault, "every RPC is answered 503");
    }
}
