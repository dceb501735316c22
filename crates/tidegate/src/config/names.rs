//! Names that people choose: of families and of apps.

/// The longest name.
const NAME_CHARS_MAX: usize = 64;

/// What is wrong with the chosen name in a key's path, if there is one and anything is.
pub(super) fn name_fault(path: &str) -> Option<&'static str> {
    let (rest, fault) = match path.strip_prefix("guard.families.") {
        Some(rest) => (rest, "the name of a family has 1 to 64 of a-z, 0-9, _ and -"),
        None => (path.strip_prefix("apps.")?, "the name of an app has 1 to 64 of a-z, 0-9, _ and -"),
    };
    let name = rest.split('.').next()?;
    let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    let good = (1..=NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(allowed);
    (!good).then_some(fault)
}
