//! The files of the embedded store: whatever they hold, opening, verifying and repairing end, and what has been
//! opened or repaired opens again with the same rows.
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use tidegate_store_embedded::testing::fuzz_recover;

/// More would only repeat what happens between two.
const SEGMENTS_MAX: usize = 6;

fuzz_target!(|data: &[u8]| fuzz_recover(&segments(data)));

/// Each with its length before it, in two bytes.
fn segments(mut data: &[u8]) -> Vec<&[u8]> {
    let mut segments = Vec::new();
    while let ([low, high, rest @ ..], true) = (data, segments.len() < SEGMENTS_MAX) {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (segment, following) = rest.split_at(length);
        segments.push(segment);
        data = following;
    }
    segments
}
