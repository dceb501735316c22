//! What lets its holder take one role in one attempt, until it expires.
//!
//! A capability is made of public claims and a secret that the service derives from them with its own key. It
//! keeps no list of them. The secret goes to the holder over HTTP and never crosses UDP: datagrams are signed
//! with it. A claim that is changed makes another secret, so no part can be exchanged.

use std::fmt;

use subtle::ConstantTimeEq;
use thiserror::Error;

use crate::keys::{Key, Keyring, mac};

/// Which side of an attempt its holder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Who listed the game.
    Host,
    /// Who wants to join it.
    Joiner,
}

/// Names an attempt: random, so that it can't be guessed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptId(pub [u8; 16]);

/// The public part of a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claims {
    /// The service's key that it was derived with.
    pub key_id: u16,
    /// The attempt.
    pub attempt: AttemptId,
    /// The role.
    pub role: Role,
    /// When it ends, in ms since the epoch.
    pub expires_at_ms: u64,
}

/// Claims and the secret that proves them.
#[derive(Clone)]
pub struct Capability {
    claims: Claims,
    secret: Key,
}

/// The text is not a capability. What it was is withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not a capability: {} hexadecimal digits are expected", Capability::TEXT_BYTES)]
pub struct InvalidCapability;

impl Role {
    /// Its byte in a datagram.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Host => 0,
            Self::Joiner => 1,
        }
    }

    /// The role with this byte.
    #[must_use]
    pub const fn of(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Host),
            1 => Some(Self::Joiner),
            _ => None,
        }
    }

    /// The one that it is introduced to.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Host => Self::Joiner,
            Self::Joiner => Self::Host,
        }
    }
}

impl Claims {
    /// How many bytes they are in a datagram.
    pub const BYTES: usize = 27;

    /// As they stand in a datagram: key id, attempt, role, expiry, all big-endian.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..2].copy_from_slice(&self.key_id.to_be_bytes());
        bytes[2..18].copy_from_slice(&self.attempt.0);
        bytes[18] = self.role.byte();
        bytes[19..].copy_from_slice(&self.expires_at_ms.to_be_bytes());
        bytes
    }

    /// Reads what [`Claims::to_bytes`] wrote.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (key_id, rest) = bytes.split_first_chunk::<2>()?;
        let (attempt, rest) = rest.split_first_chunk::<16>()?;
        let (role, rest) = rest.split_first_chunk::<1>()?;
        Some(Self {
            key_id: u16::from_be_bytes(*key_id),
            attempt: AttemptId(*attempt),
            role: Role::of(role[0])?,
            expires_at_ms: u64::from_be_bytes(*rest.first_chunk()?),
        })
    }

    /// The secret that goes with these claims; none where the key is no longer in force.
    #[must_use]
    pub fn secret(&self, keys: &Keyring) -> Option<Key> {
        let mut message = [0; PURPOSE.len() + Self::BYTES];
        message[..PURPOSE.len()].copy_from_slice(PURPOSE);
        message[PURPOSE.len()..].copy_from_slice(&self.to_bytes());
        keys.derive(self.key_id, &message)
    }
}

const PURPOSE: &[u8] = b"rendezvous capability\n";

impl Capability {
    /// How long its text is.
    pub const TEXT_BYTES: usize = 2 * (Claims::BYTES + 32);

    /// Issues one with the newest key.
    #[must_use]
    pub fn issue(keys: &Keyring, attempt: AttemptId, role: Role, expires_at_ms: u64) -> Self {
        let claims = Claims { key_id: keys.signing_id(), attempt, role, expires_at_ms };
        let secret = claims.secret(keys).expect("the key that signs is in the ring");
        Self { claims, secret }
    }

    /// What it says.
    #[must_use]
    pub const fn claims(&self) -> &Claims {
        &self.claims
    }

    /// What proves it. It must not reach a log or a datagram.
    #[must_use]
    pub const fn secret(&self) -> &Key {
        &self.secret
    }

    /// The text that goes to its holder, and to nobody else.
    #[must_use]
    pub fn expose(&self) -> String {
        let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
        let bytes = self.claims.to_bytes().into_iter().chain(self.secret.iter().copied());
        bytes.flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }

