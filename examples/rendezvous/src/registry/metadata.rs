//! What a game may say of itself: bounded, and nothing that a page would take for markup.

use std::{collections::BTreeMap, fmt};

use thiserror::Error;

/// Checked metadata: a name, and a few pairs.
#[derive(Clone, PartialEq, Eq)]
pub struct Metadata {
    name: String,
    pairs: BTreeMap<String, String>,
}

/// Which rule is broken, and where; the text itself is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MetadataFault {
    /// The name is empty or too long.
    #[error("name: has {bytes} bytes; 1 to {max} are taken", max = Metadata::NAME_BYTES_MAX)]
    Name {
        /// How many it has.
        bytes: usize,
    },
    /// Too many pairs.
    #[error("metadata: has {pairs} pairs; at most {max} are taken", max = Metadata::PAIRS_MAX)]
    Pairs {
        /// How many there are.
        pairs: usize,
    },
    /// A key is not one.
    #[error("metadata, key {place}: 1 to {max} small letters, digits, `-` and `_` are taken", max = Metadata::KEY_BYTES_MAX)]
    Key {
        /// Which one, from 1, in the order of the keys.
        place: usize,
    },
    /// A value is too long.
    #[error("metadata, value {place}: has {bytes} bytes; at most {max} are taken", max = Metadata::VALUE_BYTES_MAX)]
    Value {
        /// Which one, from 1, in the order of the keys.
        place: usize,
        /// How many it has.
        bytes: usize,
    },
    /// A control character, or one that begins or ends markup.
    #[error("{place}: control characters and < > & \" ' are not taken")]
    Character {
        /// Where.
        place: &'static str,
    },
}

impl Metadata {
    /// The longest name.
    pub const NAME_BYTES_MAX: usize = 64;
    /// The most pairs.
    pub const PAIRS_MAX: usize = 8;
    /// The longest key.
    pub const KEY_BYTES_MAX: usize = 32;
    /// The longest value.
    pub const VALUE_BYTES_MAX: usize = 128;

    /// Takes them if they keep to the rules.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn new(name: String, pairs: BTreeMap<String, String>) -> Result<Self, MetadataFault> {
        if name.is_empty() || name.len() > Self::NAME_BYTES_MAX {
            return Err(MetadataFault::Name { bytes: name.len() });
        }
        check_characters("name", &name)?;
        if pairs.len() > Self::PAIRS_MAX {
            return Err(MetadataFault::Pairs { pairs: pairs.len() });
        }
        for (place, (key, value)) in (1..).zip(&pairs) {
            let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
            if key.is_empty() || key.len() > Self::KEY_BYTES_MAX || !key.bytes().all(allowed) {
                return Err(MetadataFault::Key { place });
            }
            if value.len() > Self::VALUE_BYTES_MAX {
                return Err(MetadataFault::Value { place, bytes: value.len() });
            }
            check_characters("metadata", value)?;
        }
        Ok(Self { name, pairs })
    }

    /// The game's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The pairs, by key.
    #[must_use]
    pub const fn pairs(&self) -> &BTreeMap<String, String> {
        &self.pairs
    }
}

fn check_characters(place: &'static str, text: &str) -> Result<(), MetadataFault> {
    let refused =
        |character: char| character.is_control() || matches!(character, '<' | '>' | '&' | '"' | '\'');
    if text.contains(refused) { Err(MetadataFault::Character { place }) } else { Ok(()) }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metadata").field("pairs", &self.pairs.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(count: usize) -> BTreeMap<String, String> {
        (0..count).map(|number| (format!("key-{number}"), "v".repeat(Metadata::VALUE_BYTES_MAX))).collect()
    }

    fn pair(key: &str, value: &str) -> BTreeMap<String, String> {
        [(key.to_owned(), value.to_owned())].into()
    }

    #[test]
    fn bounds() {
        let name = "n".repeat(Metadata::NAME_BYTES_MAX);
        assert!(Metadata::new(name.clone(), pairs(Metadata::PAIRS_MAX)).is_ok());
        let cases = [
            (String::new(), pairs(0), "name: has 0 bytes; 1 to 64 are taken"),
            (format!("{name}n"), pairs(0), "name: has 65 bytes; 1 to 64 are taken"),
            ("a\u{7}".to_owned(), pairs(0), "name: control characters and < > & \" ' are not taken"),
            (name.clone(), pairs(9), "metadata: has 9 pairs; at most 8 are taken"),
            (
                name.clone(),
                pair("", ""),
                "metadata, key 1: 1 to 32 small letters, digits, `-` and `_` are taken",
            ),
            (
                name.clone(),
                pair("Map", ""),
                "metadata, key 1: 1 to 32 small letters, digits, `-` and `_` are taken",
            ),
            (
                name.clone(),
                pair(&"k".repeat(33), ""),
                "metadata, key 1: 1 to 32 small letters, digits, `-` and `_` are taken",
            ),
            (
                name.clone(),
                pair("map", &"v".repeat(129)),
                "metadata, value 1: has 129 bytes; at most 128 are taken",
            ),
            (name, pair("map", "<script>"), "metadata: control characters and < > & \" ' are not taken"),
        ];
        for (name, pairs, message) in cases {
            let fault = Metadata::new(name, pairs).unwrap_err();
            assert_eq!(fault.to_string(), message);
        }
    }
}
