//! Limits, and the names of the buckets that they fill.

use alloc::{
    format,
    string::{String, ToString},
};
use core::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

use sha2::{Digest, Sha256};

use super::{Wait, bucket::TOKEN};
use crate::{
    address::Address,
    policy::{DocumentRoute, Rate},
};

/// A limit for each client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    name: LimitName,
    /// Which limit it is, whatever its numbers: its buckets live on when those change.
    id: u64,
    rate_micro: u64,
    burst: u64,
}

/// Which kind of limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitName {
    /// Of the client, for all of the app.
    Client,
    /// Of the client, for a part of it.
    Route,
}

/// Who is one client: an IPv4 address or a prefix of IPv6. Printing it withholds it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ClientKey(u128);

/// The name of a bucket: of a client, under a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BucketId {
    /// The client.
    pub client: ClientKey,
    /// The limit.
    pub limit: u64,
}

impl Limit {
    /// The limit of a policy; none where its rate is 0.
    pub(crate) fn of_client(rps: Rate, burst: u64) -> Option<Self> {
        (rps.0 > 0).then_some(Self { name: LimitName::Client, id: OF_CLIENT, rate_micro: rps.0, burst })
    }

    /// The limit of a route; none where its rate is 0. It is known by what it limits.
    pub(crate) fn of_route(route: &DocumentRoute) -> Option<Self> {
        let mut hasher = Sha256::new();
        hasher.update(route.path_prefix.as_bytes());
        for method in route.methods.iter().flatten() {
            hasher.update([0]);
            hasher.update(method.as_bytes());
        }
        let digest: [u8; 32] = hasher.finalize().into();
        let id = digest.first_chunk::<8>().map_or(1, |bytes| u64::from_le_bytes(*bytes).max(1));
        let limit = Self { name: LimitName::Route, id, rate_micro: route.rps.0, burst: route.burst };
        (route.rps.0 > 0).then_some(limit)
    }

    /// The client's bucket under this limit.
    #[must_use]
    pub const fn bucket_of(&self, client: ClientKey) -> BucketId {
        BucketId { client, limit: self.id }
    }

    /// Millionths of a token a second, which are also the parts of a token that refill in a ms.
    pub(super) const fn rate_micro(&self) -> u64 {
        self.rate_micro
    }

    /// The parts of a full bucket. Time is told in ms, so what refills in one has room beside a token that is not whole
    /// yet: otherwise a rate near `burst` tokens a ms could not be reached. Below it that is no token more.
    pub(super) fn parts(&self) -> u64 {
        (self.burst * TOKEN).max(self.rate_micro + TOKEN - 1)
    }

    pub(super) const fn wait(&self, retry_after_ms: u64) -> Wait {
        let window_s = (self.burst * Rate::ONE).div_ceil(self.rate_micro);
        Wait { limit: self.name, burst: self.burst, window_s, retry_after_ms }
    }
}

/// The number of the client's own limit; no route's is this one.
const OF_CLIENT: u64 = 0;

impl BucketId {
    /// Whether it is under the client's own limit, not under one of a route.
    #[must_use]
    pub const fn is_of_client(&self) -> bool {
        self.limit == OF_CLIENT
    }
}

impl LimitName {
    /// Its name in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Route => "route",
        }
    }
}

impl ClientKey {
    /// Who the address belongs to, where IPv6 clients have a prefix of so many bits.
    #[must_use]
    pub fn of(address: Address, ipv6_prefix: u8) -> Self {
        match address.ip() {
            // No address in its canonical form is a mapped one, so the two families keep apart.
            IpAddr::V4(v4) => Self(v4.to_ipv6_mapped().to_bits()),
            IpAddr::V6(v6) => {
                let host_bits = 128 - u32::from(ipv6_prefix.min(128));
                Self(v6.to_bits() & u128::MAX.checked_shl(host_bits).unwrap_or(0))
            }
        }
    }

    /// Its bits, to be hashed.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// As people write it: `192.0.2.7`, `2001:db8::/64`. It must not reach a log.
    #[must_use]
    pub fn text(self, ipv6_prefix: u8) -> String {
        let v6 = Ipv6Addr::from_bits(self.0);
        match v6.to_ipv4_mapped() {
            Some(v4) => v4.to_string(),
            None if ipv6_prefix >= 128 => v6.to_string(),
            None => format!("{v6}/{ipv6_prefix}"),
        }
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKey(…)")
    }
}
