//! The guard's face, from the configuration.

use std::sync::Arc;

use tidegate_core::secret::Secret;
use tidegate_guard::{Guard, GuardOptions, Metrics, service::Face};
use tidegate_protocol::{name::Family, signature::Keyring};
use tidegate_rate_limit::OpenStore;

use crate::{
    config::{self, Fault, GuardRules, Loaded},
    secrets::DataSecrets,
};

/// The guard that the configuration describes. One with faults answers every RPC `guard_unavailable`; the log
/// names each of them.
pub(super) fn face(
    loaded: &Loaded,
    secrets: Option<&DataSecrets>,
    store: &OpenStore,
    metrics: &Arc<Metrics>,
) -> Face {
    if let Some(fault) = secrets.and_then(|made| config::shared_with_made(loaded, made)) {
        log_faults(&[fault]);
        return Face::Misconfigured;
    }
    let rules = loaded.regardless().guard.as_ref();
    let face = rules.map_err(|faults| log_faults(faults)).ok().and_then(|rules| {
        let keyring = keyring(rules, secrets)?;
        let operator_token = operator_token(rules, secrets)?;
        let families = rules.families.iter();
        let families = families.filter_map(|(name, rules)| Some((Family::parse(name).ok()?, rules.clone())));
        let options = GuardOptions::of(families);
        let guard = Guard::new(store.limit_store(), store.clock(), options, Arc::clone(metrics));
        Some(Face::Ready { guard, keyring, operator_token })
    });
    face.unwrap_or(Face::Misconfigured)
}

/// The configured operator's token, or the one of the data directory.
fn operator_token(rules: &GuardRules, secrets: Option<&DataSecrets>) -> Option<Secret> {
    let token =
        rules.operator_token.clone().or_else(|| secrets.map(|secrets| secrets.operator_token.clone()));
    if token.is_none() {
        tracing::error!(
            kind = "guard-misconfigured",
            "there is no operator's token; every RPC is answered 503"
        );
    }
    token
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
