//! The header of a segment, and the name of its file.

use super::{StoreSeed, array};

/// Where the first frame starts: one sector, so that no frame shares a sector with the header.
pub(crate) const HEADER_BYTES: usize = 512;
/// The header stands twice, so that a damaged one can be restored from the other.
const COPIES_AT: [usize; 2] = [0, HEADER_BYTES / 2];
const MAGIC: [u8; 8] = *b"tidelog\n";
const VERSION: u32 = 1;
/// Bytes that a copy of the header uses: magic, version, segment number, seed, checksum.
const COPY_BYTES: usize = 36;

/// What a segment says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) seed: StoreSeed,
    pub(crate) number: u32,
}

/// What is wrong with a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    /// Neither copy can be read.
    Unreadable,
    /// One copy can't be read, the other says this.
    OneCopy(SegmentHeader, usize),
    /// A version that this program does not know.
    Version(u32),
}

impl SegmentHeader {
    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        for at in COPIES_AT {
            let copy = &mut bytes[at..at + COPY_BYTES];
            copy[..8].copy_from_slice(&MAGIC);
            copy[8..12].copy_from_slice(&VERSION.to_le_bytes());
            copy[12..16].copy_from_slice(&self.number.to_le_bytes());
            copy[16..32].copy_from_slice(&self.seed);
            let crc = crc32fast::hash(&copy[..32]);
            copy[32..].copy_from_slice(&crc.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn parse(segment: &[u8]) -> Result<Self, HeaderFault> {
        match COPIES_AT.map(|at| Self::parse_copy(segment, at)) {
            [Ok(one), Ok(two)] if one == two => Ok(one),
            [Err(HeaderFault::Version(version)), _] | [_, Err(HeaderFault::Version(version))] => {
                Err(HeaderFault::Version(version))
            }
            [Ok(one), Err(_)] => Err(HeaderFault::OneCopy(one, COPIES_AT[1])),
            [Err(_), Ok(two)] => Err(HeaderFault::OneCopy(two, COPIES_AT[0])),
            _ => Err(HeaderFault::Unreadable),
        }
    }

    fn parse_copy(segment: &[u8], at: usize) -> Result<Self, HeaderFault> {
        let copy = segment.get(at..at + COPY_BYTES).ok_or(HeaderFault::Unreadable)?;
        if copy[..8] != MAGIC || crc32fast::hash(&copy[..32]) != u32::from_le_bytes(array(copy, 32)) {
            return Err(HeaderFault::Unreadable);
        }
        match u32::from_le_bytes(array(copy, 8)) {
            VERSION => Ok(Self { seed: array(copy, 16), number: u32::from_le_bytes(array(copy, 12)) }),
            other => Err(HeaderFault::Version(other)),
        }
    }
}

/// The file of a segment.
pub(crate) fn segment_name(number: u32) -> String {
    format!("{number:010}.log")
}

/// The segment that a file holds, if it is one.
pub(crate) fn segment_number(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".log")?;
    (digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_damaged_copy_is_found_and_named() {
        let header = SegmentHeader { seed: [5; 16], number: 77 };
        let good = header.to_bytes();
        assert_eq!(SegmentHeader::parse(&good), Ok(header));
        for (at, fault) in
            [(3, HeaderFault::OneCopy(header, 0)), (256 + 20, HeaderFault::OneCopy(header, 256))]
        {
            let mut bytes = good;
            bytes[at] ^= 1;
            assert_eq!(SegmentHeader::parse(&bytes), Err(fault), "byte {at}");
        }
        assert_eq!(SegmentHeader::parse(&[0; 512]), Err(HeaderFault::Unreadable));
        assert_eq!(SegmentHeader::parse(&good[..100]), Err(HeaderFault::OneCopy(header, 256)));
    }

    #[test]
    fn names() {
        assert_eq!(segment_number(&segment_name(42)), Some(42));
        for other in ["42.log", "0000000042.log.cut", "+000000042.log", "LOCK", "9999999999.log"] {
            assert_eq!(segment_number(other), None, "{other}");
        }
    }
}
