//! Client addresses: one identity for a host however it is written, and the networks it belongs to.
//!
//! An IPv4 host has one identity whether it comes in on an IPv4 socket, on a dual-stack one
//! (`::ffff:0:0/96`) or through NAT64 (`64:ff9b::/96`). Other IPv6 addresses that merely end in four bytes,
//! `::1` among them, are what they are.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use thiserror::Error;

/// The canonical source of a caller whose address is missing or can't be read.
pub const UNKNOWN: &str = "unknown";

/// A host's address in its canonical form. Printing it withholds it; ask for what you need by name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(IpAddr);

/// A network that an address belongs to, as it is hashed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Network {
    /// The bits of its prefix: 24 for IPv4, 56 or 48 for IPv6.
    pub prefix: u8,
    /// The canonical text: `192.0.2.0/24`, `2001:db8::/48`.
    pub text: String,
}

/// The text is not an address. What it was is withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "not an IPv4 or IPv6 address: no port, brackets, zone, prefix, blanks or leading zeros may stand there"
)]
pub struct InvalidAddress;

impl Address {
    /// Reads an address and nothing else: no port, brackets, zone, prefix, blanks or leading zeros.
    ///
    /// # Errors
    /// The text is anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidAddress> {
        text.parse::<IpAddr>().map(Self::from).map_err(|_| InvalidAddress)
    }

    /// The canonical source that is charged: one IPv4 address, or one IPv6 /64, which one host can have
    /// to itself.
    #[must_use]
    pub fn source(self) -> String {
        match self.0 {
            IpAddr::V4(v4) => format!("{v4}/32"),
            IpAddr::V6(v6) => ipv6_network(v6, 64),
        }
    }

    /// The networks around it, smallest first: IPv4 /24; IPv6 /56 and /48.
    #[must_use]
    pub fn networks(self) -> Vec<Network> {
        match self.0 {
            IpAddr::V4(v4) => {
                let network = Ipv4Addr::from_bits(v4.to_bits() & (u32::MAX << 8));
                vec![Network { prefix: 24, text: format!("{network}/24") }]
            }
            IpAddr::V6(v6) => {
                [56, 48].map(|prefix| Network { prefix, text: ipv6_network(v6, prefix) }).to_vec()
            }
        }
    }

    /// The address itself, for matching it against lists. It must not reach a log.
    #[must_use]
    pub const fn ip(self) -> IpAddr {
        self.0
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(_) => Self(ip),
            IpAddr::V6(v6) => Self(carried_ipv4(v6).map_or(ip, IpAddr::V4)),
        }
    }
}

/// The canonical source of an address as it came, [`UNKNOWN`] if it is missing or can't be read.
#[must_use]
pub fn source_or_unknown(text: Option<&str>) -> String {
    let address = text.and_then(|text| Address::parse(text).ok());
    address.map_or_else(|| UNKNOWN.to_string(), Address::source)
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Address(…)")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(address withheld)")
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Network(/{}, …)", self.prefix)
    }
}

fn carried_ipv4(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    const NAT64: u128 = 0x0064_ff9b << 96;
    let low = u32::try_from(v6.to_bits() & u128::from(u32::MAX)).ok();
    v6.to_ipv4_mapped().or_else(|| low.filter(|_| v6.to_bits() >> 32 == NAT64 >> 32).map(Ipv4Addr::from_bits))
}

fn ipv6_network(v6: Ipv6Addr, prefix: u8) -> String {
    let network = Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << (128 - u32::from(prefix))));
    format!("{network}/{prefix}")
}

#[cfg(test)]
mod tests;
