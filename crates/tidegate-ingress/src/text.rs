//! Short texts of header values, written without an allocation of their own.

use smallvec::SmallVec;

/// A text that most values fit in.
pub(crate) type Text = SmallVec<[u8; 48]>;

/// Appends a number in digits.
pub(crate) fn push_number(text: &mut Text, mut number: u64) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] += u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_digits() {
        for number in [0, 7, 10, 99, 100, 255, 1_000_000, u64::MAX] {
            let mut text = Text::from_slice(b"w=");
            push_number(&mut text, number);
            assert_eq!(text.as_slice(), format!("w={number}").as_bytes());
        }
    }
}
