use alloc::{format, string::String, vec::Vec};

use proptest::prelude::*;

use super::*;

fn record(value: &str, expires_at_ms: u64) -> Option<Existing<'_>> {
    Some(Existing { value: value.as_bytes(), expires_at_ms })
}

#[test]
fn sets() {
    use SetMode::{Always, Nx, Xx};
    let written = |expires_at_ms| SetOutcome::Written { expires_at_ms };
    let refused = SetOutcome::Refused;
    let live = record("v", 60);
    let ended = record("v", 40);
    // At 40: what there is, the mode, the TTL, whether to keep it.
    let table = [
        (None, Always, Some(60), false, written(100)),
        (live, Always, Some(60), false, written(100)),
        (live, Always, Some(60), true, written(60)),
        (None, Always, Some(60), true, written(100)),
        (ended, Always, Some(60), true, written(100)),
        (None, Nx, Some(60), false, written(100)),
        (ended, Nx, Some(60), false, written(100)),
        (live, Nx, Some(60), false, refused),
        (live, Xx, Some(60), false, written(100)),
        (live, Xx, None, true, written(60)),
        (None, Xx, None, true, refused),
        (ended, Xx, Some(60), false, refused),
        // The protocol refuses these before: every record ends.
        (None, Always, None, false, refused),
        (live, Always, None, false, refused),
        (None, Always, None, true, refused),
    ];
    for (existing, mode, ttl_ms, keep_ttl, expected) in table {
        let outcome = set(existing, Set { mode, ttl_ms, keep_ttl }, 40);
        assert_eq!(outcome, expected, "{existing:?} {mode:?} {ttl_ms:?} keep {keep_ttl}");
    }
}

#[test]
fn increments() {
    let max = INTEGER_MAX.cast_signed();
    let done = |value, expires_at_ms| Ok(Incremented { value, expires_at_ms });
    let overflow = Err(IncrementError::Overflow);
    let table = [
        (None, 1, done(1, 100)),
        (None, -5, done(-5, 100)),
        (record("0", 60), 1, done(1, 60)),
        (record("-1", 60), 1, done(0, 60)),
        (record("41", 60), 1, done(42, 60)),
        (record("41", 40), 1, done(1, 100)),
        (record("9007199254740990", 60), 1, done(max, 60)),
        (record("9007199254740991", 60), 0, done(max, 60)),
        (record("9007199254740991", 60), 1, overflow),
        (record("-9007199254740991", 60), -1, overflow),
        (record("9007199254740992", 60), 0, overflow),
        (record("9223372036854775806", 60), 1, overflow),
        (record("99999999999999999999999999", 60), -1, overflow),
        (record("1", 60), i64::MAX, overflow),
        (record("-1", 60), i64::MIN, overflow),
        (None, i64::MIN, overflow),
    ];
    for (existing, by, expected) in table {
        assert_eq!(increment(existing, by, 60, 40), expected, "{existing:?} by {by}");
    }
}

#[test]
fn what_is_no_counter() {
    for text in
        ["", "-", "+1", " 1", "1 ", "1\n", "01", "-0", "-01", "00", "1.0", "1e3", "0x10", "abc", "١", "--1"]
    {
        assert_eq!(read_integer(text.as_bytes()), Err(IncrementError::NotAnInteger), "{text:?}");
    }
    assert_eq!(read_integer(&[0xff, 0xfe]), Err(IncrementError::NotAnInteger));
}

#[test]
fn steady_increments_do_not_push_the_end_away() {
    let mut stored: Option<(String, u64)> = None;
    let values: Vec<i64> = [0, 30, 59, 60]
        .into_iter()
        .map(|now_s| {
            let existing = stored.as_ref().and_then(|(text, expires_at_ms)| record(text, *expires_at_ms));
            let done = increment(existing, 1, 60_000, now_s * 1000).unwrap();
            stored = Some((write_integer(done.value), done.expires_at_ms));
            done.value
        })
        .collect();
    assert_eq!(values, [1, 2, 3, 1]);
}

#[test]
fn lives() {
    assert_eq!(expire(record("v", 60), 1000, 59), Some(1059));
    assert_eq!(expire(record("v", 60), 1000, 60), None);
    assert_eq!(expire(None, 1000, 0), None);
    assert_eq!(ttl_left(record("v", 60), 59), Some(1));
    assert_eq!(ttl_left(record("v", 60), 60), None);
    assert_eq!(ttl_left(None, 0), None);
}

/// Rows as they have been written by every version so far. A change here needs a new first byte.
#[test]
fn rows_of_every_version_are_read() {
    for (value, bytes) in [(&b"0"[..], &b"\x610"[..]), (b"", b"\x61"), (b"\xff\x00", b"\x61\xff\x00")] {
        let mut out = Vec::new();
        encode(value, &mut out);
        assert_eq!(out, bytes);
        assert_eq!(decode(bytes), Ok(value));
    }
    assert_eq!(decode(&[]), Err(DecodeError::Truncated));
    assert_eq!(decode(b"\x62v"), Err(DecodeError::Version { first_byte: 0x62 }));
}

proptest! {
    #[test]
    fn a_counter_is_read_as_it_is_written(value in -(1_i64 << 53) + 1..1_i64 << 53) {
        prop_assert_eq!(read_integer(write_integer(value).as_bytes()), Ok(value));
    }

    #[test]
    fn only_the_shortest_form_is_a_counter(text in "[-+0-9 ]{0,6}") {
        let read = read_integer(text.as_bytes());
        prop_assert_eq!(read.is_ok(), text.parse::<i64>().is_ok_and(|value| format!("{value}") == text));
    }
}
