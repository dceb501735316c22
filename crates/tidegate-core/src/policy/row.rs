//! How policies and the notes about their changes are kept in a store.

use alloc::{string::String, vec::Vec};

use sha2::{Digest, Sha256};

use crate::codec::{DecodeError, Reader, first_byte, put_text, put_varint};

/// The row that says which document is an app's policy. The document follows in rows of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyHead {
    /// How often the policy has been saved, this time included.
    pub version: u64,
    /// When it was, in ms since the epoch.
    pub saved_at_ms: u64,
    /// The bytes of the document.
    pub length: usize,
    /// The start of the document's SHA-256: its rows belong together.
    digest: [u8; 8],
}

/// What somebody changed: a row of the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeNote {
    /// Its place in the order of all notes, from 0.
    pub number: u64,
    /// When, in ms since the epoch.
    pub at_ms: u64,
    /// Who: the name of a token.
    pub actor: String,
    /// What was done: `policy`, `token_create`.
    pub action: String,
    /// To which app, if to one.
    pub app: Option<String>,
    /// What became different, in words.
    pub changes: Vec<String>,
}

impl PolicyHead {
    /// The head of `document`.
    #[must_use]
    pub fn of(document: &[u8], version: u64, saved_at_ms: u64) -> Self {
        Self { version, saved_at_ms, length: document.len(), digest: digest(document) }
    }

    /// Whether it is the head of `document`.
    #[must_use]
    pub fn fits(&self, document: &[u8]) -> bool {
        document.len() == self.length && digest(document) == self.digest
    }

    /// Appends the row's bytes.
    pub fn encode(&self, out: &mut impl Extend<u8>) {
        out.extend([first_byte::POLICY]);
        put_varint(out, self.version);
        put_varint(out, self.saved_at_ms);
        put_varint(out, self.length as u64);
        out.extend(self.digest);
    }

    /// Reads a row back.
    ///
    /// # Errors
    /// The bytes are not such a row.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::of_kind(bytes, first_byte::POLICY)?;
        let (version, saved_at_ms) = (reader.varint()?, reader.varint()?);
        let length = reader.varint_to(super::DOCUMENT_BYTES_MAX as u64)?;
        let digest = reader.array()?;
        reader.end()?;
        let length = usize::try_from(length).map_err(|_| DecodeError::OutOfRange)?;
        Ok(Self { version, saved_at_ms, length, digest })
    }
}

impl ChangeNote {
    /// The longest name of an actor, an action or an app, in bytes.
    pub const WORD_BYTES_MAX: usize = 64;
    /// The longest line about a change.
    pub const CHANGE_BYTES_MAX: usize = 160;
    /// The most lines. With them a row has less than 4 KiB.
    pub const CHANGES_MAX: usize = 20;

    /// Appends the row's bytes. What is over a bound is cut.
    pub fn encode(&self, out: &mut impl Extend<u8>) {
        out.extend([first_byte::POLICY_NOTE]);
        put_varint(out, self.number);
        put_varint(out, self.at_ms);
        put_text(out, Some(cut(&self.actor, Self::WORD_BYTES_MAX)));
        put_text(out, Some(cut(&self.action, Self::WORD_BYTES_MAX)));
        put_text(out, self.app.as_deref().map(|app| cut(app, Self::WORD_BYTES_MAX)));
        let changes = &self.changes[..self.changes.len().min(Self::CHANGES_MAX)];
        put_varint(out, changes.len() as u64);
        for change in changes {
            put_text(out, Some(cut(change, Self::CHANGE_BYTES_MAX)));
        }
    }

    /// Reads a row back.
    ///
    /// # Errors
    /// The bytes are not such a row, whole and in bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::of_kind(bytes, first_byte::POLICY_NOTE)?;
        let (number, at_ms) = (reader.varint()?, reader.varint()?);
        let actor = reader.text(Self::WORD_BYTES_MAX)?.unwrap_or_default();
        let action = reader.text(Self::WORD_BYTES_MAX)?.unwrap_or_default();
        let app = reader.text(Self::WORD_BYTES_MAX)?;
        let count = reader.varint_to(Self::CHANGES_MAX as u64)?;
        let changes = (0..count).map(|_| Ok(reader.text(Self::CHANGE_BYTES_MAX)?.unwrap_or_default()));
        let changes = changes.collect::<Result<_, DecodeError>>()?;
        reader.end()?;
        Ok(Self { number, at_ms, actor, action, app, changes })
    }
}

fn digest(document: &[u8]) -> [u8; 8] {
    let digest: [u8; 32] = Sha256::digest(document).into();
    digest.first_chunk().copied().unwrap_or_default()
}

fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
