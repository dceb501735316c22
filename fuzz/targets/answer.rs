//! The answer of an app's server: however it is cut into pieces it is read alike, nothing that is kept grows over its
//! bound, and what is read as chunks is written as chunks again.
#![cfg_attr(fuzzing, no_main)]

use bytes::BytesMut;
use http::HeaderMap;
use libfuzzer_sys::fuzz_target;
use wire::{HeadLimits, Piece, Rest, Unreadable, take_head, write_chunk, write_last_chunk};

// It reads and writes bytes and nothing else: the rest of the proxy need not be built for it.
#[allow(dead_code, reason = "heads of requests are written by the proxy alone")]
#[path = "../../crates/tidegate-ingress/src/proxy/upstream/wire.rs"]
mod wire;

const LIMITS: HeadLimits = HeadLimits { bytes_max: 1024, headers_max: 16 };
/// A chunk's line or trailers; more is never waited for.
const KEPT_BYTES_MAX: usize = 16 * 1024;
const PIECE_BYTES: usize = 7;

#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    trailers: usize,
    is_whole: bool,
    left: Vec<u8>,
}

fuzz_target!(|input: &[u8]| {
    let Some((first, bytes)) = input.split_first() else { return };
    let is_for_head = first & 1 == 1;
    let whole = read(bytes, bytes.len(), is_for_head);
    let in_pieces = read(bytes, PIECE_BYTES, is_for_head);
    // What is too long for one of the bounds is cut off sooner or later in the stream, by how it came.
    if bytes.len() < LIMITS.bytes_max {
        assert_eq!(whole, in_pieces);
    }
    let Ok(Some(answer)) = whole else { return };
    let mut again = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    answer.body.chunks(PIECE_BYTES).for_each(|piece| write_chunk(&mut again, piece));
    write_last_chunk(&mut again);
    let again = read(&again, PIECE_BYTES, false).expect("readable").expect("whole");
    assert!(again.is_whole && again.left.is_empty() && again.body == answer.body);
});

/// Reads an answer that comes in pieces of so many bytes; none if its head is not whole.
fn read(bytes: &[u8], piece: usize, is_for_head: bool) -> Result<Option<Answer>, Unreadable> {
    let (mut buffer, mut spare) = (BytesMut::new(), HeaderMap::new());
    let mut pieces = bytes.chunks(piece.max(1));
    let head = loop {
        if let Some(head) = take_head(&mut buffer, &mut spare, is_for_head, LIMITS)? {
            break head;
        }
        assert!(buffer.len() < LIMITS.bytes_max, "an endless head");
        let Some(piece) = pieces.next() else { return Ok(None) };
        buffer.extend_from_slice(piece);
    };
    assert!(head.headers.len() <= LIMITS.headers_max);
    let (mut rest, mut body, mut trailers) = (head.rest, Vec::new(), 0);
    let is_whole = loop {
        match rest.take(&mut buffer)? {
            Some(Piece::Data(data)) => {
                assert!(!data.is_empty(), "it would be taken for the end");
                body.extend_from_slice(&data);
            }
            Some(Piece::Trailers(map)) => trailers += map.len(),
            Some(Piece::End) => break true,
            None => {
                assert!(buffer.len() < KEPT_BYTES_MAX, "an endless line");
                match pieces.next() {
                    Some(piece) => buffer.extend_from_slice(piece),
                    None => break rest == Rest::UntilClose,
                }
            }
        }
    };
    pieces.for_each(|piece| buffer.extend_from_slice(piece));
    let status = head.status.as_u16();
    Ok(Some(Answer { status, headers: head.headers, body, trailers, is_whole, left: buffer.to_vec() }))
}
