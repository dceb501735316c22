//! The signature over a request's raw bytes, and what proves that it was checked.
//!
//! `Tidegate-Signature: t=<unix ms>,v1=<64 lowercase hex digits>`, exactly once, where v1 is the HMAC-SHA256 of
//! "v1\n" + t + "\n" + METHOD + "\n" + PATH + "\n" + body.

use alloc::{format, string::String, vec::Vec};
use core::{fmt, str};

use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};
use thiserror::Error;
use tidegate_core::secret::Secret;

use crate::bounds::{SECRETS_MAX, SKEW_MS_MAX};

/// The header's name, as HTTP/2 has it.
pub const HEADER: &str = "tidegate-signature";

/// The secrets that a server accepts: the current one, and others during a rotation.
#[derive(Clone)]
pub struct Keyring(Vec<Hmac<Sha256>>);

/// The secrets can't make a keyring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{secrets} signing secrets; 1 to {SECRETS_MAX} are needed")]
pub struct KeyringError {
    /// How many there were.
    pub secrets: usize,
}

/// A body whose sender is known. Nothing parses one that isn't.
#[derive(Clone, Copy)]
pub struct Verified<'a> {
    body: &'a [u8],
}

/// Why a signature was not accepted. Both are a 401.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Rejected {
    /// No header, several, a malformed one or a wrong HMAC; a stranger isn't told which.
    #[error("the request needs one valid Tidegate-Signature header")]
    Unauthenticated,
    /// The HMAC is right, so its sender may know that the time is not.
    #[error(
        "the signature's t must be unix time in milliseconds, at most {SKEW_MS_MAX} from the server's clock; \
         it is off by {off_ms} ms"
    )]
    ClockOff {
        /// The signature's time minus the server's.
        off_ms: i64,
    },
}

impl Keyring {
    /// Prepares the secrets, so that a request costs no key setup.
    ///
    /// # Errors
    /// None, or more than [`SECRETS_MAX`].
    pub fn new(secrets: &[Secret]) -> Result<Self, KeyringError> {
        if secrets.is_empty() || secrets.len() > SECRETS_MAX {
            return Err(KeyringError { secrets: secrets.len() });
        }
        Ok(Self(secrets.iter().map(prepare).collect()))
    }
}

impl<'a> Verified<'a> {
    /// A body from a transport whose boundary is another one: a Unix socket's permissions, or the process.
    #[must_use]
    pub const fn trusted(body: &'a [u8]) -> Self {
        Self { body }
    }

    /// The raw bytes.
    #[must_use]
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }
}

/// Signs a request at `t_ms`: the header's value.
#[must_use]
pub fn sign(secret: &Secret, t_ms: u64, method: &str, path: &str, body: &[u8]) -> String {
    let t = format!("{t_ms}");
    let mac = code(&prepare(secret), &t, method, path, body);
    let mut value = format!("t={t},v1=");
    for byte in mac {
        value.extend([byte >> 4, byte & 0x0f].map(hex_digit));
    }
    value
}

/// Checks the signature of a request that came at `now_ms`.
///
/// `headers` are the raw values of every [`HEADER`] of the request. The time it takes depends on the sizes
/// and on the number of secrets, not on which secret or which part of the HMAC was right.
///
/// # Errors
/// The request is to be refused, without any further work.
pub fn verify<'a, 'h>(
    keyring: &Keyring,
    headers: impl IntoIterator<Item = &'h [u8]>,
    method: &str,
    path: &str,
    body: &'a [u8],
    now_ms: u64,
) -> Result<Verified<'a>, Rejected> {
    let mut headers = headers.into_iter();
    let (Some(header), None) = (headers.next(), headers.next()) else {
        return Err(Rejected::Unauthenticated);
    };
    let signature = Signature::parse(header).ok_or(Rejected::Unauthenticated)?;

    let matches = |mac: &Hmac<Sha256>| code(mac, signature.t, method, path, body).ct_eq(&signature.v1);
    let known = keyring.0.iter().map(matches).fold(Choice::from(0), |any, one| any | one);
    if !bool::from(known) {
        return Err(Rejected::Unauthenticated);
    }
    if signature.t_ms.abs_diff(now_ms) > SKEW_MS_MAX {
        return Err(Rejected::ClockOff { off_ms: difference(signature.t_ms, now_ms) });
    }
    Ok(Verified { body })
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({} secrets)", self.0.len())
    }
}

impl fmt::Debug for Verified<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Verified({} bytes)", self.body.len())
    }
}

/// A well-formed header.
struct Signature<'h> {
    /// As it was written, since these bytes were signed.
    t: &'h str,
    t_ms: u64,
    v1: [u8; 32],
}

impl<'h> Signature<'h> {
    fn parse(header: &'h [u8]) -> Option<Self> {
        let rest = header.strip_prefix(b"t=")?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (t, rest) = rest.split_at(digits);
        let shortest = t == b"0" || t.first().is_some_and(|first| *first != b'0');
        if !shortest || digits > TIME_DIGITS_MAX {
            return None;
        }
        let t = str::from_utf8(t).ok()?;
        Some(Self { t, t_ms: t.parse().ok()?, v1: unhex(rest.strip_prefix(b",v1=")?)? })
    }
}

fn prepare(secret: &Secret) -> Hmac<Sha256> {
    Hmac::new_from_slice(secret.expose().as_bytes()).expect("HMAC takes a key of any length")
}

fn code(mac: &Hmac<Sha256>, t: &str, method: &str, path: &str, body: &[u8]) -> [u8; 32] {
    let mut mac = mac.clone();
    for part in ["v1\n", t, "\n", method, "\n", path, "\n"] {
        mac.update(part.as_bytes());
    }
    mac.update(body);
    mac.finalize().into_bytes().into()
}

fn unhex(digits: &[u8]) -> Option<[u8; 32]> {
    if digits.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = hex_value(pair[0])? << 4 | hex_value(pair[1])?;
    }
    Some(bytes)
}

const fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

fn hex_digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).expect("half a byte is one digit")
}

fn difference(left_ms: u64, right_ms: u64) -> i64 {
    let size = i64::try_from(left_ms.abs_diff(right_ms)).unwrap_or(i64::MAX);
    if left_ms < right_ms { -size } else { size }
}

/// Enough for 300 000 years, and far from any overflow.
const TIME_DIGITS_MAX: usize = 16;

#[cfg(test)]
mod tests;
