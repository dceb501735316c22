//! The stored bytes.

use super::*;
use crate::codec::DecodeError;

/// Rows as they have been written by every version so far. A change here needs a new first byte.
#[test]
fn rows_of_every_version_are_read() {
    let table: [(State, &[u8]); 4] = [
        (
            State::Sliding(sliding::Sliding { bucket: 29_407_680, previous: 300, current: 5 }),
            &[0x11, 0xc0, 0xf3, 0x82, 0x0e, 0xac, 0x02, 0x05],
        ),
        (State::Fixed(fixed::Fixed { bucket: 300, count: 7 }), &[0x21, 0xac, 0x02, 0x07]),
        (
            State::Bucket(bucket::Arrival { whole_ms: 1_764_460_800_000, part: 2, limit: 3 }),
            &[0x31, 0x80, 0xd0, 0xbc, 0x90, 0xad, 0x33, 0x02, 0x03],
        ),
        (State::Fixed(fixed::Fixed { bucket: 0, count: 0 }), &[0x21, 0, 0]),
    ];
    for (state, bytes) in table {
        let mut out = Vec::new();
        state.encode(&mut out);
        assert_eq!(out, bytes, "{state:?}: {out:02x?}");
        assert_eq!(State::decode(bytes), Ok(state));
    }
}

#[test]
fn a_minutes_row_is_small() {
    let now_ms = 1_764_460_800_000;
    let mut meter = Meter::new(&[rule(Algorithm::Sliding, 100, 60_000)]);
    meter.admitted(100, now_ms);
    meter.admitted(50, now_ms + 90_000);
    let mut out = Vec::new();
    meter.rows[0].1.expect("it was charged").state.encode(&mut out);
    assert!(out.len() <= 12, "{} bytes", out.len());
}

#[test]
fn other_bytes_are_refused() {
    let table: [(&[u8], DecodeError); 8] = [
        (&[], DecodeError::Truncated),
        (&[0x12, 0, 0, 0], DecodeError::Version { first_byte: 0x12 }),
        (&[0x41, 0, 0], DecodeError::Version { first_byte: 0x41 }),
        (&[0x11, 1, 2], DecodeError::Truncated),
        (&[0x21, 1, 2, 3], DecodeError::Trailing { bytes: 1 }),
        (&[0x31, 1, 0, 0], DecodeError::OutOfRange),
        (&[0x31, 1, 3, 3], DecodeError::OutOfRange),
        (&[0x21, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10], DecodeError::OutOfRange),
    ];
    for (bytes, error) in table {
        assert_eq!(State::decode(bytes), Err(error), "{bytes:02x?}");
    }
}

proptest! {
    #[test]
    fn what_is_read_is_written_alike(
        first in prop::sample::select([0x11_u8, 0x21, 0x31].as_slice()), rest in prop::collection::vec(any::<u8>(), 0..14),
    ) {
        let mut bytes = alloc::vec![first];
        bytes.extend(rest);
        if let Ok(state) = State::decode(&bytes) {
            let mut again = Vec::new();
            state.encode(&mut again);
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn a_charged_row_is_read_back(
        algorithm in any_algorithm(), limit in 1..=crate::INTEGER_MAX, period_ms in 1..=LIFE_MS_MAX, now_ms in 0..1_u64 << 43, share in 1..=100_u64,
    ) {
        let mut meter = Meter::new(&[rule(algorithm, limit, period_ms)]);
        let cost = (limit / 100 * share).max(1);
        prop_assert!(meter.hit(cost, now_ms).allowed);
        let state = meter.rows[0].1.expect("it was charged").state;
        let mut bytes = SmallVec::<[u8; 40]>::new();
        state.encode(&mut bytes);
        prop_assert!(!bytes.spilled());
        prop_assert_eq!(State::decode(&bytes), Ok(state));
    }
}
