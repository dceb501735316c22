//! Words of a fixed set, and short texts, in JSON: only a string is one, never an object, a number or null.

use core::{fmt, marker::PhantomData};

use serde::{
    Deserializer,
    de::{self, Visitor},
};

/// A type whose values have names.
pub(crate) trait Word: Copy + 'static {
    /// What it is called in a message.
    const WHAT: &'static str;
    /// Every value and its name.
    const NAMES: &'static [(&'static str, Self)];
}

/// The name of a word.
pub(crate) fn name<T: Word + PartialEq>(word: &T) -> &'static str {
    T::NAMES.iter().find(|(_, value)| value == word).map_or("", |(name, _)| name)
}

/// Reads a word by its exact name.
pub(crate) fn deserialize<'de, T: Word, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_str(WordVisitor(PhantomData))
}

/// Writes a word's name.
pub(crate) fn serialize<T: Word + PartialEq, S: serde::Serializer>(
    word: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name(word))
}

/// The same for a field that may be absent, but not null.
pub(crate) mod optional {
    use serde::{Deserializer, Serializer};

    use super::Word;

    pub(crate) fn deserialize<'de, T: Word, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        super::deserialize(deserializer).map(Some)
    }

    pub(crate) fn serialize<T: Word + PartialEq, S: Serializer>(
        word: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match word {
            Some(word) => super::serialize(word, serializer),
            None => serializer.serialize_none(),
        }
    }
}

/// Reads a text that `parse` accepts.
pub(crate) fn deserialize_text<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    what: &'static str,
    parse: fn(&str) -> Option<T>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(TextVisitor { what, parse })
}

/// Lets a word of this crate be read and written as it is.
macro_rules! word_in_json {
    ($($word:ty),+) => {
        $(
            impl serde::Serialize for $word {
                fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    crate::word::serialize(self, serializer)
                }
            }

            impl<'de> serde::Deserialize<'de> for $word {
                fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    crate::word::deserialize(deserializer)
                }
            }
        )+
    };
}
pub(crate) use word_in_json;

struct WordVisitor<T>(PhantomData<T>);

impl<T: Word> Visitor<'_> for WordVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (", T::WHAT)?;
        for (place, (name, _)) in T::NAMES.iter().enumerate() {
            write!(f, "{}{name}", if place == 0 { "" } else { ", " })?;
        }
        f.write_str(")")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        let found = T::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, value)| *value).ok_or_else(|| E::custom(format_args!("must be {}", Expecting(&self))))
    }
}

struct TextVisitor<T> {
    what: &'static str,
    parse: fn(&str) -> Option<T>,
}

impl<T> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::custom(format_args!("must be {}", self.what)))
    }
}

/// What a visitor expects, as text.
struct Expecting<'a, V>(&'a V);

impl<'de, V: Visitor<'de>> fmt::Display for Expecting<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }
}
