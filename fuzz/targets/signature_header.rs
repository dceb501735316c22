//! The signature header: accepted exactly when it is, byte for byte, what the secret's holder would send.
#![cfg_attr(fuzzing, no_main)]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tidegate_core::secret::Secret;
use tidegate_protocol::{
    Keyring, Rejected,
    bounds::SKEW_MS_MAX,
    signature::{sign, verify},
};

const NOW_MS: u64 = 1_764_460_800_000;
const SECRET: &str = "secret-for-test-vectors-0123456789abcdef";
const METHOD: &str = "POST";
const PATH: &str = "/v1/rpc";

struct Keys {
    secret: Secret,
    keyring: Keyring,
}

static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let secret = |text: &str| Secret::new(text).expect("long enough");
    let keyring = Keyring::new(&[secret("another-secret-in-rotation-0123456789abcd"), secret(SECRET)]);
    Keys { secret: secret(SECRET), keyring: keyring.expect("two secrets") }
});

// The first byte says what follows: headers as they are, or edits to a right one. Then the body.
fuzz_target!(|data: &[u8]| {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind % 3 {
        0 => {
            let (header, body) = split(rest);
            check(&[header], body);
        }
        1 => {
            let (headers, body) = split(rest);
            check(&headers.split(|byte| *byte == b';').collect::<Vec<_>>(), body);
        }
        _ => {
            let (edits, body) = rest.split_at(rest.len().min(4));
            check(&[edited(edits, body).as_slice()], body);
        }
    }
});

fn split(data: &[u8]) -> (&[u8], &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    (&data[..end], data.get(end + 1..).unwrap_or_default())
}

/// A right header, its instant moved by the first two bytes, and one of its bytes replaced by the other two.
fn edited(edits: &[u8], body: &[u8]) -> Vec<u8> {
    let [early, late, place, byte] = std::array::from_fn(|n| edits.get(n).copied().unwrap_or(0));
    let t_ms = NOW_MS + u64::from(late) * 1000 - u64::from(early) * 1000;
    let mut header = sign(&KEYS.secret, t_ms, METHOD, PATH, body).into_bytes();
    let place = usize::from(place);
    if place < header.len() {
        header[place] ^= byte;
    }
    header
}

fn check(headers: &[&[u8]], body: &[u8]) {
    let verdict = verify(&KEYS.keyring, headers.iter().copied(), METHOD, PATH, body, NOW_MS);
    let right = match headers {
        [header] => signed_at(header)
            .filter(|t_ms| sign(&KEYS.secret, *t_ms, METHOD, PATH, body).as_bytes() == *header),
        _ => None,
    };
    match (right, verdict) {
        (None, verdict) => assert_eq!(verdict.err(), Some(Rejected::Unauthenticated)),
        (Some(t_ms), Ok(verified)) => {
            assert!(t_ms.abs_diff(NOW_MS) <= SKEW_MS_MAX);
            assert_eq!(verified.body(), body);
        }
        (Some(t_ms), Err(rejected)) => {
            assert!(t_ms.abs_diff(NOW_MS) > SKEW_MS_MAX);
            assert!(matches!(rejected, Rejected::ClockOff { .. }));
        }
    }
}

/// The instant that a header claims, read as loosely as can be.
fn signed_at(header: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(header).ok()?;
    text.strip_prefix("t=")?.split(',').next()?.parse().ok()
}
