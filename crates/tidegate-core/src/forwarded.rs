//! Whose request it is, behind proxies: the walk along the forwarded addresses.
//!
//! Proxies append. So the list is read from the right, hop by hop, as long as the hop that wrote an element
//! is trusted; the first address that is not a trusted proxy's is the client. What can't be read ends the
//! walk: skipping it would let a caller choose. The last good hop is the client then.

use core::fmt;

use crate::{address::Address, network::PrefixSet};

mod elements;
mod node;

pub use node::parse_node;

/// The header that trusted proxies append to. The other one is never read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Source {
    /// `X-Forwarded-For`: addresses, with or without a port.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239): the `for` of each element.
    Forwarded,
}

/// Where a walk ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Walk {
    /// The client.
    pub client: Address,
    /// Whether an element that is no address ended it.
    pub unreadable: bool,
}

/// The most elements that are looked at. More proxies in a row are a mistake or an attack.
pub const ELEMENTS_MAX: usize = 64;

/// The client of a request that came from `peer` with these header lines, in the order they came in.
///
/// The header of a peer that is not trusted says nothing.
pub fn client_address<'a>(
    peer: Address,
    lines: impl DoubleEndedIterator<Item = &'a [u8]>,
    trusted: &PrefixSet,
    source: Source,
) -> Address {
    walk(peer, lines, trusted, source).client
}

/// [`client_address`], and how it was found.
pub fn walk<'a>(
    peer: Address,
    lines: impl DoubleEndedIterator<Item = &'a [u8]>,
    trusted: &PrefixSet,
    source: Source,
) -> Walk {
    let mut client = peer;
    if !trusted.contains(peer) {
        return Walk { client, unreadable: false };
    }
    let elements = lines.rev().flat_map(|line| elements::from_the_right(line, source)).take(ELEMENTS_MAX);
    for element in elements.filter(|element| !element.is_empty()) {
        let Some(address) = node::address_of(element, source) else {
            return Walk { client, unreadable: true };
        };
        client = address;
        if !trusted.contains(address) {
            break;
        }
    }
    Walk { client, unreadable: false }
}

impl Source {
    /// Its header, in lower case.
    #[must_use]
    pub const fn header(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
        }
    }
}

impl fmt::Debug for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Walk").field("unreadable", &self.unreadable).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
