//! How rows are written: a first byte that tells kind and version, then LEB128 numbers.
//!
//! Each kind of row has first bytes of its own, so a row that is read as another kind is refused, and a
//! later version can be told from this one. Numbers are written in their shortest form and only that form
//! is read back, so that a row has one encoding.

use alloc::{borrow::ToOwned, string::String};
use core::str;

use thiserror::Error;

/// Why bytes are not the row they were taken for. Rows are written by the store alone, so this means
/// damage, or a version that this program doesn't know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The row ends too early.
    #[error("the row ends too early")]
    Truncated,
    /// The row goes on after its end.
    #[error("the row has {bytes} bytes too many")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// The first byte names another kind of row, or a version that isn't known here.
    #[error("the row's first byte is {first_byte:#04x}, which is another kind or version")]
    Version {
        /// The byte.
        first_byte: u8,
    },
    /// A number is out of its range or not in its shortest form.
    #[error("a number of the row is out of range")]
    OutOfRange,
}

/// The first byte of each kind and version of row: the kind in the high half, the version in the low one.
pub(crate) mod first_byte {
    pub(crate) const SLIDING: u8 = 0x11;
    pub(crate) const FIXED: u8 = 0x21;
    pub(crate) const BUCKET: u8 = 0x31;
    pub(crate) const BUDGET: u8 = 0x41;
    pub(crate) const RECEIPT: u8 = 0x51;
    pub(crate) const RECORD: u8 = 0x61;
    pub(crate) const FAMILY_DAY: u8 = 0x71;
    pub(crate) const QUOTA: u8 = 0x81;
    pub(crate) const FENCE: u8 = 0x91;
    pub(crate) const AUDIT: u8 = 0xa1;
    pub(crate) const AUDIT_HEAD: u8 = 0xb1;
    pub(crate) const GOOD: u8 = 0xc1;
    pub(crate) const LEASE: u8 = 0xd1;
    pub(crate) const POLICY: u8 = 0xe1;
    pub(crate) const POLICY_NOTE: u8 = 0xf1;
}

/// Appends `value` in LEB128: seven bits a byte, lowest first, the high bit set on all but the last.
pub fn put_varint(out: &mut impl Extend<u8>, mut value: u64) {
    while value >= 0x80 {
        out.extend([low_bits(value) | 0x80]);
        value >>= 7;
    }
    out.extend([low_bits(value)]);
}

/// Appends a text that may be absent: one more than its length, then its bytes; 0 for none.
pub fn put_text(out: &mut impl Extend<u8>, text: Option<&str>) {
    put_varint(out, text.map_or(0, |text| text.len() as u64 + 1));
    out.extend(text.unwrap_or_default().bytes());
}

/// Takes a row apart from its start.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A reader of the whole row.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// A reader of what follows the first byte of a row, which must be `expected`.
    ///
    /// # Errors
    /// It is another one, or there is none.
    pub(crate) fn of_kind(bytes: &'a [u8], expected: u8) -> Result<Self, DecodeError> {
        let mut reader = Self::new(bytes);
        match reader.byte()? {
            first_byte if first_byte == expected => Ok(reader),
            first_byte => Err(DecodeError::Version { first_byte }),
        }
    }

    /// The next byte.
    ///
    /// # Errors
    /// There is none.
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        let (first, rest) = self.0.split_first().ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(*first)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (first, rest) = self.0.split_first_chunk::<N>().ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(*first)
    }

    /// The next `length` bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (first, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(first)
    }

    /// The next number.
    ///
    /// # Errors
    /// It is cut off, too large for 64 bits, or not in its shortest form.
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            let last = byte & 0x80 == 0;
            let fits = bits << shift >> shift == bits;
            let shortest = shift == 0 || byte != 0;
            if !fits || (last && !shortest) {
                return Err(DecodeError::OutOfRange);
            }
            value |= bits << shift;
            if last {
                return Ok(value);
            }
        }
        Err(DecodeError::OutOfRange)
    }

    /// A number of at most `max`.
    ///
    /// # Errors
    /// It is no number, or a larger one.
    pub fn varint_to(&mut self, max: u64) -> Result<u64, DecodeError> {
        self.varint().and_then(|value| if value <= max { Ok(value) } else { Err(DecodeError::OutOfRange) })
    }

    /// A text of at most `bytes_max` bytes, as [`put_text`] writes it.
    ///
    /// # Errors
    /// It is cut off, longer, or not UTF-8.
    pub fn text(&mut self, bytes_max: usize) -> Result<Option<String>, DecodeError> {
        let length = self.varint_to((bytes_max as u64).saturating_add(1))?;
        let Some(length) = length.checked_sub(1) else { return Ok(None) };
        let bytes = self.bytes(usize::try_from(length).map_err(|_| DecodeError::OutOfRange)?)?;
        let text = str::from_utf8(bytes).map_err(|_| DecodeError::OutOfRange)?;
        Ok(Some(text.to_owned()))
    }

    /// Everything that is left.
    #[must_use]
    pub const fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Refuses bytes after the row's end.
    ///
    /// # Errors
    /// There are some.
    pub const fn end(self) -> Result<(), DecodeError> {
        if self.0.is_empty() { Ok(()) } else { Err(DecodeError::Trailing { bytes: self.0.len() }) }
    }
}

fn low_bits(value: u64) -> u8 {
    u8::try_from(value & 0x7f).expect("seven bits fit a byte")
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Result<u64, DecodeError> {
        let mut reader = Reader::new(bytes);
        let value = reader.varint()?;
        reader.end().map(|()| value)
    }

    #[test]
    fn numbers_and_their_bytes() {
        let table: [(u64, &[u8]); 6] = [
            (0, &[0]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (300, &[0xac, 2]),
            (crate::INTEGER_MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]),
            (u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        ];
        for (value, bytes) in table {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(read(bytes), Ok(value));
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let table: [(&[u8], DecodeError); 6] = [
            (&[], DecodeError::Truncated),
            (&[0x80], DecodeError::Truncated),
            (&[0x80, 0], DecodeError::OutOfRange),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], DecodeError::OutOfRange),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0], DecodeError::OutOfRange),
            (&[1, 2, 3], DecodeError::Trailing { bytes: 2 }),
        ];
        for (bytes, error) in table {
            assert_eq!(read(bytes), Err(error), "{bytes:02x?}");
        }
    }

    proptest! {
        #[test]
        fn a_number_has_one_encoding(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            if let Ok(value) = read(&bytes) {
                let mut again = Vec::new();
                put_varint(&mut again, value);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
