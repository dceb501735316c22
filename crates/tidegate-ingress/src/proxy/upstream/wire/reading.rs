//! An answer read to its end, from pieces: what the tests and the fuzz target hold the reading to.

use bytes::BytesMut;
use http::HeaderMap;

use super::{HeadLimits, Piece, Rest, Unreadable, take_head};

/// What an answer was read as.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// How its body is framed.
    pub(crate) rest: Rest,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: usize,
    pub(crate) is_whole: bool,
    /// What came behind it.
    pub(crate) left: Vec<u8>,
}

/// A chunk's line or trailers: more is never waited for.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// Reads an answer that comes in pieces of so many bytes; none if its head is not whole.
pub(crate) fn read(
    bytes: &[u8],
    piece: usize,
    is_for_head: bool,
    limits: HeadLimits,
) -> Result<Option<Read>, Unreadable> {
    let (mut buffer, mut spare) = (BytesMut::new(), HeaderMap::new());
    let mut pieces = bytes.chunks(piece.max(1));
    let head = loop {
        if let Some(head) = take_head(&mut buffer, &mut spare, is_for_head, limits)? {
            break head;
        }
        assert!(buffer.len() < limits.bytes_max, "an endless head");
        let Some(piece) = pieces.next() else { return Ok(None) };
        buffer.extend_from_slice(piece);
    };
    assert!(head.headers.len() <= limits.headers_max);
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
    let (status, left) = (head.status.as_u16(), buffer.to_vec());
    Ok(Some(Read { status, headers: head.headers, rest: head.rest, body, trailers, is_whole, left }))
}
