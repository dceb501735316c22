//! Records: values that end. What a write, an increment or a new expiry makes of the record there is.
//!
//! A counter is a record whose value is an integer in decimal, as in Redis: readable by a get, and what a
//! set wrote can be counted on.

use core::str;

use thiserror::Error;

use crate::{
    INTEGER_MAX,
    codec::{DecodeError, Reader, first_byte},
};

/// The record that a key has now. One at or past its expiry counts as none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Existing<'a> {
    /// The user's bytes.
    pub value: &'a [u8],
    /// In ms since the epoch.
    pub expires_at_ms: u64,
}

/// When a set may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SetMode {
    /// Whatever there is.
    #[default]
    Always,
    /// Only if there is no record.
    Nx,
    /// Only if there is one.
    Xx,
}

/// How to set a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Set {
    /// When to write.
    pub mode: SetMode,
    /// The life of the record from now, in ms. Needed unless `keep_ttl` goes with [`SetMode::Xx`].
    pub ttl_ms: Option<u64>,
    /// Keep the expiry of the record there is; `ttl_ms` then serves if there is none.
    pub keep_ttl: bool,
}

/// What a set did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetOutcome {
    /// The value is to be written.
    Written {
        /// With this expiry, in ms since the epoch.
        expires_at_ms: u64,
    },
    /// The mode forbids it, or no expiry was given: every record ends. Nothing changes.
    Refused,
}

/// What an increment made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Incremented {
    /// The new value; [`write_integer`] tells how it is stored.
    pub value: i64,
    /// In ms since the epoch: the counter's own, or a new one for a new counter.
    pub expires_at_ms: u64,
}

/// Why there was no increment. The record stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum IncrementError {
    /// The value is not an integer in its shortest decimal form.
    #[error("the value is not an integer")]
    NotAnInteger,
    /// The value or the sum lies outside ±(2^53 - 1).
    #[error("the counter would leave the range of ±9007199254740991")]
    Overflow,
}

impl Existing<'_> {
    fn is_live(&self, now_ms: u64) -> bool {
        self.expires_at_ms > now_ms
    }
}

/// Decides a set.
#[must_use]
pub fn set(existing: Option<Existing<'_>>, set: Set, now_ms: u64) -> SetOutcome {
    let live = existing.filter(|record| record.is_live(now_ms));
    let permitted = match set.mode {
        SetMode::Always => true,
        SetMode::Nx => live.is_none(),
        SetMode::Xx => live.is_some(),
    };
    let kept = live.filter(|_| set.keep_ttl).map(|record| record.expires_at_ms);
    let fresh = set.ttl_ms.map(|ttl_ms| now_ms.saturating_add(ttl_ms));
    match kept.or(fresh).filter(|_| permitted) {
        Some(expires_at_ms) => SetOutcome::Written { expires_at_ms },
        None => SetOutcome::Refused,
    }
}

/// Adds `by` to the counter, or starts it from 0. `ttl_ms` only counts for a new counter, so that steady
/// traffic does not push its end away.
///
/// # Errors
/// What is there isn't a counter, or the sum is out of range. Nothing changes.
pub fn increment(
    existing: Option<Existing<'_>>,
    by: i64,
    ttl_ms: u64,
    now_ms: u64,
) -> Result<Incremented, IncrementError> {
    let (before, expires_at_ms) = match existing.filter(|record| record.is_live(now_ms)) {
        Some(record) => (read_integer(record.value)?, record.expires_at_ms),
        None => (0, now_ms.saturating_add(ttl_ms)),
    };
    let value = before.checked_add(by).filter(in_range).ok_or(IncrementError::Overflow)?;
    Ok(Incremented { value, expires_at_ms })
}

/// The new expiry of a record, in ms since the epoch; `None` if there is no record.
#[must_use]
pub fn expire(existing: Option<Existing<'_>>, ttl_ms: u64, now_ms: u64) -> Option<u64> {
    existing.filter(|record| record.is_live(now_ms)).map(|_| now_ms.saturating_add(ttl_ms))
}

/// How long the record still lives, in ms; `None` if there is none.
#[must_use]
pub fn ttl_left(existing: Option<Existing<'_>>, now_ms: u64) -> Option<u64> {
    existing.filter(|record| record.is_live(now_ms)).map(|record| record.expires_at_ms - now_ms)
}

/// Reads a counter's text: digits with at most a minus sign, no plus, blanks, leading zeros or "-0".
///
/// # Errors
/// The text is no such integer, or one outside ±(2^53 - 1).
pub fn read_integer(text: &[u8]) -> Result<i64, IncrementError> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let shortest = digits == text && text == b"0" || digits.first().is_some_and(|first| *first != b'0');
    if !shortest || !digits.iter().all(u8::is_ascii_digit) {
        return Err(IncrementError::NotAnInteger);
    }
    str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .filter(in_range)
        .ok_or(IncrementError::Overflow)
}

/// A counter's text.
#[must_use]
pub fn write_integer(value: i64) -> alloc::string::String {
    alloc::format!("{value}")
}

/// Appends a record's row: a first byte, then the value as it is.
pub fn encode(value: &[u8], out: &mut impl Extend<u8>) {
    out.extend([first_byte::RECORD]);
    out.extend(value.iter().copied());
}

/// The value of a record's row.
///
/// # Errors
/// The bytes are not a record's row.
pub fn decode(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    let mut reader = Reader::new(bytes);
    match reader.byte()? {
        first_byte::RECORD => Ok(reader.rest()),
        first_byte => Err(DecodeError::Version { first_byte }),
    }
}

fn in_range(value: &i64) -> bool {
    value.unsigned_abs() <= INTEGER_MAX
}

#[cfg(test)]
mod tests;
