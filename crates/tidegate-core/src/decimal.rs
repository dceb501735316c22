//! Numbers in digits and nothing else: the standard parser would take a plus sign too.

use core::str::FromStr;

/// The number that these digits are, if it fits.
#[must_use]
pub fn parse<T: FromStr>(digits: &str) -> Option<T> {
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_alone_are_a_number() {
        for (text, expected) in [
            ("0", Some(0)),
            ("007", Some(7)),
            ("65535", Some(65535)),
            ("65536", None),
            ("", None),
            ("+1", None),
            ("-1", None),
            (" 1", None),
            ("1 ", None),
            ("0x1", None),
            ("1_0", None),
            ("\u{661}", None),
        ] {
            assert_eq!(parse::<u16>(text), expected, "{text:?}");
        }
    }
}
