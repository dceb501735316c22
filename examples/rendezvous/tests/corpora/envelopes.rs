//! 10 000 arbitrary UDP envelopes through the production decoder.

use rendezvous::{
    capability::{AttemptId, Capability, Role},
    wire::DATAGRAM_BYTES,
};

use crate::support::{KEY, LIMITS, NOW_MS, Random, bind, credentials, service};

const SEED: u64 = 0x0015_2026;
const ENVELOPES: usize = 10_000;

#[test]
fn none_of_them_is_believed() {
    let (mut random, service) = (Random::new(SEED), service(LIMITS));
    let genuine =
        Capability::issue(credentials(&[(1, KEY)]).keys(), AttemptId([7; 16]), Role::Host, NOW_MS + 9_000);
    let mut kinds = [0_usize; 6];
    for number in 0..ENVELOPES {
        let kind = random.below(kinds.len());
        kinds[kind] += 1;
        let valid = bind(&genuine, random.next(), NOW_MS, &["10.0.0.1:1", "192.168.1.1:2"]);
        let envelope = match kind {
            0 => {
                let bytes = random.below(2 * DATAGRAM_BYTES);
                random.bytes(bytes)
            }
            // Empty, one short, one over, and the most that a datagram can have.
            1 => {
                let bytes = *random.of(&[0, 1, DATAGRAM_BYTES - 1, DATAGRAM_BYTES + 1, 1472, 65_507]);
                let mut envelope = valid.to_vec();
                envelope.resize(bytes, 0);
                envelope
            }
            2 => random.bytes(DATAGRAM_BYTES),
            // The right beginning, and then anything.
            3 => {
                let mut envelope = random.bytes(DATAGRAM_BYTES);
                let genuine = random.below(DATAGRAM_BYTES - 32);
                envelope[..genuine].copy_from_slice(&valid[..genuine]);
                envelope
            }
            // A few bytes of a genuine one are changed.
            4 => {
                let mut envelope = valid.to_vec();
                for _ in 0..=random.below(4) {
                    envelope[random.below(DATAGRAM_BYTES)] ^= u8::try_from(1 + random.below(255)).unwrap();
                }
                if envelope == valid { Vec::new() } else { envelope }
            }
            // Genuine in every byte, at the wrong time.
            _ => {
                bind(&genuine, 1, *random.of(&[0, NOW_MS - 30_001, NOW_MS + 30_001, u64::MAX]), &[]).to_vec()
            }
        };
        assert!(
            service.verify(&envelope, NOW_MS).is_none(),
            "envelope {number} of seed {SEED:#x}, kind {kind}"
        );
        assert!(service.verify(&valid, NOW_MS).is_some(), "envelope {number} of seed {SEED:#x} was genuine");
    }
    assert!(kinds.iter().all(|count| *count > ENVELOPES / 10), "{kinds:?}");
}
