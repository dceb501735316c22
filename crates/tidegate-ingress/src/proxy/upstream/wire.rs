//! HTTP/1.1 as it is spoken with an app's server: a request's head, an answer's head, and how a body is framed.
//!
//! What two programs could read in two ways is not read at all: an answer with two lengths, or with a length beside
//! chunks, is none.

use std::{io::Write as _, mem::MaybeUninit};

use bytes::{Buf as _, Bytes, BytesMut};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version,
    header::{CONTENT_LENGTH, TRANSFER_ENCODING},
};
use httparse::Status;
use tidegate_core::decimal;

/// The server does not speak HTTP/1.1 as everybody reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// What is sent behind a request's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    Nothing,
    Bytes(u64),
    Chunks,
}

/// Writes a request's head. How its body is framed is ours to say: the client's own words on it are passed over.
pub(crate) fn write_head(out: &mut Vec<u8>, method: &Method, uri: &Uri, headers: &HeaderMap, sent: Sent) {
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    // A target may begin with its query.
    if !target.starts_with(['/', '*']) {
        out.push(b'/');
    }
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let mut had_length = false;
    for (name, value) in headers {
        if *name == CONTENT_LENGTH {
            had_length = true;
        } else if *name != TRANSFER_ENCODING {
            out.extend_from_slice(name.as_str().as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
    match sent {
        Sent::Nothing if had_length => out.extend_from_slice(b"content-length: 0\r\n"),
        Sent::Nothing => {}
        // To a vector nothing fails.
        Sent::Bytes(bytes) => drop(write!(out, "content-length: {bytes}\r\n")),
        Sent::Chunks => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes a piece of a body as a chunk. An empty piece is none: it would end the body.
pub(crate) fn write_chunk(out: &mut Vec<u8>, piece: &[u8]) {
    if !piece.is_empty() {
        drop(write!(out, "{:x}\r\n", piece.len()));
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
}

/// Ends a body in chunks.
pub(crate) fn write_last_chunk(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}

/// How large a head may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadLimits {
    pub(crate) bytes_max: usize,
    pub(crate) headers_max: usize,
}

/// The head of an answer.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) rest: Rest,
}

/// As many as a head may usually have: where more are allowed, the room for them is allocated.
const USUAL_HEADERS: usize = 128;

/// Takes the head of an answer from what has come; none if it has not all come. Its headers lie in `spare`, which is
/// empty. A request for a head alone (`HEAD`) is answered by one.
pub(crate) fn take_head(
    read: &mut BytesMut,
    spare: &mut HeaderMap,
    is_for_head: bool,
    limits: HeadLimits,
) -> Result<Option<Head>, Unreadable> {
    let mut usual = [const { MaybeUninit::uninit() }; USUAL_HEADERS];
    let mut many = Vec::new();
    let room = if limits.headers_max <= USUAL_HEADERS {
        &mut usual[..limits.headers_max]
    } else {
        many.resize(limits.headers_max, MaybeUninit::uninit());
        &mut many[..]
    };
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let length = match config.parse_response_with_uninit_headers(&mut parsed, read, room) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) if read.len() < limits.bytes_max => return Ok(None),
        Ok(Status::Partial) | Err(_) => return Err(Unreadable),
    };
    let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(Unreadable)?;
    let version = if parsed.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    let has_body = !(is_for_head || status.is_informational() || matches!(status.as_u16(), 204 | 304));
    let mut headers = std::mem::take(spare);
    let rest = fill(&mut headers, parsed.headers, version)?;
    read.advance(length);
    Ok(Some(Head { status, version, headers, rest: if has_body { rest } else { Rest::NOTHING } }))
}

/// Fills in the headers of a head, and tells how the body behind it is framed.
fn fill(
    headers: &mut HeaderMap,
    lines: &[httparse::Header<'_>],
    version: Version,
) -> Result<Rest, Unreadable> {
    let mut rest = None;
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| Unreadable)?;
        let framed = if name == CONTENT_LENGTH {
            let digits = std::str::from_utf8(line.value).map_err(|_| Unreadable)?;
            Some(Rest::Bytes(decimal::parse(digits).ok_or(Unreadable)?))
        } else if name == TRANSFER_ENCODING {
            // Compressed in transfer is what nobody asks for, and what an app of HTTP/1.0 says of it means nothing.
            let is_known = version == Version::HTTP_11 && line.value.eq_ignore_ascii_case(b"chunked");
            Some(is_known.then_some(Rest::ChunkSize).ok_or(Unreadable)?)
        } else {
            None
        };
        if framed.is_some() && std::mem::replace(&mut rest, framed).is_some() {
            return Err(Unreadable);
        }
        let value = HeaderValue::from_bytes(line.value).map_err(|_| Unreadable)?;
        headers.try_append(name, value).map_err(|_| Unreadable)?;
    }
    Ok(rest.unwrap_or(Rest::UntilClose))
}

/// What is still to come of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// So many bytes of its body.
    Bytes(u64),
    /// The line before a chunk.
    ChunkSize,
    /// So many bytes of a chunk, and the next ones.
    Chunk(u64),
    /// The end of a chunk's last line.
    ChunkEnd,
    /// What stands behind the last chunk.
    Trailers,
    /// All that the server sends before it closes.
    UntilClose,
}

