//! Ids in URLs and answers.

/// 32 small hexadecimal digits.
#[must_use]
pub fn text(id: &[u8; 16]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads what [`text`] wrote, and no other spelling.
#[must_use]
pub fn read(digits: &str) -> Option<[u8; 16]> {
    let small = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() != 32 || !digits.bytes().all(small) {
        return None;
    }
    u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling() {
        let id = u128::to_be_bytes(0x00ff_0102);
        assert_eq!(read(&text(&id)), Some(id));
        for digits in
            ["", "00", "+0000000000000000000000000ff0102", &text(&id).to_uppercase(), "é".repeat(16).as_str()]
        {
            assert_eq!(read(digits), None, "{digits}");
        }
    }
}
