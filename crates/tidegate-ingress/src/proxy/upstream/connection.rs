//! One connection to a server, driven by whoever awaits its answer: no task of its own has to be woken.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use hyper::body::{Body, Frame, SizeHint};
use tokio::{net::TcpStream, time::Instant};
use tokio_util::io::poll_read_buf;

use super::{
    super::headers,
    Failure, Limits, Upstream,
    patience::Patience,
    sending::{Outgoing, Sending},
    wire::{self, Head, HeadLimits, Piece, Rest, Unreadable},
};

/// A connection to a server.
#[derive(Debug)]
pub(in crate::proxy) struct Connection {
    stream: TcpStream,
    /// What has come and nobody has taken yet.
    read: BytesMut,
    /// How much more may come at once.
    read_bytes: usize,
    sending: Sending,
    limits: HeadLimits,
    /// It was taken or put back then.
    used_at: Instant,
    was_kept: bool,
    patience: Patience,
}

/// A server's stream once it speaks another protocol, and what of it was read already.
#[derive(Debug)]
pub(in crate::proxy) struct Tunnelled {
    pub(in crate::proxy) stream: TcpStream,
    pub(in crate::proxy) read: Bytes,
}

/// Most answers are smaller.
const READ_BYTES: usize = 8 * 1024;
/// Where a read was filled to its end, more is taken at once.
const READ_BYTES_MAX: usize = 64 * 1024;
/// Heads of so much are always taken.
const HEAD_BYTES_MIN: usize = 8 * 1024;

impl Connection {
    pub(super) fn new(stream: TcpStream, limits: &Limits) -> Self {
        let now = Instant::now();
        Self {
            stream,
            read: BytesMut::new(),
            read_bytes: READ_BYTES,
            sending: Sending::default(),
            limits: HeadLimits {
                bytes_max: limits.head_bytes_max.max(HEAD_BYTES_MIN),
                headers_max: limits.headers_max,
            },
            used_at: now,
            was_kept: false,
            patience: Patience::new(now),
        }
    }

    pub(super) const fn used_at(&self) -> Instant {
        self.used_at
    }

    /// Takes up a kept one.
    pub(super) const fn wake(&mut self, now: Instant) {
        self.used_at = now;
    }

    /// Whether it served a request before.
    pub(in crate::proxy) const fn was_kept(&self) -> bool {
        self.was_kept
    }

    /// Sends a request and awaits the head of its answer, for so long. It may be sent again where nothing of it was.
    pub(in crate::proxy) async fn send(
        &mut self,
        request: &mut Outgoing,
        patience: Duration,
    ) -> Result<Head, Failure> {
        self.patience.begin(self.used_at, patience);
        let mut has_begun = false;
        poll_fn(|cx| {
            if !std::mem::replace(&mut has_begun, true) {
                // Its server has closed it meanwhile, or speaks unasked.
                if self.was_kept && self.poll_read(cx).is_ready() {
                    return Poll::Ready(Err(Failure::Unsent));
                }
                self.sending.begin(request);
            }
            match self.poll_answer(request, cx) {
                Poll::Ready(answer) => Poll::Ready(answer),
                Poll::Pending => self.patience.poll_end(cx).map(|()| Err(Failure::Late)),
            }
        })
        .await
    }

    /// The stream of a server that has changed the protocol.
    pub(in crate::proxy) fn into_tunnel(self) -> Tunnelled {
        Tunnelled { stream: self.stream, read: self.read.freeze() }
    }

    /// Brings the request further, then looks for the head of its answer: a server may answer before it has taken all.
    fn poll_answer(&mut self, request: &mut Outgoing, cx: &mut Context<'_>) -> Poll<Result<Head, Failure>> {
        self.poll_send(cx)?;
        loop {
            if !self.read.is_empty() {
                match wire::take_head(&mut self.read, &mut request.spare, request.is_for_head, self.limits) {
                    Ok(Some(head)) if is_preliminary(&head) => continue,
                    Ok(Some(head)) => return Poll::Ready(Ok(head)),
                    Ok(None) => {}
                    Err(Unreadable) => return Poll::Ready(Err(Failure::Broken)),
                }
            }
            if !matches!(ready!(self.poll_read(cx)), Ok(1..)) {
                return Poll::Ready(Err(Failure::Broken));
            }
        }
    }

