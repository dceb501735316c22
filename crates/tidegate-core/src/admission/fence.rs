//! The operator's fence: while it is up, nothing is admitted.

use alloc::{borrow::ToOwned, string::String};

use crate::codec::{DecodeError, Reader, first_byte, put_varint};

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
        let reason = take_text(&mut reader, REASON_BYTES_MAX)?;
        reader.end().map(|()| Self { stopped, reason, since_ms })
    }
}

/// One more than the length, then the bytes; 0 for none.
pub(super) fn put_text(out: &mut impl Extend<u8>, text: Option<&str>) {
    put_varint(out, text.map_or(0, |text| text.len() as u64 + 1));
    out.extend(text.unwrap_or_default().bytes());
}

pub(super) fn take_text(reader: &mut Reader<'_>, bytes_max: usize) -> Result<Option<String>, DecodeError> {
    let Some(length) = reader.varint_to(bytes_max as u64 + 1)?.checked_sub(1) else { return Ok(None) };
    let bytes = reader.bytes(usize::try_from(length).map_err(|_| DecodeError::OutOfRange)?)?;
    let text = core::str::from_utf8(bytes).map_err(|_| DecodeError::OutOfRange)?;
    Ok(Some(text.to_owned()))
}
