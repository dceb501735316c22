//! The PROXY protocol: a trusted peer says first whose connection it brings.

use std::{
    io::{Error, ErrorKind, Result},
    net::IpAddr,
};

use tidegate_core::proxy_header::{self, ProxyHeader};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Reads the header, and not a byte beyond it: whose connection it is, or None where the peer speaks for itself.
///
/// # Errors
/// What comes is no header.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<IpAddr>> {
    let mut header = Vec::new();
    loop {
        match proxy_header::read(&header).map_err(|fault| Error::new(ErrorKind::InvalidData, fault))? {
            ProxyHeader::Whole(named) => return Ok(named),
            ProxyHeader::More(bytes) => {
                let read = header.len();
                header.resize(read + bytes, 0);
                stream.read_exact(&mut header[read..]).await?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2_SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

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
