//! Datagrams: one fixed size both ways, so that nothing is ever answered with more than it brought.
//!
//! ```text
//!   0   4  "TGR1"
//!   4   1  operation: 1 bind, 0x81 introduction
//!   5  27  the capability's claims
//!  32   8  sequence, from 1
//!  40   8  sent at, ms since the epoch
//!  48   1  how many endpoints follow, at most four
//!  49  76  endpoints; what is not used is zero
//! 125  99  zero
//! 224  32  HMAC-SHA-256 of all of the above under the capability's secret
//! ```
//! Numbers are big-endian.

use std::fmt;

use subtle::ConstantTimeEq;

use crate::{
    capability::{Capability, Claims, fingerprint},
    endpoint::Endpoint,
    keys::{Key, Keyring, mac},
};

/// Every datagram has this many bytes.
pub const DATAGRAM_BYTES: usize = 256;
/// The most endpoints in one.
pub const ENDPOINTS_MAX: usize = 4;
/// How far a sender's clock may be off, either way.
pub const SKEW_MAX_MS: u64 = 30_000;

const MAGIC: [u8; 4] = *b"TGR1";
const CLAIMS: usize = 5;
const SEQUENCE: usize = 32;
const SENT_AT: usize = 40;
const COUNT: usize = 48;
const ENDPOINTS: usize = 49;
const PADDING: usize = ENDPOINTS + ENDPOINTS_MAX * Endpoint::BYTES;
const SIGNATURE: usize = 224;

/// What a datagram is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A peer binds its role to the source that it sends from.
    Bind,
    /// The service tells a peer where the other one is.
    Introduction,
}

/// What is said in a datagram.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// What for.
    pub operation: Operation,
    /// Whose capability it goes under.
    pub claims: Claims,
    /// Grows with every datagram of its sender; an introduction repeats that of the bind it answers.
    pub sequence: u64,
    /// When it was sent, by the sender's clock, in ms since the epoch.
    pub sent_at_ms: u64,
    /// A bind: where else the sender can be reached. An introduction: where the other peer is.
    pub endpoints: Vec<Endpoint>,
}

/// A message whose sender holds the capability that it names, with what tells that capability apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// What it says.
    pub message: Message,
    /// Of the capability's secret.
    pub fingerprint: [u8; 16],
    secret: Key,
}

/// The operation of a datagram by its bytes alone, before anything in it is believed. None: it is of no known
/// kind or size, and nothing else needs to be looked at.
#[must_use]
pub fn operation_of(datagram: &[u8]) -> Option<Operation> {
    if datagram.len() != DATAGRAM_BYTES || !datagram.starts_with(&MAGIC) {
        return None;
    }
    Operation::of(datagram[4])
}

/// Reads a datagram that the holder of a capability sent: the signature first, then the rest. None: whatever
/// is wrong with it, nobody is told.
#[must_use]
pub fn verify(datagram: &[u8], keys: &Keyring, now_ms: u64) -> Option<Verified> {
    operation_of(datagram)?;
    let claims = Claims::from_bytes(datagram.get(CLAIMS..)?.first_chunk()?)?;
    let secret = claims.secret(keys)?;
    let message = read_signed(datagram, &secret)?;
    let fresh = message.sent_at_ms.abs_diff(now_ms) <= SKEW_MAX_MS && now_ms < claims.expires_at_ms;
    (fresh && message.operation == Operation::Bind).then(|| Verified {
        message,
        fingerprint: fingerprint(&secret),
        secret,
    })
}

/// Reads an introduction to the holder of `capability`. None: it is not one of the service's.
#[must_use]
pub fn read_introduction(datagram: &[u8], capability: &Capability) -> Option<Message> {
    operation_of(datagram)?;
    let message = read_signed(datagram, capability.secret())?;
    (message.operation == Operation::Introduction && message.claims == *capability.claims())
        .then_some(message)
}

fn read_signed(datagram: &[u8], secret: &Key) -> Option<Message> {
    let (signed, signature) = datagram.split_at_checked(SIGNATURE)?;
    let expected = mac(&secret[..], &[signed]);
    bool::from(expected.ct_eq(signature)).then(|| Message::read(signed)).flatten()
}

impl Operation {
    const fn byte(self) -> u8 {
        match self {
            Self::Bind => 1,
            Self::Introduction => 0x81,
        }
    }

    const fn of(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Bind),
            0x81 => Some(Self::Introduction),
            _ => None,
        }
    }
}

impl Message {
    /// The datagram, signed. Endpoints past the fourth are left out.
    #[must_use]
    pub fn sign(&self, secret: &Key) -> [u8; DATAGRAM_BYTES] {
        let mut datagram = [0; DATAGRAM_BYTES];
        datagram[..4].copy_from_slice(&MAGIC);
        datagram[4] = self.operation.byte();
        datagram[CLAIMS..SEQUENCE].copy_from_slice(&self.claims.to_bytes());
        datagram[SEQUENCE..SENT_AT].copy_from_slice(&self.sequence.to_be_bytes());
        datagram[SENT_AT..COUNT].copy_from_slice(&self.sent_at_ms.to_be_bytes());
        let places = datagram[ENDPOINTS..PADDING].chunks_exact_mut(Endpoint::BYTES);
        let mut count = 0;
        for (place, endpoint) in places.zip(&self.endpoints) {
            place.copy_from_slice(&endpoint.to_bytes());
            count += 1;
        }
        datagram[COUNT] = count;
        let signature = mac(&secret[..], &[&datagram[..SIGNATURE]]);
        datagram[SIGNATURE..].copy_from_slice(&signature[..]);
        datagram
    }

    fn read(signed: &[u8]) -> Option<Self> {
        let count = usize::from(*signed.get(COUNT)?);
        let (places, rest) = signed.get(ENDPOINTS..)?.split_at_checked(count * Endpoint::BYTES)?;
        if count > ENDPOINTS_MAX || rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        let endpoints =
            places.chunks_exact(Endpoint::BYTES).map(|place| Endpoint::from_bytes(place.first_chunk()?));
        Some(Self {
            operation: Operation::of(*signed.get(4)?)?,
            claims: Claims::from_bytes(signed.get(CLAIMS..)?.first_chunk()?)?,
            sequence: u64::from_be_bytes(*signed.get(SEQUENCE..)?.first_chunk()?),
            sent_at_ms: u64::from_be_bytes(*signed.get(SENT_AT..)?.first_chunk()?),
            endpoints: endpoints.collect::<Option<_>>()?,
        })
    }
}

impl Verified {
    /// The introduction that answers it.
    #[must_use]
    pub fn introduction(&self, endpoints: Vec<Endpoint>, now_ms: u64) -> [u8; DATAGRAM_BYTES] {
        let Message { claims, sequence, .. } = self.message;
        let operation = Operation::Introduction;
        Message { operation, claims, sequence, sent_at_ms: now_ms, endpoints }.sign(&self.secret)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message").field("operation", &self.operation).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
