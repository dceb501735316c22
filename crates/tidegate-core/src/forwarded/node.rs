//! One element: the address it names, if it names one.

use core::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str,
};

use smallvec::SmallVec;

use super::{Source, elements::trimmed};
use crate::address::Address;

/// The address of an element, which is not empty.
pub(super) fn address_of(element: &[u8], source: Source) -> Option<Address> {
    match source {
        Source::XForwardedFor => parse_node(element),
        Source::Forwarded => forwarded_for(element),
    }
}

/// Reads an address as proxies write it: with a port where that is unambiguous (`192.0.2.7:4711`,
/// `[2001:db8::7]:4711`), in brackets, and without regard for a zone (`fe80::1%eth0`), which only means
/// something where it was written. Everything else is none.
#[must_use]
pub fn parse_node(node: &[u8]) -> Option<Address> {
    if let Some(plain) = plain_ipv4(node) {
        return Some(Address::from(IpAddr::V4(plain)));
    }
    let node = str::from_utf8(node).ok()?;
    let ip: IpAddr = if let Some(bracketed) = node.strip_prefix('[') {
        let (address, port) = bracketed.split_once(']')?;
        port_is_valid(port).then_some(())?;
        parse_ipv6(address)?.into()
    } else if let Some(address) = parse_ipv6(node) {
        address.into()
    } else {
        let end = node.find(':').unwrap_or(node.len());
        port_is_valid(&node[end..]).then_some(())?;
        node[..end].parse::<Ipv4Addr>().ok()?.into()
    };
    Some(Address::from(ip))
}

/// What most elements are: four numbers. Anything else, even where it names an address, is none; the general way, which
/// tries IPv6 first, takes five times as long.
fn plain_ipv4(node: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = node.split(|byte| *byte == b'.');
    for octet in &mut octets {
        *octet = match *parts.next()? {
            [ones @ b'0'..=b'9'] => ones - b'0',
            [tens @ b'1'..=b'9', ones @ b'0'..=b'9'] => (tens - b'0') * 10 + (ones - b'0'),
            [b'1', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => 100 + (tens - b'0') * 10 + (ones - b'0'),
            [b'2', tens @ b'0'..=b'4', ones @ b'0'..=b'9'] => 200 + (tens - b'0') * 10 + (ones - b'0'),
            [b'2', b'5', ones @ b'0'..=b'5'] => 250 + (ones - b'0'),
            _ => return None,
        };
    }
    parts.next().is_none().then(|| Ipv4Addr::from_octets(octets))
}

fn parse_ipv6(text: &str) -> Option<Ipv6Addr> {
    let address = match text.split_once('%') {
        Some((address, zone)) if is_name(zone) => address,
        Some(_) => return None,
        None => text,
    };
    address.parse().ok()
}

/// Nothing, or a colon and a port: digits, or the hidden name that RFC 7239 allows.
fn port_is_valid(port: &str) -> bool {
    let Some(port) = port.strip_prefix(':') else { return port.is_empty() };
    if let Some(hidden) = port.strip_prefix('_') {
        return is_name(hidden);
    }
    (1..=5).contains(&port.len())
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && port.parse::<u16>().is_ok()
}

fn is_name(text: &str) -> bool {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'%' | b'~');
    !text.is_empty() && text.bytes().all(of_name)
}

/// The one `for` of an element of `Forwarded`.
fn forwarded_for(element: &[u8]) -> Option<Address> {
    let mut found = None;
    let mut rest = element;
    loop {
        let (pair, after) = split_pair(rest)?;
        if let Some(node) = value_of_for(pair) {
            if found.is_some() {
                return None;
            }
            found = Some(node);
        }
        match after {
            Some(after) => rest = after,
            None => break,
        }
    }
    let value = found?;
    match value.strip_prefix(b"\"") {
        None => parse_forwarded(value),
        Some(open) => parse_forwarded(&unquoted(open)?),
    }
}

/// IPv6 stands in brackets there, so that a port can't be taken for a part of it.
fn parse_forwarded(node: &[u8]) -> Option<Address> {
    let bare_ipv6 = node.iter().filter(|byte| **byte == b':').count() > 1 && node.first() != Some(&b'[');
    (!bare_ipv6).then(|| parse_node(node)).flatten()
}

/// Up to the next semicolon outside of quotes, and what follows it. None: a quote is never closed.
fn split_pair(bytes: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let (mut quoted, mut escaped) = (false, false);
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b';' if !quoted => return Some((&bytes[..index], Some(&bytes[index + 1..]))),
            _ => {}
        }
    }
    (!quoted).then_some((bytes, None))
}

fn value_of_for(pair: &[u8]) -> Option<&[u8]> {
    let (name, value) = trimmed(pair).split_at_checked(4)?;
    name.eq_ignore_ascii_case(b"for=").then_some(value)
}

/// The text of a quoted string, after its opening quote.
fn unquoted(open: &[u8]) -> Option<SmallVec<[u8; 64]>> {
    let text = open.strip_suffix(b"\"")?;
    let mut out = SmallVec::new();
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => out.push(bytes.next()?),
            b'"' => return None,
            byte => out.push(byte),
        }
    }
    Some(out)
}
