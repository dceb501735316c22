//! The PROXY protocol, versions 1 and 2: a trusted peer says first whose connection it brings.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest header that is read. Version 1 has 107 bytes at most; what version 2 carries beside the addresses has
/// no use here, and its own bound of 64 KiB would be a gift.
const HEADER_BYTES_MAX: usize = 2048;
const V1_BYTES_MAX: usize = 107;
const V2_SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Reads the header, and not a byte beyond it: whose connection it is, or None where the peer speaks for itself.
///
/// # Errors
/// What comes is no header.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<IpAddr>> {
    // Both kinds are at least this long: `PROXY UNKNOWN\r\n`, and version 2's fixed part.
    let mut head = [0; 15];
    stream.read_exact(&mut head).await?;
    match head.first_chunk::<12>() {
        Some(V2_SIGNATURE) => read_v2(stream, head).await,
        _ if head.starts_with(b"PROXY ") => read_v1(stream, head).await,
        _ => Err(refused()),
    }
}

async fn read_v1(stream: &mut (impl AsyncRead + Unpin), head: [u8; 15]) -> io::Result<Option<IpAddr>> {
    let mut line = head.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() == V1_BYTES_MAX {
            return Err(refused());
        }
        line.push(stream.read_u8().await?);
    }
    let line = std::str::from_utf8(&line[..line.len() - 2]).map_err(|_| refused())?;
    v1(line).ok_or_else(refused)
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
    let numbers = ports.iter().all(|port| super::strict_port(port).is_some() || *port == "0");
    (of_family && numbers && parts.next().is_none()).then_some(Some(source))
}

async fn read_v2(stream: &mut (impl AsyncRead + Unpin), head: [u8; 15]) -> io::Result<Option<IpAddr>> {
    let length = usize::from(u16::from_be_bytes([head[14], stream.read_u8().await?]));
    if length > HEADER_BYTES_MAX {
        return Err(refused());
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await?;
    let named: Option<IpAddr> = match (head[12], head[13]) {
        // LOCAL: the peer speaks for itself, whatever addresses stand there. And a family that is none of ours:
        // whose it is can't be told.
        (0x20, _) | (0x21, 0x00) => return Ok(None),
        (0x21, 0x11) if length >= 12 => rest.first_chunk::<4>().map(|bits| Ipv4Addr::from(*bits).into()),
        (0x21, 0x21) if length >= 36 => rest.first_chunk::<16>().map(|bits| Ipv6Addr::from(*bits).into()),
        _ => None,
    };
    named.map(Some).ok_or_else(refused)
}

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no header of the PROXY protocol")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `whose`, or `-` for the peer, and what is left unread; None where it is refused.
    async fn read_all(bytes: &[u8]) -> Option<(String, usize)> {
        let mut rest = bytes;
        let read = read(&mut rest).await.ok()?;
        Some((read.map_or("-".to_owned(), |address| address.to_string()), rest.len()))
    }

    fn v2(command: u8, family: u8, length: u16, rest: &[u8]) -> Vec<u8> {
        [&V2_SIGNATURE[..], &[command, family], &length.to_be_bytes(), rest].concat()
    }

    #[tokio::test]
    async fn headers_are_read_exactly_or_refused() {
        let v4 = [192, 0, 2, 66, 198, 51, 100, 1, 0x0f, 0xa0, 1, 0xbb];
        let v6 = [[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]; 3].concat();
        for (bytes, expected) in [
            (b"PROXY TCP4 192.0.2.66 198.51.100.1 4000 443\r\nGET".to_vec(), Some(("192.0.2.66", 3))),
            (b"PROXY TCP6 2001:db8::1 2001:db8::2 4000 443\r\nGET".to_vec(), Some(("2001:db8::1", 3))),
            (b"PROXY UNKNOWN\r\nGET".to_vec(), Some(("-", 3))),
            (b"PROXY UNKNOWN what ever\r\nGET".to_vec(), Some(("-", 3))),
            (b"PROXY TCP4 2001:db8::1 2001:db8::2 4000 443\r\n".to_vec(), None),
            (b"PROXY TCP4 192.0.2.66 198.51.100.1 4000 443 9\r\n".to_vec(), None),
            (b"PROXY TCP4 192.0.2.066 198.51.100.1 4000 443\r\n".to_vec(), None),
            (b"PROXY TCP4 192.0.2.66 198.51.100.1 +1 443\r\n".to_vec(), None),
            (b"PROXY TCP4 192.0.2.66\r\n".to_vec(), None),
            ([b"PROXY TCP4 ".to_vec(), vec![b'1'; 500]].concat(), None),
            (b"GET / HTTP/1.1\r\n\r\n".to_vec(), None),
            (v2(0x21, 0x11, 12, &[&v4[..], b"GET"].concat()), Some(("192.0.2.66", 3))),
            (v2(0x21, 0x11, 15, &[&v4[..], b"tlvGET"].concat()), Some(("192.0.2.66", 3))),
            (v2(0x21, 0x21, 36, &v6[..36]), Some(("2001:db8::1", 0))),
            (v2(0x20, 0x11, 12, &v4), Some(("-", 0))),
            (v2(0x20, 0x00, 0, b""), Some(("-", 0))),
            (v2(0x21, 0x11, 8, &v4[..8]), None),
            (v2(0x21, 0x11, 65_535, b"abc"), None),
            (v2(0x22, 0x11, 12, &v4), None),
            (v2(0x31, 0x11, 12, &v4), None),
        ] {
            let expected = expected.map(|(address, left)| (address.to_owned(), left));
            assert_eq!(read_all(&bytes).await, expected, "{}", bytes.escape_ascii());
        }
    }
}
