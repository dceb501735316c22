//! A request on its way out.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, Method, request::Parts};
use hyper::body::{Body as _, Frame};
use tokio::{io::AsyncWrite, net::TcpStream};

use super::{
    super::body::RequestBody,
    wire::{self, Sent},
};

/// A request as it is sent. Its head is written as soon as it has come: the client's connection reads into the same memory
/// again before the server has answered, and would need other memory for as long as somebody holds a part of the head.
#[derive(Debug)]
pub(in crate::proxy) struct Outgoing {
    head: Vec<u8>,
    /// None where there is none, or once a server takes it.
    body: Option<OutgoingBody>,
    /// The place of its headers, for those of the answer.
    pub(super) spare: HeaderMap,
    pub(super) is_for_head: bool,
}

#[derive(Debug)]
struct OutgoingBody {
    body: RequestBody,
    /// What its length promises; none in chunks.
    left: Option<u64>,
}

/// Most heads are shorter.
const HEAD_BYTES: usize = 512;

impl Outgoing {
    pub(in crate::proxy) fn new(mut parts: Parts, body: RequestBody) -> Self {
        let body = (!body.is_end_stream()).then(|| OutgoingBody { left: body.size_hint().exact(), body });
        let sent = match &body {
            None => Sent::Nothing,
            Some(OutgoingBody { left: Some(bytes), .. }) => Sent::Bytes(*bytes),
            Some(OutgoingBody { left: None, .. }) => Sent::Chunks,
        };
        let mut head = Vec::with_capacity(HEAD_BYTES);
        wire::write_head(&mut head, &parts.method, &parts.uri, &parts.headers, sent);
        parts.headers.clear();
        Self { head, body, spare: parts.headers, is_for_head: parts.method == Method::HEAD }
    }
}

/// What of a request a server has still to take.
#[derive(Debug, Default)]
pub(super) struct Sending {
    out: Vec<u8>,
    /// So much of it went out.
    gone: usize,
    body: Option<OutgoingBody>,
    /// The server takes no more.
    is_cut: bool,
}

/// The request can't be brought to its end.
#[derive(Debug)]
pub(super) struct Unsendable;

/// So much goes out at once: head and body together where both are short.
const GATHERED_BYTES: usize = 16 * 1024;

impl Sending {
    /// Begins with the next request, of which nothing goes out yet.
    pub(super) fn begin(&mut self, request: &mut Outgoing) {
        self.out.clear();
        self.out.extend_from_slice(&request.head);
        (self.gone, self.body) = (0, request.body.take());
    }

    /// Gives back what only a large body needed.
    pub(super) fn shrink(&mut self) {
        self.out.shrink_to(GATHERED_BYTES);
    }

    /// Whether all went out.
    pub(super) fn is_over(&self) -> bool {
        self.out.is_empty() && self.body.is_none() && !self.is_cut
    }

    /// Sends what there is and what the server takes. Ready once there is nothing more to send.
    pub(super) fn poll(
        &mut self,
        stream: &mut TcpStream,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Unsendable>> {
        loop {
            let more = self.poll_gather(cx)?;
            if self.out.is_empty() {
                return more.map(Ok);
            }
            match ready!(Pin::new(&mut *stream).poll_write(cx, &self.out[self.gone..])) {
                Ok(written) if written > 0 => {
                    self.gone += written;
                    if self.gone == self.out.len() {
                        self.out.clear();
                        self.gone = 0;
                    }
                }
                Ok(_) | Err(_) => {
                    // It may have answered before.
                    *self = Self { is_cut: true, ..Self::default() };
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }

    /// Takes of the body what there is, up to a bound. Pending if more of it may come.
    fn poll_gather(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, Unsendable> {
        while let Some(outgoing) = &mut self.body {
            if self.out.len() >= GATHERED_BYTES {
                return Ok(Poll::Pending);
            }
            match Pin::new(&mut outgoing.body).poll_frame(cx) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Some(piece)) => {
                    outgoing.write(piece.map_err(|_| Unsendable)?, &mut self.out)?;
                }
                Poll::Ready(None) => {
                    outgoing.end(&mut self.out)?;
                    self.body = None;
                }
            }
        }
        Ok(Poll::Ready(()))
    }
}

impl OutgoingBody {
    /// Writes a piece of the body. Trailers, which no app asked for, go no further.
    fn write(&mut self, piece: Frame<Bytes>, out: &mut Vec<u8>) -> Result<(), Unsendable> {
        let Ok(data) = piece.into_data() else { return Ok(()) };
        match &mut self.left {
            Some(left) => {
                *left = left.checked_sub(data.len() as u64).ok_or(Unsendable)?;
                out.extend_from_slice(&data);
            }
            None => wire::write_chunk(out, &data),
        }
        Ok(())
    }

    fn end(&self, out: &mut Vec<u8>) -> Result<(), Unsendable> {
        match self.left {
            Some(0) => {}
            Some(_) => return Err(Unsendable),
            None => wire::write_last_chunk(out),
        }
        Ok(())
    }
}
