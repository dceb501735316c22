//! The stored row of a window.

use super::{bucket::Arrival, fixed::Fixed, sliding::Sliding};
use crate::{
    INTEGER_MAX,
    codec::{DecodeError, Reader, first_byte, put_varint},
};

/// The row that a window is kept in. Only a charge makes one, or bytes that a charge was written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Of a sliding window.
    Sliding(Sliding),
    /// Of a fixed window.
    Fixed(Fixed),
    /// Of a token bucket.
    Bucket(Arrival),
}

impl State {
    /// Appends the row's bytes: about 8 for a window of seconds, 33 at most.
    pub fn encode(&self, out: &mut impl Extend<u8>) {
        let (first, numbers): (u8, [Option<u64>; 3]) = match *self {
            Self::Sliding(row) => {
                (first_byte::SLIDING, [Some(row.bucket), Some(row.previous), Some(row.current)])
            }
            Self::Fixed(row) => (first_byte::FIXED, [Some(row.bucket), Some(row.count), None]),
            Self::Bucket(row) => (first_byte::BUCKET, [Some(row.whole_ms), Some(row.part), Some(row.limit)]),
        };
        out.extend([first]);
        for number in numbers.into_iter().flatten() {
            put_varint(out, number);
        }
    }

    /// Reads a row back.
    ///
    /// # Errors
    /// The bytes are not a window's row, whole and in bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let state = match reader.byte()? {
            first_byte::SLIDING => Self::Sliding(Sliding {
                bucket: reader.varint()?,
                previous: reader.varint_to(INTEGER_MAX)?,
                current: reader.varint_to(INTEGER_MAX)?,
            }),
            first_byte::FIXED => {
                Self::Fixed(Fixed { bucket: reader.varint()?, count: reader.varint_to(INTEGER_MAX)? })
            }
            first_byte::BUCKET => Self::Bucket(arrival(&mut reader)?),
            first_byte => return Err(DecodeError::Version { first_byte }),
        };
        reader.end().map(|()| state)
    }
}

fn arrival(reader: &mut Reader<'_>) -> Result<Arrival, DecodeError> {
    let whole_ms = reader.varint()?;
    let part = reader.varint()?;
    let limit = reader.varint_to(INTEGER_MAX)?;
    if part < limit { Ok(Arrival { whole_ms, part, limit }) } else { Err(DecodeError::OutOfRange) }
}
