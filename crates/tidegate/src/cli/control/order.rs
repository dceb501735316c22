//! From a verb to the call that is sent: names and addresses become digests.

use thiserror::Error;
use tidegate_client::control::Call;
use tidegate_core::address::{Address, UNKNOWN};
use tidegate_protocol::{
    control::{Axis, FairnessReset, Forget, Resume, Stop},
    identity::{Digest, Pepper, Purpose, digest},
};

use super::{ControlError, ControlVerb};
use crate::{cli::call::client_credentials, config::Loaded};

/// Why a verb names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum OrderError {
    /// No partition.
    #[error("say whose rows to forget, such as login:alice")]
    Nothing,
    /// Not an address.
    #[error("--identity must be an IP address for this axis, such as 192.0.2.7, or `unknown` for source")]
    Address,
    /// An IPv4 address has no /48, an IPv6 one no /24.
    #[error("--identity: this address is in no {}: IPv4 has network/24, IPv6 network/56 and network/48", .0.as_str())]
    NoSuchNetwork(Axis),
}

/// The call that a verb asks for. Peppers are only needed where a name is hashed.
pub(super) fn call(verb: &ControlVerb, loaded: &Loaded) -> Result<Call, ControlError> {
    Ok(match verb {
        ControlVerb::State => Call::State,
        ControlVerb::Stop { reason } => Call::Stop(Stop { reason: reason.clone() }),
        ControlVerb::Resume { families } => {
            Call::Resume(Resume { families: Some(families.clone()).filter(|families| !families.is_empty()) })
        }
        ControlVerb::Reset { family, axis, identity, digest } => {
            let named = match (axis, identity) {
                (Some(axis), Some(identity)) => {
                    let pepper = Pepper::new(&client_credentials(loaded)?.fairness_pepper);
                    Some(identity_digest(&pepper, *axis, identity)?)
                }
                _ => None,
            };
            Call::ResetFairness(FairnessReset { family: *family, axis: *axis, identity: named.or(*digest) })
        }
        ControlVerb::Forget { partition, key, digest, key_digest } => {
            let named = |purpose, name: &Option<String>| match name {
                Some(name) => names_digest(loaded, purpose, name).map(Some),
                None => Ok(None),
            };
            let partition = named(Purpose::Partition, partition)?.or(*digest).ok_or(OrderError::Nothing)?;
            Call::Forget(Forget { partition, key: named(Purpose::Key, key)?.or(*key_digest) })
        }
        ControlVerb::Audit { limit } => Call::Audit { limit: *limit },
    })
}

fn names_digest(loaded: &Loaded, purpose: Purpose, name: &str) -> Result<Digest, ControlError> {
    let pepper = Pepper::new(&client_credentials(loaded)?.pepper);
    Ok(digest(&pepper, purpose, name))
}

/// What stands for an identity of this axis on the server: addresses in their canonical form.
pub(super) fn identity_digest(pepper: &Pepper, axis: Axis, identity: &str) -> Result<Digest, OrderError> {
    let address = || Address::parse(identity).map_err(|_| OrderError::Address);
    let network = |prefix| {
        let networks = address()?.networks();
        let found = networks.into_iter().find(|network| network.prefix == prefix);
        found.map(|network| network.text).ok_or(OrderError::NoSuchNetwork(axis))
    };
    let (purpose, canonical) = match axis {
        Axis::Source if identity == UNKNOWN => (Purpose::Source, UNKNOWN.to_owned()),
        Axis::Source => (Purpose::Source, address()?.source()),
        Axis::Network24 => (Purpose::Network, network(24)?),
        Axis::Network56 => (Purpose::Network, network(56)?),
        Axis::Network48 => (Purpose::Network, network(48)?),
        Axis::Principal => (Purpose::Principal, identity.to_owned()),
    };
    Ok(digest(pepper, purpose, &canonical))
}
