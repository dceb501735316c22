//! What operators did: entries that are kept in a ring of rows.

use alloc::string::String;

use super::{Axis, DAY_MS, fence::REASON_BYTES_MAX};
use crate::codec::{DecodeError, Reader, first_byte, put_text, put_varint};

/// How long an entry is kept: 90 days, in ms.
pub const AUDIT_LIFE_MS: u64 = 90 * DAY_MS;

/// How many entries are kept; the oldest goes first. One a quarter of an hour for 90 days.
pub const AUDIT_ROWS_MAX: u64 = 8_640;

/// The longest text of an entry other than its reason: a family's name, a digest, an address.
const WORD_BYTES_MAX: usize = 64;

/// The row that says which number the next entry gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AuditHead {
    /// That number.
    pub next: u64,
}

impl AuditHead {
    /// Appends the row's bytes.
    pub fn encode(self, out: &mut impl Extend<u8>) {
        out.extend([first_byte::AUDIT_HEAD]);
        put_varint(out, self.next);
    }

    /// Reads a row back.
    ///
    /// # Errors
    /// The bytes are not such a row.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::of_kind(bytes, first_byte::AUDIT_HEAD)?;
        let next = reader.varint()?;
        reader.end().map(|()| Self { next })
    }
}

/// What an operator did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Stopped everything.
    Stop,
    /// Let it go on.
    Resume,
    /// Cleared quotas.
    FairnessReset,
    /// Removed the rows of a partition or of a key.
    Forget,
}

/// One thing that an operator did.
#[derive(Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its place in the order of all entries, from 0.
    pub number: u64,
    /// When, in ms since the epoch.
    pub at_ms: u64,
    /// What.
    pub action: Action,
    /// Of which family.
    pub family: Option<String>,
    /// Of which axis.
    pub axis: Option<Axis>,
    /// Of which identity or partition: a digest.
    pub identity: Option<String>,
    /// Of which key: a digest.
    pub key: Option<String>,
    /// Why, as the operator said.
    pub reason: Option<String>,
    /// From where.
    pub from: String,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 4] = [Self::Stop, Self::Resume, Self::FairnessReset, Self::Forget];

    /// The name in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Resume => "resume",
            Self::FairnessReset => "fairness_reset",
            Self::Forget => "forget",
        }
    }
}

impl AuditEntry {
    /// Appends the row's bytes: under 700.
    pub fn encode(&self, out: &mut impl Extend<u8>) {
        out.extend([first_byte::AUDIT, self.action as u8]);
        put_varint(out, self.number);
        put_varint(out, self.at_ms);
        put_varint(out, self.axis.map_or(0, |axis| axis as u64 + 1));
        for text in [&self.family, &self.identity, &self.key, &self.reason] {
            put_text(out, text.as_deref());
        }
        put_text(out, Some(&self.from));
    }

    /// Reads a row back.
    ///
    /// # Errors
    /// The bytes are not an entry's row, whole and in bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::of_kind(bytes, first_byte::AUDIT)?;
        let action = reader.byte()?;
        let action = Action::ALL.get(usize::from(action)).copied().ok_or(DecodeError::OutOfRange)?;
        let (number, at_ms) = (reader.varint()?, reader.varint()?);
        let axis = match reader.varint_to(Axis::COUNT as u64)?.checked_sub(1) {
            Some(place) => Axis::ALL.into_iter().find(|axis| *axis as u64 == place),
            None => None,
        };
        let mut word = || reader.text(WORD_BYTES_MAX);
        let (family, identity, key) = (word()?, word()?, word()?);
        let reason = reader.text(REASON_BYTES_MAX)?;
        let from = reader.text(WORD_BYTES_MAX)?.unwrap_or_default();
        reader.end()?;
        Ok(Self { number, at_ms, action, family, axis, identity, key, reason, from })
    }
}

impl core::fmt::Debug for AuditEntry {
    /// Without the identity and the key.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AuditEntry")
            .field("number", &self.number)
            .field("at_ms", &self.at_ms)
            .field("action", &self.action)
            .finish_non_exhaustive()
    }
}
