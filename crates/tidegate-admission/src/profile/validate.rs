//! What a profile's numbers must be, alone and to each other.

use std::ops::RangeInclusive;

use tidegate_core::{
    network::{Prefix, PrefixSet},
    tracker::{Share, Table},
};

use super::{Bounds, ClientAddress, Fault, HttpProfile, Profile, UdpProfile};

/// The keys that one request holds at once: its network, tenant, principal or capability, and resource.
const KEYS_A_REQUEST: u32 = 4;
/// The keys that one datagram is charged with: its network, its capability and its mediation.
const KEYS_A_DATAGRAM: u32 = 3;

/// An hour: a caller who is refused may have to wait for so long.
const WINDOW_SECONDS: RangeInclusive<u32> = 1..=3600;
/// At the top, 1 GiB of rows.
const TRACKED_KEYS: RangeInclusive<u32> = 1..=1 << 24;
/// More than a machine answers in an hour; a larger budget would be none.
const SPENT: RangeInclusive<u32> = 1..=1_000_000_000;
/// More requests than a machine has under way.
const ACTIVE: RangeInclusive<u32> = 1..=1_000_000;
/// Of one identity.
const ACTIVE_OF_A_KEY: RangeInclusive<u32> = 1..=Table::LEASES_MAX;
/// 1 GiB: who takes larger bodies takes them elsewhere.
const BODY_BYTES: RangeInclusive<u32> = 1..=1 << 30;

pub(super) fn faults(profile: &Profile) -> Vec<Fault> {
    let mut faults = Faults(Vec::new());
    faults.http(&profile.http);
    faults.udp(&profile.udp);
    trusted_proxies(&profile.client_address, &mut faults.0);
    faults.0
}

/// The networks whose forwarded headers count. Whoever trusts half of the world lets it choose its budgets.
pub(super) fn trusted_proxies(address: &ClientAddress, faults: &mut Vec<Fault>) -> PrefixSet {
    let mut proxies = Vec::new();
    for (index, text) in address.trusted_proxies.iter().enumerate() {
        let fault = match Prefix::parse(text) {
            Err(error) => error.to_string(),
            Ok(prefix) if !address.allow_broad_trust && is_broad(&prefix) => {
                "is wider than /8 (IPv4) or /16 (IPv6), and allow_broad_trust is not set".to_owned()
            }
            Ok(prefix) => {
                proxies.push(prefix);
                continue;
            }
        };
        faults.push(Fault { field: format!("client_address.trusted_proxies.{index}"), message: fault });
    }
    proxies.into_iter().collect()
}

const fn is_broad(prefix: &Prefix) -> bool {
    prefix.length() < if prefix.is_ipv6() { 16 } else { 8 }
}

struct Faults(Vec<Fault>);

impl Faults {
    fn http(&mut self, http: &HttpProfile) {
        let body_bytes_max = u32::try_from(http.body_bytes_max).unwrap_or(u32::MAX);
        self.range("http.body_bytes_max", body_bytes_max, BODY_BYTES);
        for (path, limit, active) in [
            ("http.global", &http.global, ACTIVE),
            ("http.source_prefix", &http.source_prefix, ACTIVE_OF_A_KEY),
            ("http.health_source_prefix", &http.health_source_prefix, ACTIVE_OF_A_KEY),
            ("http.operation.critical", &http.critical_operation, ACTIVE),
            ("http.operation.optional", &http.optional_operation, ACTIVE),
            ("http.operation.health", &http.health_operation, ACTIVE),
            ("http.tenant", &http.tenant, ACTIVE_OF_A_KEY),
            ("http.principal", &http.principal, ACTIVE_OF_A_KEY),
            ("http.capability", &http.capability, ACTIVE_OF_A_KEY),
            ("http.resource", &http.resource, ACTIVE_OF_A_KEY),
        ] {
            self.share(path, "requests", limit.spent, SPENT);
            self.share(path, "concurrent", limit.active, active);
        }
        let [active, health] = [&http.global, &http.health_operation].map(|limit| limit.active.all);
        // Numbers that are out of range have been complained of; nothing follows from them.
        let follows = ACTIVE.contains(&active) && ACTIVE.contains(&health);
        let [ordinary, probes] = if follows { [active * KEYS_A_REQUEST, health] } else { [0, 0] };
        self.bounds("http", http.bounds, ordinary, probes);
    }

    fn udp(&mut self, udp: &UdpProfile) {
        for (path, limit) in [
            ("udp.global", &udp.global),
            ("udp.source_prefix", &udp.source_prefix),
            ("udp.wire_operation", &udp.wire_operation),
            ("udp.capability", &udp.capability),
            ("udp.role", &udp.role),
            ("udp.mediation_handle", &udp.mediation_handle),
        ] {
            self.share(path, "datagrams", limit.spent, SPENT);
        }
        self.bounds("udp", udp.bounds, KEYS_A_DATAGRAM, 0);
    }

    /// `ordinary` keys must find room outside the reserve while they are held, and `probes` as well within all.
    fn bounds(&mut self, path: &str, bounds: Bounds, ordinary: u32, probes: u32) {
        let Bounds { window_seconds, max_tracked_keys, critical_tracked_key_reserve: reserve } = bounds;
        self.range(&format!("{path}.window_seconds"), window_seconds, WINDOW_SECONDS);
        let ceiling = format!("{path}.max_tracked_keys");
        if !self.range(&ceiling, max_tracked_keys, TRACKED_KEYS) {
            return;
        }
        let least = ordinary.saturating_add(reserve.max(probes));
        if reserve > max_tracked_keys {
            let message = "is over max_tracked_keys, of which it is a part".to_owned();
            self.push(format!("{path}.critical_tracked_key_reserve"), message);
        } else if max_tracked_keys < least {
            let message =
                format!("must be at least {least}: the keys that can be in use at once, and the reserve");
            self.push(ceiling, message);
        }
    }

    fn share(&mut self, path: &str, name: &str, share: Share, range: RangeInclusive<u32>) {
        let is_in_range = self.range(&format!("{path}.{name}"), share.all, range.clone());
        let field = format!("{path}.optional_{name}");
        if share.optional < share.all {
            self.range(&field, share.optional, range);
        } else if is_in_range && share.optional > share.all {
            self.push(field, format!("is over {name}, of which it is a part"));
        }
    }

    fn range(&mut self, field: &str, number: u32, range: RangeInclusive<u32>) -> bool {
        let is_in_range = range.contains(&number);
        if !is_in_range {
            let (first, last) = range.into_inner();
            self.push(field.to_owned(), format!("must be from {first} to {last}"));
        }
        is_in_range
    }

    fn push(&mut self, field: String, message: String) {
        self.0.push(Fault { field, message });
    }
}
