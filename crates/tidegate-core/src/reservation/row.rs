//! How budgets and receipts are stored.

use smallvec::SmallVec;

use super::{Budget, Receipt};
use crate::{
    INTEGER_MAX,
    codec::{DecodeError, Reader, first_byte, put_varint},
    key::Key,
};

impl Budget {
    /// Appends the row's bytes.
    pub fn encode(&self, out: &mut impl Extend<u8>) {
        out.extend([first_byte::BUDGET]);
        put_varint(out, self.ends_at_ms);
        put_varint(out, self.used);
    }

    /// Reads a row back.
    ///
    /// # Errors
    /// The bytes are not a budget's row, whole and in bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::of_kind(bytes, first_byte::BUDGET)?;
        let budget = Self { ends_at_ms: reader.varint()?, used: reader.varint_to(INTEGER_MAX)? };
        reader.end().map(|()| budget)
    }
}

impl Receipt {
    /// Appends the row's bytes: about 31 for each budget.
    pub fn encode(&self, out: &mut impl Extend<u8>) {
        out.extend([first_byte::RECEIPT, u8::from(self.refunded)]);
        put_varint(out, self.cost);
        put_varint(out, self.charges.len() as u64);
        for (key, ends_at_ms) in &self.charges {
            out.extend(*key.as_bytes());
            put_varint(out, *ends_at_ms);
        }
    }

    /// Reads a row back.
    ///
    /// # Errors
    /// The bytes are not a receipt's row, whole and in bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::of_kind(bytes, first_byte::RECEIPT)?;
        let refunded = match reader.byte()? {
            0 => false,
            1 => true,
            _ => return Err(DecodeError::OutOfRange),
        };
        let cost = reader.varint_to(INTEGER_MAX)?;
        let count = reader.varint()?;
        let mut charges = SmallVec::new();
        // A count that lies ends with the bytes, before it can ask for memory.
        for _ in 0..count {
            charges.push((Key::from_bytes(reader.array()?), reader.varint()?));
        }
        reader.end().map(|()| Self { refunded, cost, charges })
    }
}
