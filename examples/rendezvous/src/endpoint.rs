//! Where a peer can be reached: what it was seen at, and what it says of its own network.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use tidegate_core::address::Address;

/// An address and a port. Printing it withholds both.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Endpoint {
    address: IpAddr,
    port: u16,
}

impl Endpoint {
    /// Bytes in a datagram: the family, 16 bytes of address, the port.
    pub const BYTES: usize = 19;

    /// The endpoint that a datagram came from; an IPv4 peer is IPv4 on whatever socket it came in.
    #[must_use]
    pub fn observed(source: SocketAddr) -> Self {
        Self { address: Address::from(source.ip()).ip(), port: source.port() }
    }

    /// Where to send to.
    #[must_use]
    pub const fn socket_address(self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    /// Whether both are behind one public address.
    #[must_use]
    pub fn shares_address_with(self, other: Self) -> bool {
        self.address == other.address
    }

    /// Whether a peer that was seen at `observed` may name it: private, unicast, of the same family, and with a
    /// port. Anything else would make the other peer send to somebody who never asked.
    #[must_use]
    pub fn is_candidate_of(self, observed: Self) -> bool {
        let private = match self.address {
            IpAddr::V4(v4) => v4.is_private(),
            IpAddr::V6(v6) => is_unique_local(v6),
        };
        private && self.port != 0 && self.address.is_ipv4() == observed.address.is_ipv4()
    }

    /// As it stands in a datagram.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        match self.address {
            IpAddr::V4(v4) => {
                bytes[0] = 4;
                bytes[1..5].copy_from_slice(&v4.octets());
            }
            IpAddr::V6(v6) => {
                bytes[0] = 6;
                bytes[1..17].copy_from_slice(&v6.octets());
            }
        }
        bytes[17..].copy_from_slice(&self.port.to_be_bytes());
        bytes
    }

    /// Reads what [`Endpoint::to_bytes`] wrote, and nothing else: an endpoint has one spelling, and an IPv4
    /// address does not hide in an IPv6 one.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let [family, rest @ ..] = bytes;
        let (address, port) = rest.split_first_chunk::<16>()?;
        let address = match family {
            4 if address[4..] == [0; 12] => IpAddr::V4(Ipv4Addr::from(*address.first_chunk::<4>()?)),
            6 => IpAddr::V6(Ipv6Addr::from(*address)),
            _ => return None,
        };
        let canonical = Address::from(address).ip() == address;
        canonical.then(|| Self { address, port: u16::from_be_bytes([port[0], port[1]]) })
    }
}

/// fc00::/7.
const fn is_unique_local(v6: Ipv6Addr) -> bool {
    v6.octets()[0] & 0xfe == 0xfc
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Endpoint(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(text: &str) -> Endpoint {
        Endpoint::observed(text.parse().unwrap())
    }

    #[test]
    fn candidates() {
        let (v4, v6) = (endpoint("198.51.100.7:40000"), endpoint("[2001:db8::7]:40000"));
        let cases = [
            ("10.0.0.1:1", v4, true),
            ("172.16.0.1:65535", v4, true),
            ("172.32.0.1:1", v4, false),
            ("192.168.1.1:1000", v4, true),
            ("192.168.1.1:0", v4, false),
            ("192.168.1.1:1000", v6, false),
            ("127.0.0.1:1000", v4, false),
            ("169.254.1.1:1000", v4, false),
            ("224.0.0.1:1000", v4, false),
            ("255.255.255.255:1000", v4, false),
            ("0.0.0.0:1000", v4, false),
            ("100.64.0.1:1000", v4, false),
            ("203.0.113.1:1000", v4, false),
            ("[fd00::1]:1000", v6, true),
            ("[fc00::1]:1000", v6, true),
            ("[fd00::1]:1000", v4, false),
            ("[fe80::1]:1000", v6, false),
            ("[::1]:1000", v6, false),
            ("[ff02::1]:1000", v6, false),
            ("[2001:db8::1]:1000", v6, false),
            // Seen on a dual-stack socket, it is the IPv4 address that it carries.
            ("[::ffff:10.0.0.1]:1000", v4, true),
            ("[::ffff:10.0.0.1]:1000", v6, false),
        ];
        for (candidate, observed, allowed) in cases {
            assert_eq!(endpoint(candidate).is_candidate_of(observed), allowed, "{candidate}");
        }
    }

    #[test]
    fn one_spelling_each() {
        for text in ["10.0.0.1:1", "[fd00::1]:65535", "198.51.100.7:0"] {
            let there = endpoint(text);
            assert_eq!(Endpoint::from_bytes(&there.to_bytes()), Some(there));
            assert_eq!(there.socket_address(), text.parse().unwrap());
        }
        let mut mapped = [0; Endpoint::BYTES];
        mapped[0] = 6;
        mapped[11..17].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 1]);
        assert_eq!(Endpoint::from_bytes(&mapped), None, "IPv4 in IPv6");
        let mut tail = endpoint("10.0.0.1:1").to_bytes();
        tail[9] = 1;
        assert_eq!(Endpoint::from_bytes(&tail), None, "bytes after an IPv4 address");
        assert_eq!(Endpoint::from_bytes(&[5; Endpoint::BYTES]), None);
    }

    #[test]
    fn printing_withholds_it() {
        assert!(!format!("{:?}", endpoint("10.0.0.1:12345")).contains(['1', '5']));
    }
}
