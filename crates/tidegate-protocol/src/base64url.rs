//! Base64url without padding (RFC 4648, section 5), for whole values of a fixed size.

/// Writes `bytes` into `chars`, whose length must be what they need: 4 characters for 3 bytes, rounded up.
pub(crate) fn encode(bytes: &[u8], chars: &mut [u8]) {
    for (group, out) in bytes.chunks(3).zip(chars.chunks_mut(4)) {
        let mut padded = [0; 4];
        padded[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(padded);
        for (place, out) in out.iter_mut().enumerate() {
            *out = ALPHABET[(bits >> (18 - 6 * place) & 0x3f) as usize];
        }
    }
}

/// Whether `byte` is one of the 64 characters.
pub(crate) const fn is_char(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_their_characters() {
        // RFC 4648, section 10, and bytes that need the two characters which differ from plain base64.
        let table: [(&[u8], &[u8]); 6] = [
            (b"", b""),
            (b"f", b"Zg"),
            (b"fo", b"Zm8"),
            (b"foo", b"Zm9v"),
            (b"foobar", b"Zm9vYmFy"),
            (&[0xfb, 0xff, 0xbf], b"-_-_"),
        ];
        for (bytes, expected) in table {
            let mut chars = [0; 8];
            let chars = &mut chars[..expected.len()];
            encode(bytes, chars);
            assert_eq!(chars, expected);
            assert!(chars.iter().copied().all(is_char));
        }
    }
}
