//! Spans of time as people write them: `250ms`, `30s`, `15m`, `1h`, `2d`.

use core::fmt;

use thiserror::Error;

/// Why a text is not a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DurationError {
    /// Not a whole number followed by a unit.
    #[error("must be a whole number and a unit (ms, s, m, h or d), such as 250ms, 30s, 15m, 1h or 2d")]
    Malformed,
    /// The unit is not one of a fixed length.
    #[error("the unit must be ms, s, m, h or d: a month or a year is not a fixed number of days")]
    Unit,
    /// More milliseconds than 2^53 - 1.
    #[error("is too long")]
    TooLong,
}

/// A span of ms, written as [`parse_ms`] reads it, in the largest unit that divides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written(pub u64);

/// The milliseconds that `text` says: a whole number without a sign or leading zeros, and a unit right
/// after it.
///
/// # Errors
/// The text is anything else; the error names the units.
pub fn parse_ms(text: &str) -> Result<u64, DurationError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() || unit.is_empty() || (number.starts_with('0') && number.len() > 1) {
        return Err(DurationError::Malformed);
    }
    let unit_ms = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ms)| *ms).ok_or_else(|| {
        if unit.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            DurationError::Unit
        } else {
            DurationError::Malformed
        }
    })?;
    let number = number.parse::<u64>().map_err(|_| DurationError::TooLong)?;
    number.checked_mul(unit_ms).filter(|ms| *ms <= crate::INTEGER_MAX).ok_or(DurationError::TooLong)
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let divides = |(_, ms): &&(&str, u64)| self.0 > 0 && self.0.is_multiple_of(*ms);
        let (unit, ms) = UNITS.iter().find(divides).copied().unwrap_or(("ms", 1));
        write!(f, "{}{unit}", self.0 / ms)
    }
}

/// Largest first.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_and_their_milliseconds() {
        let table = [
            ("250ms", Ok(250)),
            ("30s", Ok(30_000)),
            ("15m", Ok(900_000)),
            ("1h", Ok(3_600_000)),
            ("2d", Ok(172_800_000)),
            ("0s", Ok(0)),
            ("1M", Err(DurationError::Unit)),
            ("1month", Err(DurationError::Unit)),
            ("1w", Err(DurationError::Unit)),
            ("1y", Err(DurationError::Unit)),
            ("1S", Err(DurationError::Unit)),
            ("", Err(DurationError::Malformed)),
            ("15", Err(DurationError::Malformed)),
            ("m", Err(DurationError::Malformed)),
            ("month", Err(DurationError::Malformed)),
            ("+15m", Err(DurationError::Malformed)),
            ("-15m", Err(DurationError::Malformed)),
            (" 15m", Err(DurationError::Malformed)),
            ("15 m", Err(DurationError::Malformed)),
            ("15m ", Err(DurationError::Malformed)),
            ("1.5h", Err(DurationError::Malformed)),
            ("1h30m", Err(DurationError::Malformed)),
            ("015m", Err(DurationError::Malformed)),
            ("15м", Err(DurationError::Malformed)),
            ("１m", Err(DurationError::Malformed)),
            ("9007199254740991ms", Ok(crate::INTEGER_MAX)),
            ("9007199254740992ms", Err(DurationError::TooLong)),
            ("18446744073709551616ms", Err(DurationError::TooLong)),
            ("18446744073709551615d", Err(DurationError::TooLong)),
        ];
        for (text, expected) in table {
            assert_eq!(parse_ms(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_units() {
        for error in [DurationError::Malformed, DurationError::Unit] {
            assert!(error.to_string().contains("ms, s, m, h or d"), "{error}");
        }
    }

    #[test]
    fn written_in_the_largest_unit() {
        let table = [(0, "0ms"), (1500, "1500ms"), (60_000, "1m"), (90_000, "90s"), (86_400_000, "1d")];
        for (ms, text) in table {
            assert_eq!(Written(ms).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ms in 0..=crate::INTEGER_MAX) {
            prop_assert_eq!(parse_ms(&Written(ms).to_string()), Ok(ms));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,12}") {
            let _ = parse_ms(&text);
        }
    }
}
