//! Datagrams of the rendezvous: believed only if signed, and then of one spelling.
#![cfg_attr(fuzzing, no_main)]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rendezvous::{
    capability::{AttemptId, Capability, Role},
    keys::{Keyring, mac},
    wire::{DATAGRAM_BYTES, operation_of, read_introduction, verify},
};
use tidegate_core::secret::Secret;

const NOW_MS: u64 = 1_800_000_000_000;
/// Where the signature stands.
const SIGNED_BYTES: usize = DATAGRAM_BYTES - 32;

struct Known {
    keys: Keyring,
    capability: Capability,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let secret = Secret::new("key-of-service-0123456789abcdefgh").expect("long enough");
    let keys = Keyring::new(vec![(1, secret)]).expect("one key");
    let capability = Capability::issue(&keys, AttemptId([7; 16]), Role::Joiner, NOW_MS + 60_000);
    Known { keys, capability }
});

// The first byte says what follows: a datagram as it is, or one that a capability's holder has signed.
fuzz_target!(|data: &[u8]| {
    let Known { keys, capability } = &*KNOWN;
    let Some((kind, rest)) = data.split_first() else { return };
    if kind % 2 == 0 {
        assert!(verify(rest, keys, NOW_MS).is_none(), "believed without a signature");
        assert!(read_introduction(rest, capability).is_none(), "believed without a signature");
        return;
    }
    let mut datagram = [0; DATAGRAM_BYTES];
    let signed = rest.len().min(SIGNED_BYTES);
    datagram[..signed].copy_from_slice(&rest[..signed]);
    // Claims that are the holder's own, or it could not sign them.
    datagram[..4].copy_from_slice(b"TGR1");
    datagram[5..32].copy_from_slice(&capability.claims().to_bytes());
    let signature = mac(&capability.secret()[..], &[&datagram[..SIGNED_BYTES]]);
    datagram[SIGNED_BYTES..].copy_from_slice(&signature[..]);
    let verified = verify(&datagram, keys, NOW_MS);
    let introduction = read_introduction(&datagram, capability);
    assert!(verified.is_none() || introduction.is_none(), "both a bind and an introduction");
    let message = verified.map(|verified| verified.message).or(introduction);
    if let Some(message) = message {
        assert_eq!(operation_of(&datagram), Some(message.operation));
        assert_eq!(message.sign(capability.secret()), datagram, "another spelling of the same message");
    }
});
