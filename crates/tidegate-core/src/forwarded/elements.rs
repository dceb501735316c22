//! The elements of a list header, from the right: what is between commas, without the blanks around it.

use super::Source;

/// The elements of a line, last first, empty ones too. In `Forwarded` a comma within quotes separates nothing.
pub(super) fn from_the_right(line: &[u8], source: Source) -> FromTheRight<'_> {
    FromTheRight { rest: Some(line), quotes: source == Source::Forwarded }
}

pub(super) struct FromTheRight<'a> {
    rest: Option<&'a [u8]>,
    quotes: bool,
}

impl<'a> Iterator for FromTheRight<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let comma = if self.quotes { last_comma(rest) } else { rest.iter().rposition(|byte| *byte == b',') };
        self.rest = comma.map(|comma| &rest[..comma]);
        Some(trimmed(&rest[comma.map_or(0, |comma| comma + 1)..]))
    }
}

/// The last comma outside of quotes.
///
/// Reading from the right, what the last proxy wrote is whole by itself, whatever stands to its left: a
/// caller's open quote can't reach into it.
fn last_comma(bytes: &[u8]) -> Option<usize> {
    let mut quoted = false;
    for (index, byte) in bytes.iter().enumerate().rev() {
        match byte {
            b'"' if !(quoted && is_escaped(bytes, index)) => quoted = !quoted,
            b',' if !quoted => return Some(index),
            _ => {}
        }
    }
    None
}

/// Whether an odd number of backslashes stands before the byte.
fn is_escaped(bytes: &[u8], index: usize) -> bool {
    bytes[..index].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Without the spaces and tabs around it.
pub(super) fn trimmed(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}
