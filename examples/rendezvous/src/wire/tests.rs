use proptest::prelude::*;
use tidegate_core::secret::Secret;

use super::*;
use crate::capability::{AttemptId, Role};

const NOW_MS: u64 = 1_800_000_000_000;

fn keys() -> Keyring {
    Keyring::new(vec![(9, Secret::new("wire-0123456789abcdefghijklmnopqrst").unwrap())]).unwrap()
}

fn capability() -> Capability {
    Capability::issue(&keys(), AttemptId([3; 16]), Role::Joiner, NOW_MS + 60_000)
}

fn bind() -> Message {
    Message {
        operation: Operation::Bind,
        claims: *capability().claims(),
        sequence: 1,
        sent_at_ms: NOW_MS,
        endpoints: ["10.0.0.1:1", "192.168.0.9:4000"]
            .map(|text| Endpoint::observed(text.parse().unwrap()))
            .to_vec(),
    }
}

#[test]
fn what_was_signed_is_read() {
    let datagram = bind().sign(capability().secret());
    let verified = verify(&datagram, &keys(), NOW_MS).unwrap();
    assert_eq!(verified.message, bind());
    let introduction = verified.introduction(bind().endpoints, NOW_MS + 5);
    let read = read_introduction(&introduction, &capability()).unwrap();
    assert_eq!((read.sequence, read.sent_at_ms, read.endpoints), (1, NOW_MS + 5, bind().endpoints));
    assert_eq!(verify(&introduction, &keys(), NOW_MS), None, "an introduction sent back binds nothing");
    assert_eq!(read_introduction(&datagram, &capability()), None, "a bind sent back introduces nobody");
}

#[test]
fn time() {
    let datagram = bind().sign(capability().secret());
    let cases = [
        (NOW_MS - SKEW_MAX_MS, true),
        (NOW_MS - SKEW_MAX_MS - 1, false),
        (NOW_MS + SKEW_MAX_MS, true),
        (NOW_MS + SKEW_MAX_MS + 1, false),
    ];
    for (now_ms, taken) in cases {
        assert_eq!(verify(&datagram, &keys(), now_ms).is_some(), taken, "{now_ms}");
    }
    let expired = Capability::issue(&keys(), AttemptId([3; 16]), Role::Joiner, NOW_MS);
    let late = Message { claims: *expired.claims(), ..bind() }.sign(expired.secret());
    assert_eq!(verify(&late, &keys(), NOW_MS), None, "at its end it is over");
    assert!(verify(&late, &keys(), NOW_MS - 1).is_some());
}

/// The same bytes with something changed, and signed by who holds the capability: only what the layout says.
#[test]
fn a_holder_is_held_to_the_layout_too() {
    type Change = fn(&mut [u8; DATAGRAM_BYTES]);
    let cases: [(&str, Change); 8] = [
        ("five endpoints", |bytes| bytes[COUNT] = 5),
        ("255 endpoints", |bytes| bytes[COUNT] = 255),
        ("an endpoint after the count", |bytes| bytes[COUNT] = 1),
        ("an endpoint of no family", |bytes| bytes[ENDPOINTS] = 7),
        ("padding", |bytes| bytes[SIGNATURE - 1] = 1),
        ("another version", |bytes| bytes[3] = b'2'),
        ("no operation", |bytes| bytes[4] = 2),
        ("no role", |bytes| bytes[CLAIMS + 18] = 2),
    ];
    for (what, change) in cases {
        let mut datagram = bind().sign(capability().secret());
        change(&mut datagram);
        let signature = mac(&capability().secret()[..], &[&datagram[..SIGNATURE]]);
        datagram[SIGNATURE..].copy_from_slice(&signature[..]);
        assert_eq!(verify(&datagram, &keys(), NOW_MS), None, "{what}");
    }
}

#[test]
fn another_role_or_attempt_needs_another_capability() {
    let capability = capability();
    let others = [
        Claims { role: Role::Host, ..*capability.claims() },
        Claims { attempt: AttemptId([4; 16]), ..*capability.claims() },
        Claims { expires_at_ms: u64::MAX, ..*capability.claims() },
        Claims { key_id: 8, ..*capability.claims() },
    ];
    for claims in others {
        let datagram = Message { claims, ..bind() }.sign(capability.secret());
        assert_eq!(verify(&datagram, &keys(), NOW_MS), None, "{claims:?}");
    }
}

proptest! {
    #[test]
    fn one_changed_bit_anywhere_is_silence(place in 0..DATAGRAM_BYTES, bit in 0..8_u8) {
        let mut datagram = bind().sign(capability().secret());
        datagram[place] ^= 1_u8 << bit;
        prop_assert_eq!(verify(&datagram, &keys(), NOW_MS), None);
    }

    #[test]
    fn every_other_size_is_silence(bytes in 0..600_usize) {
        let mut datagram = bind().sign(capability().secret()).to_vec();
        datagram.resize(bytes, 0);
        prop_assert_eq!(verify(&datagram, &keys(), NOW_MS).is_some(), bytes == DATAGRAM_BYTES);
    }
}
