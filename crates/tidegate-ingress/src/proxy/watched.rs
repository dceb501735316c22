//! A connection's stream, watched: whether it gets anywhere, and how its heads are framed.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tidegate_listen::Activity;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{
    framing::{Found, Scanner},
    gathered::Gathered,
};

#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: Gathered<S>,
    activity: Arc<Activity>,
    framing: Option<(Scanner, Arc<Found>)>,
}

impl<S> Watched<S> {
    /// Watches the heads of HTTP/1.1 too if told where to say what they are.
    pub(super) fn new(stream: S, activity: Arc<Activity>, found: Option<Arc<Found>>) -> Self {
        Self { stream: Gathered::new(stream), activity, framing: found.map(|found| (Scanner::new(), found)) }
    }

    pub(super) fn into_inner(self) -> S {
        self.stream.into_inner()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        if let Some((scanner, found)) = &mut this.framing {
            let new = &buffer.filled()[before..];
            let (begins, heads) = (scanner.is_before_a_head() && !new.is_empty(), scanner.heads());
            scanner.scan(new, found);
            // Nearly every head comes whole: only one that does not has to be timed.
            if begins && scanner.heads() == heads {
                this.activity.begin_head();
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.activity.set_blocked(written.is_pending());
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, pieces);
        this.activity.set_blocked(written.is_pending());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
