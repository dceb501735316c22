//! The answer of an app's server: however it is cut into pieces it is read alike, nothing that is kept grows over its
//! bound, and what is read as chunks is written as chunks again.
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use reading::read;
use wire::{HeadLimits, Piece, Rest, Unreadable, take_head, write_chunk, write_last_chunk};

// It reads and writes bytes and nothing else: the rest of the proxy need not be built for it.
#[allow(dead_code, reason = "heads of requests are written by the proxy alone")]
#[path = "../../crates/tidegate-ingress/src/proxy/upstream/wire.rs"]
mod wire;

#[allow(dead_code, reason = "not every part of what was read is looked at here")]
#[path = "../../crates/tidegate-ingress/src/proxy/upstream/wire/reading.rs"]
mod reading;

const LIMITS: HeadLimits = HeadLimits { bytes_max: 1024, headers_max: 16 };
const PIECE_BYTES: usize = 7;

fuzz_target!(|input: &[u8]| {
    let Some((first, bytes)) = input.split_first() else { return };
    let is_for_head = first & 1 == 1;
    let whole = read(bytes, bytes.len(), is_for_head, LIMITS);
    let in_pieces = read(bytes, PIECE_BYTES, is_for_head, LIMITS);
    // What is too long for one of the bounds is cut off sooner or later in the stream, by how it came.
    if bytes.len() < LIMITS.bytes_max {
        assert_eq!(whole, in_pieces);
    }
    let Ok(Some(answer)) = whole else { return };
    let mut again = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    answer.body.chunks(PIECE_BYTES).for_each(|piece| write_chunk(&mut again, piece));
    write_last_chunk(&mut again);
    let again = read(&again, PIECE_BYTES, false, LIMITS).expect("readable").expect("whole");
    assert!(again.is_whole && again.left.is_empty() && again.body == answer.body);
});