    /// Reads what [`Capability::expose`] wrote. Whether the service would still take it is not known here.
    ///
    /// # Errors
    /// The text is anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidCapability> {
        let digits = text.as_bytes();
        if digits.len() != Self::TEXT_BYTES {
            return Err(InvalidCapability);
        }
        let mut bytes = [0_u8; Claims::BYTES + 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = hexadecimal(pair[0])? << 4 | hexadecimal(pair[1])?;
        }
        let (claims, secret) = bytes.split_first_chunk().ok_or(InvalidCapability)?;
        let claims = Claims::from_bytes(claims).ok_or(InvalidCapability)?;
        let secret = Key::new(*secret.first_chunk().ok_or(InvalidCapability)?);
        Ok(Self { claims, secret })
    }

    /// Whether the service made it: for a capability that is shown over HTTP.
    #[must_use]
    pub fn is_genuine(&self, keys: &Keyring) -> bool {
        self.claims.secret(keys).is_some_and(|secret| secret.ct_eq(&self.secret[..]).into())
    }
}

/// Small letters only, so that a capability has one text.
fn hexadecimal(digit: u8) -> Result<u8, InvalidCapability> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(InvalidCapability),
    }
}

/// The first 16 bytes of a hash under the capability's secret: tells capabilities apart and says nothing.
#[must_use]
pub fn fingerprint(secret: &Key) -> [u8; 16] {
    let digest = mac(&secret[..], &[b"rendezvous fingerprint\n"]);
    *digest.first_chunk().expect("a SHA-256 digest has 32 bytes")
}

impl fmt::Debug for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capability").field("role", &self.claims.role).finish_non_exhaustive()
    }
}

impl fmt::Debug for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AttemptId(…)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidegate_core::secret::Secret;

    use super::*;

    fn ring(ids: &[u16]) -> Keyring {
        let key = |id: &u16| (*id, Secret::new(format!("{id:04}-abcdefghijklmnopqrstuvwxyz0123")).unwrap());
        Keyring::new(ids.iter().map(key).collect()).unwrap()
    }

    #[test]
    fn a_rotation_cuts_nobody_off_and_ends() {
        let issued = Capability::issue(&ring(&[1]), AttemptId([7; 16]), Role::Host, 99);
        let cases = [(&[1][..], true), (&[2, 1], true), (&[1, 2], true), (&[2], false), (&[3, 2], false)];
        for (ids, genuine) in cases {
            assert_eq!(issued.is_genuine(&ring(ids)), genuine, "{ids:?}");
        }
        assert_eq!(Capability::issue(&ring(&[2, 1]), AttemptId([7; 16]), Role::Host, 99).claims().key_id, 2);
    }

    proptest! {
        /// One text each; one changed digit makes it no capability, or one that is not genuine.
        #[test]
        fn nothing_of_it_can_be_exchanged(
            attempt: [u8; 16], host: bool, expires_at_ms: u64, place in 0..Capability::TEXT_BYTES, digit in "[0-9a-f]",
        ) {
            let keys = ring(&[5, 4]);
            let role = if host { Role::Host } else { Role::Joiner };
            let issued = Capability::issue(&keys, AttemptId(attempt), role, expires_at_ms);
            let text = issued.expose();
            let read = Capability::parse(&text).unwrap();
            prop_assert_eq!(read.claims(), issued.claims());
            prop_assert!(read.is_genuine(&keys));

            let mut changed = text.clone();
            changed.replace_range(place..=place, &digit);
            let genuine = Capability::parse(&changed).is_ok_and(|read| read.is_genuine(&keys));
            prop_assert_eq!(genuine, changed == text);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,130}") {
            let _ = Capability::parse(&text);
        }
    }

    #[test]
    fn a_text_of_another_spelling_is_none() {
        let text = Capability::issue(&ring(&[1]), AttemptId([0xab; 16]), Role::Joiner, 5).expose();
        for text in [text.to_uppercase(), format!("{text}0"), format!(" {text}"), text[1..].to_owned()] {
            assert_eq!(Capability::parse(&text).unwrap_err(), InvalidCapability);
        }
    }

    #[test]
    fn printing_withholds_it() {
        let issued = Capability::issue(&ring(&[1]), AttemptId([0xab; 16]), Role::Joiner, 5);
        let printed = format!("{issued:?} {:?}", issued.claims());
        assert!(!printed.contains("171") && !printed.contains("abab"), "{printed}");
    }
}
