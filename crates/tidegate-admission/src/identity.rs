//! Who and what is charged: hashed under a secret seed, so that nothing that is kept says who it was.

use std::{fmt, hash::Hasher as _, net::IpAddr};

use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher13;
use tidegate_core::{address::Address, tracker::Key};

use crate::refusal::Dimension;

/// What keys are hashed under. Drawn anew at each start, it can't be guessed, so nobody can choose identities
/// that share a row or fill one table.
#[derive(Clone)]
pub struct Seed([Begun; Dimension::ALL.len()]);

/// Hashing that is as far as the dimension, so that what all identities in it begin with is hashed once.
#[derive(Clone, Copy)]
struct Begun {
    alone: SipHasher13,
    /// For identities that are within another's.
    within: SipHasher13,
}

/// The network that a caller is charged with: IPv4 /24 or IPv6 /56. An IPv4 address in IPv6 clothes, mapped or
/// by NAT64, is the IPv4 address. Printing it withholds it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SourcePrefix([u8; 8]);

/// What is known of a secret capability: the first half of its SHA-256. Printing it withholds it.
#[derive(Clone, Copy)]
pub struct Fingerprint([u8; 16]);

impl Seed {
    /// A seed from the system's randomness.
    ///
    /// # Errors
    /// The system has none to give.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self::from(bytes))
    }

    /// The key of an identity in a dimension, and within another key's identity if it is of that.
    #[inline]
    pub(crate) fn key(&self, dimension: Dimension, within: Option<Key>, identity: &[u8]) -> Key {
        let begun = &self.0[dimension as usize];
        let Some(Key(within)) = within else { return Key(begun.alone.hash(identity)) };
        let mut hasher = begun.within;
        hasher.write_u64(within);
        Key(hasher.hash(identity))
    }
}

impl From<[u8; 16]> for Seed {
    fn from(bytes: [u8; 16]) -> Self {
        let begun = |head: u64| {
            let mut hasher = SipHasher13::new_with_key(&bytes);
            hasher.write_u64(head);
            hasher
        };
        Self(Dimension::ALL.map(|dimension| {
            let head = (dimension as u64) << 1;
            Begun { alone: begun(head), within: begun(head | 1) }
        }))
    }
}

impl SourcePrefix {
    pub(crate) const fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Address> for SourcePrefix {
    fn from(address: Address) -> Self {
        let mut bytes = [0; 8];
        match address.ip() {
            IpAddr::V4(v4) => {
                bytes[0] = 4;
                bytes[1..4].copy_from_slice(&v4.octets()[..3]);
            }
            IpAddr::V6(v6) => {
                bytes[0] = 6;
                bytes[1..].copy_from_slice(&v6.octets()[..7]);
            }
        }
        Self(bytes)
    }
}

impl From<IpAddr> for SourcePrefix {
    fn from(ip: IpAddr) -> Self {
        Address::from(ip).into()
    }
}

impl Fingerprint {
    /// The fingerprint of a secret, which isn't kept. However long the secret, it is 16 bytes.
    #[must_use]
    pub fn of(secret: &[u8]) -> Self {
        let hash = Sha256::digest(secret);
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        Self(bytes)
    }

    pub(crate) const fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(…)")
    }
}

impl fmt::Debug for SourcePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SourcePrefix(…)")
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(…)")
    }
}

#[cfg(test)]
mod tests;
