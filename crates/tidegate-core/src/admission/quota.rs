//! What one identity has spent of a family's budget on a day.

use super::{Axis, FamilyDay};
use crate::codec::{DecodeError, Reader, first_byte, put_varint};

/// What one identity has spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// The family's day that it counts for.
    pub day: u64,
    /// See [`FamilyDay::generations`].
    pub generation: u64,
    /// Commands.
    pub used: u64,
}

impl Quota {
    /// The row as it stands on the family's day: unspent if it is of another day or was reset since.
    #[must_use]
    pub fn on(row: Option<&Self>, family: &FamilyDay, axis: Axis) -> Self {
        let generation = family.generations[axis as usize];
        match row {
            Some(row) if row.day == family.day && row.generation == generation => *row,
            _ => Self { day: family.day, generation, used: 0 },
        }
    }

    /// Appends the row's bytes.
    pub fn encode(&self, out: &mut impl Extend<u8>) {
        out.extend([first_byte::QUOTA]);
        put_varint(out, self.day);
        put_varint(out, self.generation);
        put_varint(out, self.used);
    }

    /// Reads a row back.
    ///
    /// # Errors
    /// The bytes are not a quota's row, whole and in bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::of_kind(bytes, first_byte::QUOTA)?;
        let row = Self { day: reader.varint()?, generation: reader.varint()?, used: reader.varint()? };
        reader.end().map(|()| row)
    }
}
