use alloc::{format, string::ToString, vec::Vec};

use super::*;

const GOOD: &str = "s3cret-s3cret-s3cret-s3cret-1234";

#[test]
fn what_can_be_a_secret() {
    use SecretError::{ByteOrderMark, ControlCharacter, OuterSpace, Placeholder, TooShort};
    let table = [
        (GOOD, None),
        ("secret-for-test-vectors-0123456789abcdef", None),
        ("pepper-for-test-vectors-0123456789abcdef", None),
        ("ein Satz mit Leerzeichen und Umlauten: äöü", None),
        ("0123456789abcdef0123456789abcdef", None),
        ("äöüÄÖÜßéèêáàâóòôúùûíìîñçšžýřďťňě", None), // 32 characters, more bytes.
        ("", Some(TooShort { chars: 0 })),
        ("short", Some(TooShort { chars: 5 })),
        ("s3cret-s3cret-s3cret-s3cret-123", Some(TooShort { chars: 31 })),
        ("äöüÄÖÜßéèêáàâóòôúùûíìîñ", Some(TooShort { chars: 23 })), // 46 bytes.
        ("   ", Some(OuterSpace)),
        ("                                    ", Some(OuterSpace)),
        (" s3cret-s3cret-s3cret-s3cret-1234", Some(OuterSpace)),
        ("s3cret-s3cret-s3cret-s3cret-1234 ", Some(OuterSpace)),
        ("s3cret-s3cret-s3cret-s3cret-1234\n", Some(OuterSpace)),
        ("s3cret-s3cret-s3cret-s3cret-1234\u{a0}", Some(OuterSpace)),
        ("s3cret-s3cret-s3cret\ns3cret-1234-5", Some(ControlCharacter)),
        ("s3cret-s3cret-s3cret\0s3cret-1234-5", Some(ControlCharacter)),
        ("s3cret-s3cret-s3cret\ts3cret-1234-5", Some(ControlCharacter)),
        ("\u{feff}s3cret-s3cret-s3cret-s3cret-1234", Some(ByteOrderMark)),
        ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Some(Placeholder)),
        ("abababababababababababababababababab", Some(Placeholder)),
        ("change-me-in-production-change-me-in", Some(Placeholder)),
        ("CHANGE_ME_to_something_long_and_random", Some(Placeholder)),
        ("put-your-secret-here-put-your-secret", Some(Placeholder)),
        ("this is a placeholder for the secret", Some(Placeholder)),
    ];
    for (text, expected) in table {
        assert_eq!(Secret::new(text).err(), expected, "{text:?}");
    }
}

#[test]
fn the_line_ends_of_a_file_are_not_the_secrets() {
    for tail in ["", "\n", "\r\n", "\n\n", "\r\n\r\n", "\n\r\n"] {
        let secret = Secret::from_file_text(format!("{GOOD}{tail}"));
        assert_eq!(secret.map(|secret| secret.expose().to_string()).as_deref(), Ok(GOOD), "{tail:?}");
    }
    let table = [
        (format!("{GOOD} "), SecretError::OuterSpace),
        (format!("{GOOD} \n"), SecretError::OuterSpace),
        (format!("{GOOD}\r"), SecretError::OuterSpace),
        (format!("\n{GOOD}"), SecretError::OuterSpace),
        (format!("{GOOD}\n{GOOD}\n"), SecretError::ControlCharacter),
        (format!("\u{feff}{GOOD}\n"), SecretError::ByteOrderMark),
        ("\n".to_string(), SecretError::TooShort { chars: 0 }),
    ];
    for (text, error) in table {
        assert_eq!(Secret::from_file_text(text.as_str()).err(), Some(error), "{text:?}");
    }
}

#[test]
fn nothing_printed_shows_it() {
    let secret = Secret::new(GOOD).unwrap();
    let mut printed: Vec<_> = [format!("{secret:?}"), secret.to_string()].into();
    for text in ["tooshort", "tooshort-tooshort-tooshort-tooshort ", "changeme-tooshort-changeme-tooshort"] {
        let error = Secret::new(text).unwrap_err();
        printed.extend([format!("{error:?}"), error.to_string()]);
    }
    for text in printed {
        assert!(!text.contains("s3cret") && !text.contains("tooshort"), "{text}");
    }
}

#[test]
fn comparison() {
    let secret = Secret::new(GOOD).unwrap();
    assert!(secret.ct_eq(GOOD.as_bytes()));
    assert!(secret == secret.clone());
    let longer = format!("{GOOD}5");
    for other in
        ["", &GOOD[..31], &longer, "s3cret-s3cret-s3cret-s3cret-1235", "S3cret-s3cret-s3cret-s3cret-1234"]
    {
        assert!(!secret.ct_eq(other.as_bytes()), "{other:?}");
    }
}
