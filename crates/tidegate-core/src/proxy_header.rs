//! The header of the PROXY protocol, versions 1 and 2: whose connection a peer brings.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

use crate::decimal;

/// What stands in the beginning of a connection that was read so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyHeader {
    /// The header goes on: at least so many bytes of it are still to be read.
    More(usize),
    /// All of it: whose connection it is, or none where the peer speaks for itself.
    Whole(Option<IpAddr>),
}

/// What was read is no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no header of the PROXY protocol")]
pub struct NoProxyHeader;

/// The longest header that is read. Version 1 has 107 bytes at most; what version 2 carries beside the addresses has
/// no use here, and its own bound of 64 KiB would be a gift.
pub const PROXY_HEADER_BYTES_MAX: usize = V2_FIXED_BYTES + 2048;

/// The shortest one of both versions: `PROXY UNKNOWN\r\n`.
const BYTES_MIN: usize = 15;
const V1_BYTES_MAX: usize = 107;
const V2_FIXED_BYTES: usize = 16;
const V2_SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Reads what has come so far. Whoever reads exactly as many bytes as it asks for has, in the end, the header and not
/// a byte beyond it.
///
/// # Errors
/// It is no header, whatever else comes.
pub fn read(header: &[u8]) -> Result<ProxyHeader, NoProxyHeader> {
    match header.first_chunk::<12>() {
        _ if header.len() < BYTES_MIN => Ok(ProxyHeader::More(BYTES_MIN - header.len())),
        Some(V2_SIGNATURE) => read_v2(header),
        _ if header.starts_with(b"PROXY ") => read_v1(header),
        _ => Err(NoProxyHeader),
    }
}

fn read_v1(header: &[u8]) -> Result<ProxyHeader, NoProxyHeader> {
    match header.strip_suffix(b"\r\n") {
        Some(line) => {
            let line = core::str::from_utf8(line).ok();
            line.and_then(v1).map(ProxyHeader::Whole).ok_or(NoProxyHeader)
        }
        None if header.len() < V1_BYTES_MAX => Ok(ProxyHeader::More(1)),
        None => Err(NoProxyHeader),
    }
}

/// The outer None: not a header.
#[expect(clippy::option_option, reason = "no header, or a header that names nobody")]
fn v1(line: &str) -> Option<Option<IpAddr>> {
    let mut parts = line.split(' ').skip(1);
    let family = parts.next()?;
    if family == "UNKNOWN" {
        return Some(None);
    }
    let (source, destination): (IpAddr, IpAddr) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let ports = [parts.next()?, parts.next()?];
    let of_family = match family {
        "TCP4" => source.is_ipv4() && destination.is_ipv4(),
        "TCP6" => source.is_ipv6() && destination.is_ipv6(),
        _ => false,
    };
    (of_family && ports.into_iter().all(is_port) && parts.next().is_none()).then_some(Some(source))
}

fn is_port(text: &str) -> bool {
    decimal::parse::<u16>(text).is_some()
}

fn read_v2(header: &[u8]) -> Result<ProxyHeader, NoProxyHeader> {
    let (Some(fixed), rest) = (header.first_chunk::<V2_FIXED_BYTES>(), header.get(V2_FIXED_BYTES..)) else {
        return Ok(ProxyHeader::More(V2_FIXED_BYTES - header.len()));
    };
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if V2_FIXED_BYTES + length > PROXY_HEADER_BYTES_MAX {
        return Err(NoProxyHeader);
    }
    let rest = rest.unwrap_or_default();
    if rest.len() < length {
        return Ok(ProxyHeader::More(length - rest.len()));
    }
    let named: Option<IpAddr> = match (fixed[12], fixed[13]) {
        // LOCAL: the peer speaks for itself, whatever addresses stand there. And a family that is none of ours:
        // whose it is can't be told.
        (0x20, _) | (0x21, 0x00) => return Ok(ProxyHeader::Whole(None)),
        (0x21, 0x11) if length >= 12 => rest.first_chunk::<4>().map(|bits| Ipv4Addr::from(*bits).into()),
        (0x21, 0x21) if length >= 36 => rest.first_chunk::<16>().map(|bits| Ipv6Addr::from(*bits).into()),
        _ => None,
    };
    named.map(|source| ProxyHeader::Whole(Some(source))).ok_or(NoProxyHeader)
}
