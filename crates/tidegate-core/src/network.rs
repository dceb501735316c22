//! Networks and sets of them: what a list of addresses and prefixes holds.
//!
//! An address is compared by its bytes, in its canonical form ([`Address`]). A network of IPv4 written as
//! its mapped or NAT64 form is that IPv4 network. A network of IPv6 holds no IPv4 client, not even `::/0`.

use alloc::vec::Vec;
use core::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use thiserror::Error;

use crate::address::Address;

/// A network: an address and how many of its leading bits count.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    first: Place,
    /// Of its own family: to 32, or to 128.
    length: u8,
}

/// Networks, each with an end of its own if it has one. Looking one up is a binary search.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PrefixSet {
    /// By where they start; each goes on to the next. Neighbours differ in what they say.
    spans: Vec<Span>,
}

/// Why a text is no network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidPrefix {
    /// Neither an address nor a network.
    #[error("is no address and no network; write 192.0.2.7, 192.0.2.0/24, 2001:db8::7 or 2001:db8::/48")]
    Malformed,
    /// The length is over that of an address.
    #[error("the prefix is longer than {longest} bits")]
    Length {
        /// How long it may be.
        longest: u8,
    },
    /// Bits after the prefix are set, so it is not clear what was meant.
    #[error("bits after the prefix are set; the network is {network}")]
    HostBits {
        /// What the text would be without them.
        network: Prefix,
    },
    /// All of the mapped or of the NAT64 addresses: that is all of IPv4, which must be said so.
    #[error("holds every IPv4 address; write 0.0.0.0/0 if that is meant")]
    AllIpv4,
}

/// An address as a number within its family: IPv4 before IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Place {
    ipv6: bool,
    bits: u128,
}

/// What holds from one place to the next: nothing (0), or networks that end at `until_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    from: Place,
    until_ms: u64,
}

/// A network that never ends.
pub const FOREVER_MS: u64 = u64::MAX;

impl Prefix {
    /// Reads `192.0.2.0/24`, `2001:db8::/48`, or an address alone. Blanks around it don't count.
    ///
    /// # Errors
    /// The text is anything else; nothing is guessed.
    pub fn parse(text: &str) -> Result<Self, InvalidPrefix> {
        let text = text.trim_ascii();
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let written: IpAddr = address.parse().map_err(|_| InvalidPrefix::Malformed)?;
        let longest = if written.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(longest), |length| parse_length(length, longest))?;
        Self::canonical(written, length)
    }

    /// Whether the address lies in it.
    #[must_use]
    pub fn contains(&self, address: Address) -> bool {
        let place = Place::of(address);
        self.first <= place && place <= self.last()
    }

    /// Whether it holds every address of its family.
    #[must_use]
    pub const fn is_everything(&self) -> bool {
        self.length == 0
    }

    /// The bits of its prefix, of 32 or of 128.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Whether it is a network of IPv6.
    #[must_use]
    pub const fn is_ipv6(&self) -> bool {
        self.first.ipv6
    }

    /// The network of `written` in the form that addresses have here.
    fn canonical(written: IpAddr, length: u8) -> Result<Self, InvalidPrefix> {
        const EMBEDDED: u8 = 96;
        let folded = Address::from(written);
        let was_folded = folded.ip() != written;
        if was_folded && length == EMBEDDED {
            return Err(InvalidPrefix::AllIpv4);
        }
        if was_folded && length > EMBEDDED {
            return Self::exact(Place::of(folded), length - EMBEDDED);
        }
        let bits = match written {
            IpAddr::V4(v4) => u128::from(v4.to_bits()),
            IpAddr::V6(v6) => v6.to_bits(),
        };
        Self::exact(Place { ipv6: written.is_ipv6(), bits }, length)
    }

    fn exact(place: Place, length: u8) -> Result<Self, InvalidPrefix> {
        let whole = place.width() == u32::from(length);
        let bits = if whole { place.bits } else { place.bits & !place.host_mask(length) };
        let network = Self { first: Place { bits, ..place }, length };
        if bits == place.bits { Ok(network) } else { Err(InvalidPrefix::HostBits { network }) }
    }

    fn last(&self) -> Place {
        Place { bits: self.first.bits | self.first.host_mask(self.length), ..self.first }
    }
}

