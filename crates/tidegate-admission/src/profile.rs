//! The profile: every budget and ceiling, read from TOML and refused with all its faults at once.

mod read;
mod validate;

use thiserror::Error;
use tidegate_core::{forwarded::Source, network::PrefixSet, tracker::Limit};

/// Budgets, ceilings and whose word is taken for a client's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Whose forwarded headers count.
    pub client_address: ClientAddress,
    /// Requests.
    pub http: HttpProfile,
    /// Datagrams.
    pub udp: UdpProfile,
}

/// Where a client's address is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientAddress {
    /// Networks whose forwarded headers are believed.
    pub trusted_proxies: Vec<String>,
    /// The header that they write.
    pub source: Source,
    /// Whether a trusted network may be wider than /8 (IPv4) or /16 (IPv6).
    pub allow_broad_trust: bool,
}

/// [`ClientAddress`], read.
#[derive(Debug)]
pub(crate) struct Trust {
    pub(crate) proxies: PrefixSet,
    pub(crate) source: Source,
}

/// Budgets of HTTP requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpProfile {
    /// The largest body that is read.
    pub body_bytes_max: u64,
    /// How windows, keys and the reserve are bounded.
    pub bounds: Bounds,
    /// The whole service, health probes apart.
    pub global: Limit,
    /// A network of callers.
    pub source_prefix: Limit,
    /// A network of callers, for health probes.
    pub health_source_prefix: Limit,
    /// Each critical operation.
    pub critical_operation: Limit,
    /// Each optional operation.
    pub optional_operation: Limit,
    /// Each health operation.
    pub health_operation: Limit,
    /// A tenant.
    pub tenant: Limit,
    /// Somebody who has signed in.
    pub principal: Limit,
    /// Whoever holds a capability.
    pub capability: Limit,
    /// What is worked on.
    pub resource: Limit,
}

/// Budgets of datagrams. They hold no leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdpProfile {
    /// How windows, keys and the reserve are bounded.
    pub bounds: Bounds,
    /// The whole service.
    pub global: Limit,
    /// A network of senders.
    pub source_prefix: Limit,
    /// Each value of the operation byte.
    pub wire_operation: Limit,
    /// Whoever holds a capability.
    pub capability: Limit,
    /// Each role.
    pub role: Limit,
    /// Each exchange.
    pub mediation_handle: Limit,
}

/// The bounds of one tracker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The length of the window that budgets are for.
    pub window_seconds: u32,
    /// The hard ceiling of identities with a budget spent in this window or a lease held.
    pub max_tracked_keys: u32,
    /// Of these, what only critical work, health probes and verified datagrams may use.
    pub critical_tracked_key_reserve: u32,
}

/// One thing that is wrong with a profile.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {message}")]
pub struct Fault {
    /// The key, as `http.tenant.requests`; empty if it is the whole file.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

/// Everything that is wrong with a profile.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the admission profile has faults: {}", list(.0))]
pub struct InvalidProfile(pub Vec<Fault>);

impl Profile {
    /// The text of the default profile, for operators to tune a copy of.
    pub const DEFAULT_TEXT: &str = include_str!("../profiles/default.toml");

    /// Reads and validates a profile. It must have every dimension, and nothing else.
    ///
    /// # Errors
    /// All faults of the profile.
    pub fn parse(text: &str) -> Result<Self, InvalidProfile> {
        let mut faults = Vec::new();
        let profile = read::profile(text, &mut faults);
        if let Some(profile) = &profile {
            // What could not be read has been complained of.
            let read = faults.clone();
            let invalid = validate::faults(profile).into_iter();
            faults.extend(invalid.filter(|fault| !read.iter().any(|read| fault.is_within(read))));
        }
        profile.filter(|_| faults.is_empty()).ok_or(InvalidProfile(faults))
    }

    /// Checks a profile that was changed after it was read.
    ///
    /// # Errors
    /// All its faults.
    pub fn validate(&self) -> Result<(), InvalidProfile> {
        let faults = validate::faults(self);
        if faults.is_empty() { Ok(()) } else { Err(InvalidProfile(faults)) }
    }
}

impl ClientAddress {
    pub(crate) fn trust(&self) -> Result<Trust, InvalidProfile> {
        let mut faults = Vec::new();
        let proxies = validate::trusted_proxies(self, &mut faults);
        if faults.is_empty() {
            Ok(Trust { proxies, source: self.source })
        } else {
            Err(InvalidProfile(faults))
        }
    }
}

impl Fault {
    fn is_within(&self, other: &Self) -> bool {
        let rest = self.field.strip_prefix(&other.field);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

impl Default for Profile {
    /// The checked-in profile.
    fn default() -> Self {
        Self::parse(Self::DEFAULT_TEXT).expect("the checked-in profile is valid, which a test shows")
    }
}

fn list(faults: &[Fault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
