//! The hashing of identities, which clients do: no address, e-mail or user id ever reaches the server.
//!
//! digest(purpose, value) = base64url(HMAC-SHA256(pepper, purpose + 0x00 + value)), without padding.

use core::{fmt, str};

use hmac::{Hmac, Mac};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Sha256;
use thiserror::Error;
use tidegate_core::secret::Secret;

use crate::{base64url, bounds::DIGEST_CHARS, word};

/// The secret that identities are hashed with. Rotating it renames everything that is stored.
#[derive(Clone)]
pub struct Pepper {
    /// Ready to take a purpose; preparing it costs as much as hashing a value.
    mac: Hmac<Sha256>,
}

/// What a value stands for. The same value has another digest for each purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// The subject whose rows are kept together.
    Partition,
    /// A row within a partition.
    Key,
    /// A caller's canonical address; see [`tidegate_core::address::Address::source`].
    Source,
    /// A network around it; see [`tidegate_core::address::Address::networks`].
    Network,
    /// A user, an account, a token's owner.
    Principal,
}

/// What stands for an identity: 43 base64url characters. Printing it withholds it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; DIGEST_CHARS]);

/// The text is not a digest: most likely its sender forgot to hash. What it was is withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be {}", Digest::EXPECTED)]
pub struct InvalidDigest;

impl Pepper {
    /// A pepper from its secret.
    #[must_use]
    pub fn new(secret: &Secret) -> Self {
        let mac = Hmac::new_from_slice(secret.expose().as_bytes()).expect("HMAC takes a key of any length");
        Self { mac }
    }
}

impl Purpose {
    /// Its name, as it is hashed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Partition => "partition",
            Self::Key => "key",
            Self::Source => "source",
            Self::Network => "network",
            Self::Principal => "principal",
        }
    }
}

/// The digest of `value` for `purpose`. The value's exact bytes count: nothing is folded or trimmed.
#[must_use]
pub fn digest(pepper: &Pepper, purpose: Purpose, value: &str) -> Digest {
    let mut mac = pepper.mac.clone();
    mac.update(purpose.as_str().as_bytes());
    mac.update(&[0]);
    mac.update(value.as_bytes());
    let mut chars = [0; DIGEST_CHARS];
    base64url::encode(&mac.finalize().into_bytes(), &mut chars);
    Digest(chars)
}

impl Digest {
    const EXPECTED: &str = "a digest: 43 base64url characters, never the value itself";

    /// Takes a digest that was hashed elsewhere.
    ///
    /// # Errors
    /// The text is not 43 base64url characters.
    pub fn parse(text: &str) -> Result<Self, InvalidDigest> {
        Self::read(text).ok_or(InvalidDigest)
    }

    /// The 43 characters. They stand for an identity: an operator's answer may show them, a log should not.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).expect("only base64url characters are taken in")
    }

    /// The same, as bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; DIGEST_CHARS] {
        &self.0
    }

    fn read(text: &str) -> Option<Self> {
        let chars: [u8; DIGEST_CHARS] = text.as_bytes().try_into().ok()?;
        chars.iter().copied().all(base64url::is_char).then_some(Self(chars))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(…)")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(digest withheld)")
    }
}

impl fmt::Debug for Pepper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pepper(…)")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word::deserialize_text(deserializer, Self::EXPECTED, Self::read)
    }
}
