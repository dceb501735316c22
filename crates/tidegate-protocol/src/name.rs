//! The short names of a request: its operation, its family, a receipt. Checked once, then carried by value.

use core::{fmt, str};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::{base64url, bounds, word};

/// The id of one logical call: 22 to 64 characters of `[A-Za-z0-9_-]`, fresh and random for each.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OperationId(Text<{ bounds::OPERATION_CHARS_MAX }>);

/// The name of a command family: 1 to 64 characters of `[a-z0-9_-]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Family(Text<{ bounds::FAMILY_CHARS_MAX }>);

/// What proves a reservation: 128 random bits, in 22 characters of base64url. Who has it may refund it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReceiptId(Text<{ bounds::RECEIPT_CHARS }>);

/// The text can't be the name it was taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be {expected}")]
pub struct InvalidName {
    /// What would be one.
    pub expected: &'static str,
}

macro_rules! name_type {
    ($name:ident, $expected:literal, $chars:expr, $is_char:expr) => {
        impl $name {
            const EXPECTED: &str = $expected;

            /// Takes `text` for a name.
            ///
            /// # Errors
            /// The text is too short, too long, or has other characters.
            pub fn parse(text: &str) -> Result<Self, InvalidName> {
                Self::read(text).ok_or(InvalidName { expected: Self::EXPECTED })
            }

            /// The name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }

            fn read(text: &str) -> Option<Self> {
                let fits = $chars.contains(&text.len()) && text.bytes().all($is_char);
                if fits { Text::of(text.as_bytes()).map(Self) } else { None }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                word::deserialize_text(deserializer, Self::EXPECTED, Self::read)
            }
        }

        impl str::FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::parse(text)
            }
        }
    };
}

name_type!(
    OperationId,
    "22 to 64 characters of A-Z, a-z, 0-9, _ and -",
    (bounds::OPERATION_CHARS_MIN..=bounds::OPERATION_CHARS_MAX),
    base64url::is_char
);
name_type!(
    Family,
    "a family's name: 1 to 64 characters of a-z, 0-9, _ and -",
    (1..=bounds::FAMILY_CHARS_MAX),
    |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-')
);
name_type!(
    ReceiptId,
    "a receipt: 22 base64url characters",
    (bounds::RECEIPT_CHARS..=bounds::RECEIPT_CHARS),
    base64url::is_char
);

impl OperationId {
    /// The id that 128 random bits make.
    #[must_use]
    pub fn from_random(bits: [u8; 16]) -> Self {
        Self(Text::of_random(bits))
    }
}

impl ReceiptId {
    /// The receipt that 128 random bits make.
    #[must_use]
    pub fn from_random(bits: [u8; 16]) -> Self {
        Self(Text::of_random(bits))
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OperationId({self})")
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Family({self})")
    }
}

impl fmt::Debug for ReceiptId {
    /// Redacted: whoever reads it could refund it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiptId(…)")
    }
}

/// Up to `N` ASCII characters, in place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Text<const N: usize> {
    chars: [u8; N],
    len: u8,
}

impl<const N: usize> Text<N> {
    /// `None` if there are more than `N`.
    fn of(text: &[u8]) -> Option<Self> {
        let mut chars = [0; N];
        chars.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self { chars, len: u8::try_from(text.len()).ok()? })
    }

    fn of_random(bits: [u8; 16]) -> Self {
        let mut chars = [0; 22];
        base64url::encode(&bits, &mut chars);
        Self::of(&chars).expect("every name has room for 22 characters")
    }

    fn as_str(&self) -> &str {
        str::from_utf8(&self.chars[..usize::from(self.len)]).expect("only ASCII is taken in")
    }
}
