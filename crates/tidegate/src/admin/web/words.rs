//! Numbers and times as people read them.

use std::fmt;

/// 12,345,678.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What part of `whole` is, with as many digits as tell something.
pub(super) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 || part == 0 {
        return "0 %".to_owned();
    }
    // Rounded by integers, in thousandths.
    let thousandths = (u128::from(part) * 1000 + u128::from(whole) / 2) / u128::from(whole);
    match thousandths {
        0 => "under 0.1 %".to_owned(),
        1..100 => format!("{}.{} %", thousandths / 10, thousandths % 10),
        _ => format!("{} %", (thousandths + 5) / 10),
    }
}

/// 14:03:59, UTC.
pub(super) fn time(at_ms: u64) -> String {
    let second = at_ms / 1000 % 86_400;
    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// How long, in the two largest units.
pub(super) fn span(span_ms: u64) -> String {
    let seconds = span_ms / 1000;
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, second) => format!("{second} s"),
        (0, 0, minute, 0) => format!("{minute} min"),
        (0, 0, minute, second) => format!("{minute} min {second} s"),
        (0, hour, minute, _) => format!("{hour} h {minute} min"),
        (day, hour, ..) => format!("{day} d {hour} h"),
    }
}

/// One, or several.
pub(super) struct Plural(pub(super) u64, pub(super) &'static str);

impl fmt::Display for Plural {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, noun) = self;
        write!(out, "{} {noun}{}", count(*number), if *number == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), text);
        }
        let table =
            [(0, 0, "0 %"), (1, 3, "33 %"), (1, 100_000, "under 0.1 %"), (7, 300, "2.3 %"), (5, 5, "100 %")];
        for (part, whole, text) in table {
            assert_eq!(percent(part, whole), text);
        }
    }

    #[test]
    fn times() {
        assert_eq!(time(1_764_460_800_000 + 3_723_000), "01:02:03");
        let table = [(400, "0 s"), (60_000, "1 min"), (61_000, "1 min 1 s"), (7_260_000, "2 h 1 min")];
        for (span_ms, text) in table {
            assert_eq!(span(span_ms), text);
        }
        assert_eq!(span(90_000_000), "1 d 1 h");
    }
}
