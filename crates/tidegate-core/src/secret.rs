//! Secrets: long enough to be one, never printed, wiped when dropped.

use alloc::string::String;
use core::fmt;

use subtle::ConstantTimeEq;
use thiserror::Error;
use zeroize::Zeroizing;

/// A signing secret, a pepper or an operator's token.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// Which rule a secret breaks; its value is never part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SecretError {
    /// Fewer than [`Secret::CHARS_MIN`] characters.
    #[error("has {chars} characters; at least {} are needed", Secret::CHARS_MIN)]
    TooShort {
        /// How many there are.
        chars: usize,
    },
    /// White space at an end, which one side would trim and the other would not.
    #[error("begins or ends with white space, which is not trimmed")]
    OuterSpace,
    /// A byte order mark, as some editors write it.
    #[error("contains a byte order mark; save the file without one")]
    ByteOrderMark,
    /// A line end inside, a tab, a NUL.
    #[error("contains a control character")]
    ControlCharacter,
    /// Something that documentation or a template would hold.
    #[error("looks like a placeholder; make one with `tidegate keygen`")]
    Placeholder,
}

impl Secret {
    /// The fewest characters of a secret.
    pub const CHARS_MIN: usize = 32;

    /// Takes `text` as it is, if it can be a secret. A refused text is wiped.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn new(text: impl Into<String>) -> Result<Self, SecretError> {
        let text = Zeroizing::new(text.into());
        check(&text)?;
        Ok(Self(text))
    }

    /// Takes the text of a secret's file: line ends at its end are the editor's, all else is the secret's.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn from_file_text(text: impl Into<String>) -> Result<Self, SecretError> {
        let text = Zeroizing::new(text.into());
        Self::new(without_line_ends(&text))
    }

    /// The secret itself. It must not reach a log or an answer.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether it is `other`, in a time that tells nothing but whether the lengths are the same.
    #[must_use]
    pub fn ct_eq(&self, other: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(other).into()
    }
}

impl PartialEq for Secret {
    /// In constant time, as [`Secret::ct_eq`].
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other.0.as_bytes())
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret withheld)")
    }
}

fn check(text: &str) -> Result<(), SecretError> {
    if text.contains(BYTE_ORDER_MARK) {
        return Err(SecretError::ByteOrderMark);
    }
    if text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace) {
        return Err(SecretError::OuterSpace);
    }
    if text.contains(char::is_control) {
        return Err(SecretError::ControlCharacter);
    }
    let chars = text.chars().count();
    if chars < Secret::CHARS_MIN {
        return Err(SecretError::TooShort { chars });
    }
    if is_placeholder(text) { Err(SecretError::Placeholder) } else { Ok(()) }
}

fn without_line_ends(text: &str) -> &str {
    let bare = text.trim_end_matches(['\n', '\r']);
    // A bare carriage return is no line end: what it stood for can't be known.
    let ends = &text[bare.len()..];
    if ends.replace("\r\n", "\n").contains('\r') { text } else { bare }
}

fn is_placeholder(text: &str) -> bool {
    // With room for all of it at once, so that growing leaves no copy behind.
    let mut letters = Zeroizing::new(String::with_capacity(text.len()));
    letters
        .extend(text.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()));
    has_few_characters(text) || PLACEHOLDERS.iter().any(|placeholder| letters.contains(placeholder))
}

/// 32 random hexadecimal digits have 14 different ones on average, and fewer than 6 once in 10^12.
fn has_few_characters(text: &str) -> bool {
    const DIFFERENT_MIN: usize = 6;
    let first_seen = |(place, character): &(usize, char)| text.find(*character) == Some(*place);
    text.char_indices().filter(first_seen).take(DIFFERENT_MIN).count() < DIFFERENT_MIN
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Eight letters or more each, so that no random secret holds one by chance.
const PLACEHOLDERS: [&str; 7] =
    ["changeme", "changethis", "replaceme", "replacethis", "placeholder", "yoursecret", "insertsecret"];

#[cfg(test)]
mod tests;