impl PrefixSet {
    /// The set of networks that each end at an instant, in ms since the epoch; [`FOREVER_MS`] for none. Where
    /// several hold an address, the last of them to end counts.
    #[must_use]
    pub fn ending(networks: impl IntoIterator<Item = (Prefix, u64)>) -> Self {
        let mut networks: Vec<_> = networks.into_iter().collect();
        networks.sort_by_key(|(prefix, _)| (prefix.first, prefix.length));
        let mut builder = Builder::default();
        for (prefix, until_ms) in networks {
            builder.open(prefix, until_ms);
        }
        Self { spans: builder.finish() }
    }

    /// Whether the address lies in a network that has not ended at `at_ms`.
    #[must_use]
    pub fn contains_at(&self, address: Address, at_ms: u64) -> bool {
        let place = Place::of(address);
        let after = self.spans.partition_point(|span| span.from <= place);
        after.checked_sub(1).is_some_and(|index| self.spans[index].until_ms > at_ms)
    }

    /// Whether the address lies in a network, whenever that ends.
    #[must_use]
    pub fn contains(&self, address: Address) -> bool {
        self.contains_at(address, 0)
    }

    /// Whether it holds nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

impl FromIterator<Prefix> for PrefixSet {
    fn from_iter<I: IntoIterator<Item = Prefix>>(networks: I) -> Self {
        Self::ending(networks.into_iter().map(|prefix| (prefix, FOREVER_MS)))
    }
}

/// Networks are nested or apart, never across each other: one pass with the open ones on a stack.
#[derive(Default)]
struct Builder {
    spans: Vec<Span>,
    open: Vec<(Place, u64)>,
}

impl Builder {
    fn open(&mut self, prefix: Prefix, until_ms: u64) {
        self.close_before(Some(prefix.first));
        let until_ms = until_ms.max(self.surrounding());
        self.say(prefix.first, until_ms);
        self.open.push((prefix.last(), until_ms));
    }

    fn finish(mut self) -> Vec<Span> {
        self.close_before(None);
        self.spans
    }

    fn close_before(&mut self, place: Option<Place>) {
        while let Some((last, _)) = self.open.last().copied() {
            if place.is_some_and(|place| place <= last) {
                return;
            }
            self.open.pop();
            if let Some(bits) = last.bits.checked_add(1) {
                self.say(Place { bits, ..last }, self.surrounding());
            }
        }
    }

    fn surrounding(&self) -> u64 {
        self.open.last().map_or(0, |(_, until_ms)| *until_ms)
    }

    fn say(&mut self, from: Place, until_ms: u64) {
        if self.spans.last().is_some_and(|span| span.from == from) {
            self.spans.pop();
        }
        if self.spans.last().map_or(0, |span| span.until_ms) != until_ms {
            self.spans.push(Span { from, until_ms });
        }
    }
}

impl Place {
    fn of(address: Address) -> Self {
        match address.ip() {
            IpAddr::V4(v4) => Self { ipv6: false, bits: u128::from(v4.to_bits()) },
            IpAddr::V6(v6) => Self { ipv6: true, bits: v6.to_bits() },
        }
    }

    const fn width(self) -> u32 {
        if self.ipv6 { 128 } else { 32 }
    }

    /// The bits after a prefix of `length`.
    fn host_mask(self, length: u8) -> u128 {
        let host_bits = self.width() - u32::from(length);
        1u128.checked_shl(host_bits).map_or(u128::MAX, |bit| bit - 1)
    }

    fn ip(self) -> IpAddr {
        if self.ipv6 {
            return Ipv6Addr::from_bits(self.bits).into();
        }
        Ipv4Addr::from_bits(u32::try_from(self.bits).unwrap_or(u32::MAX)).into()
    }
}

impl fmt::Display for Prefix {
    /// As lists are written: an address alone where the prefix is all of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first.ip())?;
        if u32::from(self.length) == self.first.width() { Ok(()) } else { write!(f, "/{}", self.length) }
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prefix(/{}, …)", self.length)
    }
}

impl fmt::Debug for PrefixSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrefixSet({} spans)", self.spans.len())
    }
}

fn parse_length(text: &str, longest: u8) -> Result<u8, InvalidPrefix> {
    let digits = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) {
        return Err(InvalidPrefix::Malformed);
    }
    let length = text.parse().ok().filter(|length| *length <= longest);
    length.ok_or(InvalidPrefix::Length { longest })
}

#[cfg(test)]
mod tests;