    /// Sends what the server takes of the request. That it takes no more is no failure before it has not answered either.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        match self.sending.poll(&mut self.stream, cx) {
            Poll::Ready(Err(_)) => Err(Failure::Broken),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    /// Reads what has come; nothing at the end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // What is empty begins at its beginning again, in memory that was used just now.
        if self.read.is_empty() || self.read.capacity() - self.read.len() < self.read_bytes / 2 {
            self.read.reserve(self.read_bytes);
        }
        let room = self.read.capacity() - self.read.len();
        let read = ready!(poll_read_buf(Pin::new(&mut self.stream), cx, &mut self.read))?;
        if read == room {
            self.read_bytes = READ_BYTES_MAX;
        }
        Poll::Ready(Ok(read))
    }

    /// Whether it may be used again: all of the request went out, and nothing came behind the answer.
    fn is_over(&self) -> bool {
        self.sending.is_over() && self.read.is_empty()
    }

    /// Makes it one that is kept.
    fn rest(&mut self) {
        self.sending.shrink();
        if self.read_bytes > READ_BYTES {
            (self.read, self.read_bytes) = (BytesMut::new(), READ_BYTES);
        }
        (self.used_at, self.was_kept) = (Instant::now(), true);
    }
}

/// An answer before the answer, which is for whoever sent `Expect`. That a server changes the protocol is an answer.
fn is_preliminary(head: &Head) -> bool {
    head.status.is_informational() && head.status != StatusCode::SWITCHING_PROTOCOLS
}

/// The body of a server's answer. At its end the connection is kept for the next request.
#[derive(Debug)]
pub(in crate::proxy) struct UpstreamBody {
    rest: Rest,
    /// None once the server has ended the body by closing it.
    connection: Option<Box<Connection>>,
    home: Home,
    /// How long the server may send nothing.
    patience: Duration,
    /// Something has come since the silence was last measured.
    heard: bool,
}

/// Where a connection is kept between two requests.
#[derive(Debug)]
pub(in crate::proxy) struct Home {
    pub(in crate::proxy) upstream: Arc<Upstream>,
    pub(in crate::proxy) worker: usize,
    pub(in crate::proxy) idle_max: usize,
    /// The server takes another request behind the end of its answer.
    pub(in crate::proxy) keeps_alive: bool,
}

impl UpstreamBody {
    pub(in crate::proxy) const fn new(
        rest: Rest,
        connection: Box<Connection>,
        home: Home,
        patience: Duration,
    ) -> Self {
        Self { rest, connection: Some(connection), home, patience, heard: true }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
        if connection.poll_send(cx).is_err() {
            return Poll::Ready(Some(Err(Cut)));
        }
        loop {
            match self.rest.take(&mut connection.read) {
                Ok(Some(Piece::Data(data))) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Ok(Some(Piece::Trailers(mut trailers))) => {
                    headers::for_client(&mut trailers);
                    return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
                }
                Ok(Some(Piece::End)) => return Poll::Ready(None),
                Ok(None) => {}
                Err(Unreadable) => return Poll::Ready(Some(Err(Cut))),
            }
            match ready!(connection.poll_read(cx)) {
                Ok(0) if self.rest == Rest::UntilClose => {
                    (self.rest, self.connection) = (Rest::NOTHING, None);
                    return Poll::Ready(None);
                }
                Ok(1..) => {}
                Ok(0) | Err(_) => return Poll::Ready(Some(Err(Cut))),
            }
        }
    }

    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let Some(connection) = &mut self.connection else { return Poll::Pending };
        if std::mem::take(&mut self.heard) {
            connection.patience.begin(Instant::now(), self.patience);
        }
        connection.patience.poll_end(cx).map(|()| Some(Err(Cut)))
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self.poll_piece(cx) {
            Poll::Ready(piece) => {
                self.heard = true;
                Poll::Ready(piece)
            }
            Poll::Pending => self.poll_silence(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest == Rest::NOTHING
    }

    fn size_hint(&self) -> SizeHint {
        match self.rest {
            Rest::Bytes(left) => SizeHint::with_exact(left),
            _ => SizeHint::default(),
        }
    }
}

impl Drop for UpstreamBody {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        if self.home.keeps_alive && self.rest == Rest::NOTHING && connection.is_over() {
            connection.rest();
            self.home.upstream.keep(connection, self.home.worker, self.home.idle_max);
        }
    }
}

/// The server's answer ended before its end.
#[derive(Debug, thiserror::Error)]
#[error("the server's answer ended before its end")]
pub(in crate::proxy) struct Cut;
