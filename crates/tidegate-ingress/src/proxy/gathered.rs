//! A stream to which short pieces are written as one.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream. The HTTP library hands it head and body in two pieces: where both are short, to copy them together costs
/// less than the system call for several pieces does beyond the one for a single piece.
#[derive(Debug)]
pub(super) struct Gathered<S> {
    stream: S,
    /// Where short pieces are put together.
    whole: Vec<u8>,
}

/// Most heads with a short body.
const SHORT_BYTES: usize = 1024;

impl<S> Gathered<S> {
    pub(super) const fn new(stream: S) -> Self {
        Self { stream, whole: Vec::new() }
    }

    pub(super) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathered<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathered<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, whole } = self.get_mut();
        let stream = Pin::new(stream);
        if let [piece] = pieces {
            return stream.poll_write(cx, piece);
        }
        if pieces.iter().map(|piece| piece.len()).sum::<usize>() > SHORT_BYTES {
            return stream.poll_write_vectored(cx, pieces);
        }
        whole.clear();
        for piece in pieces {
            whole.extend_from_slice(piece);
        }
        stream.poll_write(cx, whole)
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

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, io::IoSlice};

    use super::*;

    /// Takes so many bytes at once, and notes the pieces of each call.
    #[derive(Debug)]
    struct Calls {
        bytes_max: usize,
        pieces: Vec<usize>,
        written: Vec<u8>,
    }

    impl AsyncWrite for Calls {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
            pieces: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let all: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
            let taken = all.len().min(self.bytes_max);
            self.pieces.push(pieces.len());
            self.written.extend(&all[..taken]);
            Poll::Ready(Ok(taken))
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn short_pieces_become_one_and_none_is_lost() {
        for (lengths, bytes_max, calls) in [
            (&[3][..], 100, 1),
            (&[3, 4], 100, 1),
            (&[0, 4, 0, 5], 6, 1),
            (&[1000, 24], 2000, 1),
            (&[1000, 25], 2000, 2),
            (&[1, 5000], 300, 2),
        ] {
            let bytes: Vec<Vec<u8>> =
                lengths.iter().zip(b'a'..).map(|(length, byte)| vec![byte; *length]).collect();
            let pieces: Vec<_> = bytes.iter().map(|piece| IoSlice::new(piece)).collect();
            let calls_before = Calls { bytes_max, pieces: Vec::new(), written: Vec::new() };
            let mut stream = Gathered::new(calls_before);
            let written = poll_fn(|cx| Pin::new(&mut stream).poll_write_vectored(cx, &pieces)).await.unwrap();
            let inner = stream.into_inner();
            assert_eq!(inner.pieces, [calls], "{lengths:?}");
            assert_eq!(inner.written, bytes.concat()[..written], "{lengths:?}");
            assert_eq!(written, bytes.concat().len().min(bytes_max), "{lengths:?}");
        }
    }
}
