//! The service's own keys: the newest signs, all of them verify, so that a rotation cuts nobody off.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use thiserror::Error;
use tidegate_core::secret::Secret;
use zeroize::Zeroizing;

/// 32 bytes that must not be printed, wiped when dropped.
pub type Key = Zeroizing<[u8; 32]>;

/// The keys in force, the newest first.
#[derive(Debug, Clone)]
pub struct Keyring(Vec<(u16, Secret)>);

/// Keys that can't be used together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyringError {
    /// None at all.
    #[error("no signing key is given")]
    Empty,
    /// More than [`Keyring::KEYS_MAX`].
    #[error("{0} signing keys are given; at most {max} are in force at once", max = Keyring::KEYS_MAX)]
    TooMany(usize),
    /// One id names two keys.
    #[error("the key id {0} is given twice")]
    Repeated(u16),
}

impl Keyring {
    /// One in force, one that is going out, one that is coming in.
    pub const KEYS_MAX: usize = 3;

    /// The first key signs.
    ///
    /// # Errors
    /// There is none, there are too many, or two have one id.
    pub fn new(keys: Vec<(u16, Secret)>) -> Result<Self, KeyringError> {
        match keys.len() {
            0 => return Err(KeyringError::Empty),
            count if count > Self::KEYS_MAX => return Err(KeyringError::TooMany(count)),
            _ => {}
        }
        for (place, (id, _)) in keys.iter().enumerate() {
            if keys[..place].iter().any(|(earlier, _)| earlier == id) {
                return Err(KeyringError::Repeated(*id));
            }
        }
        Ok(Self(keys))
    }

    /// The id of the key that signs.
    #[must_use]
    pub fn signing_id(&self) -> u16 {
        self.0[0].0
    }

    /// What this ring's key `id` makes of `message`; none where it has no such key.
    #[must_use]
    pub fn derive(&self, id: u16, message: &[u8]) -> Option<Key> {
        let (_, secret) = self.0.iter().find(|(known, _)| *known == id)?;
        Some(mac(secret.expose().as_bytes(), &[message]))
    }
}

/// HMAC-SHA-256 over the parts, one after the other.
#[must_use]
pub fn mac(key: &[u8], parts: &[&[u8]]) -> Key {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    for part in parts {
        mac.update(part);
    }
    Zeroizing::new(mac.finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(number: u8) -> Secret {
        Secret::new(format!("{number:02}-0123456789abcdefghijklmnopqrst")).unwrap()
    }

    #[test]
    fn rings_that_can_not_be() {
        let cases = [
            (vec![], KeyringError::Empty),
            (vec![(1, secret(1)), (1, secret(2))], KeyringError::Repeated(1)),
            ((1..=4).map(|id| (id, secret(4))).collect(), KeyringError::TooMany(4)),
        ];
        for (keys, error) in cases {
            assert_eq!(Keyring::new(keys).unwrap_err(), error);
        }
    }

    #[test]
    fn each_key_derives_its_own() {
        let ring = Keyring::new(vec![(2, secret(2)), (1, secret(1))]).unwrap();
        assert_eq!(ring.signing_id(), 2);
        assert_ne!(ring.derive(1, b"x"), ring.derive(2, b"x"));
        assert_ne!(ring.derive(1, b"x"), ring.derive(1, b"y"));
        assert_eq!(ring.derive(3, b"x"), None);
        assert!(!format!("{ring:?}").contains("abcdef"));
    }
}