/// A piece of an answer's body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
    End,
}

/// Of the line before a chunk, with what may be added to its size and means nothing.
const CHUNK_LINE_BYTES_MAX: usize = 4096;
/// Of the trailers behind a body.
const TRAILERS_BYTES_MAX: usize = 16 * 1024;
const TRAILERS_MAX: usize = 64;

impl Rest {
    pub(crate) const NOTHING: Self = Self::Bytes(0);

    /// Takes the next piece of the body from what has come; none if more has to come first.
    pub(crate) fn take(&mut self, read: &mut BytesMut) -> Result<Option<Piece>, Unreadable> {
        loop {
            match self {
                Self::Bytes(0) => return Ok(Some(Piece::End)),
                Self::Bytes(left) => {
                    let piece = take_up_to(read, *left);
                    *left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
                    return Ok(piece.map(Piece::Data));
                }
                Self::ChunkSize => {
                    // The parser takes a line without digits for the last chunk's.
                    if read.first().is_some_and(|first| !first.is_ascii_hexdigit()) {
                        return Err(Unreadable);
                    }
                    match httparse::parse_chunk_size(read) {
                        Ok(Status::Complete((length, size))) => {
                            read.advance(length);
                            *self = if size > 0 { Self::Chunk(size) } else { Self::Trailers };
                        }
                        Ok(Status::Partial) if read.len() < CHUNK_LINE_BYTES_MAX => return Ok(None),
                        Ok(Status::Partial) | Err(_) => return Err(Unreadable),
                    }
                }
                Self::Chunk(left) => {
                    let Some(piece) = take_up_to(read, *left) else { return Ok(None) };
                    *left -= piece.len() as u64;
                    if *left == 0 {
                        *self = Self::ChunkEnd;
                    }
                    return Ok(Some(Piece::Data(piece)));
                }
                Self::ChunkEnd => match &read[..read.len().min(2)] {
                    b"\r\n" => {
                        read.advance(2);
                        *self = Self::ChunkSize;
                    }
                    b"" | b"\r" => return Ok(None),
                    _ => return Err(Unreadable),
                },
                Self::Trailers => {
                    let Some(trailers) = take_trailers(read)? else { return Ok(None) };
                    *self = Self::NOTHING;
                    if !trailers.is_empty() {
                        return Ok(Some(Piece::Trailers(trailers)));
                    }
                }
                Self::UntilClose => return Ok(take_up_to(read, u64::MAX).map(Piece::Data)),
            }
        }
    }
}

fn take_up_to(read: &mut BytesMut, left: u64) -> Option<Bytes> {
    let length = usize::try_from(left).unwrap_or(usize::MAX).min(read.len());
    (length > 0).then(|| read.split_to(length).freeze())
}

fn take_trailers(read: &mut BytesMut) -> Result<Option<HeaderMap>, Unreadable> {
    let mut room = [httparse::EMPTY_HEADER; TRAILERS_MAX];
    let (length, lines) = match httparse::parse_headers(read, &mut room) {
        Ok(Status::Complete(parsed)) => parsed,
        Ok(Status::Partial) if read.len() < TRAILERS_BYTES_MAX => return Ok(None),
        Ok(Status::Partial) | Err(_) => return Err(Unreadable),
    };
    let mut trailers = HeaderMap::new();
    // What frames a body is no trailer, and here it would be read by somebody.
    let framed = fill(&mut trailers, lines, Version::HTTP_11)?;
    read.advance(length);
    (framed == Rest::UntilClose).then_some(Some(trailers)).ok_or(Unreadable)
}

// Named by its path, so that it is found from the fuzz target too.
#[cfg(test)]
#[path = "wire/tests.rs"]
mod tests;
