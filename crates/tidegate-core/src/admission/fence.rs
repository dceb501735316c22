//! The operator's fence: while it is up, nothing is admitted.

use alloc::string::String;

use crate::codec::{DecodeError, Reader, first_byte, put_text, put_varint};

/// The longest reason, in bytes of UTF-8.
pub const REASON_BYTES_MAX: usize = 256;

/// Whether an operator has stopped everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fence {
    /// Nothing is admitted.
    pub stopped: bool,
    /// What the operator said, at most [`REASON_BYTES_MAX`] bytes.
    pub reason: Option<String>,
    /// Since when it is up, in ms since the epoch; 0 while it is not.
    pub since_ms: u64,
}

impl Fence {
    /// The row after an operator's stop. One that is up stays up since when it was, and keeps its reason unless
    /// another is given.
    #[must_use]
    pub fn raised(&self, reason: Option<String>, now_ms: u64) -> Self {
        let since_ms = if self.stopped { self.since_ms } else { now_ms };
        let before = self.reason.clone().filter(|_| self.stopped);
        Self { stopped: true, reason: reason.or(before), since_ms }
    }

    /// Appends the row's bytes.
    pub fn encode(&self, out: &mut impl Extend<u8>) {
        out.extend([first_byte::FENCE, u8::from(self.stopped)]);
        put_varint(out, self.since_ms);
        put_text(out, self.reason.as_deref());
    }

    /// Reads a row back.
    ///
    /// # Errors
    /// The bytes are not a fence's row, whole and in bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::of_kind(bytes, first_byte::FENCE)?;
        let stopped = match reader.byte()? {
            0 => false,
            1 => true,
            _ => return Err(DecodeError::OutOfRange),
        };
        let since_ms = reader.varint()?;
        let reason = reader.text(REASON_BYTES_MAX)?;
        reader.end().map(|()| Self { stopped, reason, since_ms })
    }
}
