//! One connection, from its first byte to its end.

use std::{convert::Infallible, future::poll_fn, sync::Arc};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{body::Incoming, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{Instant, timeout},
};
use tokio_rustls::TlsAcceptor;

use tidegate_listen::{Activity, Patience, close, speaks_http2, told};

use super::{Handler, ServerOptions, Shutdown};
use crate::service::Peer;

pub(super) struct Context<H> {
    peer: Peer,
    handler: Arc<H>,
    options: ServerOptions,
    shutdown: Shutdown,
}

impl<H> Context<H> {
    /// What all connections of a listener have in common; they come from the socket until [`Self::with`] says
    /// otherwise.
    pub(super) fn of(handler: &Arc<H>, options: ServerOptions, shutdown: &Shutdown) -> Self {
        Self { peer: Peer::Socket, handler: Arc::clone(handler), options, shutdown: shutdown.clone() }
    }

    /// The same for a connection of `peer`.
    pub(super) fn with(&self, peer: Peer) -> Self {
        Self { peer, handler: Arc::clone(&self.handler), shutdown: self.shutdown.clone(), ..*self }
    }
}

/// Enough for any honest client's head, and the most that an HTTP/2 head may inflate to.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// More than any honest client sends.
const HEADERS_MAX: usize = 64;
/// Streams of one HTTP/2 connection at once.
const STREAMS_MAX: u32 = 256;
pub(super) async fn run_tcp<H: Handler>(stream: TcpStream, tls: Option<TlsAcceptor>, context: Context<H>) {
    // Without it answers wait for the client's acknowledgement; a failure costs only speed.
    let _ = stream.set_nodelay(true);
    let head_timeout = context.options.head_timeout;
    if let Some(tls) = tls {
        let Ok(Ok(stream)) = timeout(head_timeout, tls.accept(stream)).await else { return };
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        return if is_http2 { run_http2(stream, context).await } else { run_http1(stream, context).await };
    }
    match timeout(head_timeout, speaks_http2(&stream)).await {
        Ok(Some(true)) => run_http2(stream, context).await,
        Ok(Some(false)) => run_http1(stream, context).await,
        Ok(None) | Err(_) => {}
    }
}

pub(super) async fn run_http1<S, H>(stream: S, mut context: Context<H>)
where
    H: Handler,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Activity::new();
    let mut connection = conn::http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        // Answers are small: copying one behind its head costs less than handing the kernel two pieces.
        .writev(false)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(|request| {
                Box::pin(answer(Arc::clone(&context.handler), Arc::clone(&activity), context.peer, request))
            }),
        );
    let served = {
        let mut ending = false;
        let stalled = activity.stalled(Patience::of(context.options.head_timeout));
        tokio::pin!(stalled);
        loop {
            tokio::select! {
                biased;
                served = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break served.is_ok(),
                () = told(&mut context.shutdown), if !ending => {
                    ending = true;
                    Pin::new(&mut connection).graceful_shutdown();
                }
                () = &mut stalled => break false,
            }
        }
    };
    if served {
        close(connection.into_parts().io.into_inner(), activity.left_unread()).await;
    }
}

async fn run_http2<S, H>(stream: S, mut context: Context<H>)
where
    H: Handler,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Activity::new();
    let connection = conn::http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .max_send_buf_size(64 * 1024)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(|request| {
                Box::pin(answer(Arc::clone(&context.handler), Arc::clone(&activity), context.peer, request))
            }),
        );
    tokio::pin!(connection);
    let stalled = activity.stalled(Patience::of(context.options.head_timeout));
    tokio::pin!(stalled);
    tokio::select! {
        _served = &mut connection => return,
        () = told(&mut context.shutdown) => {}
        () = &mut stalled => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(context.options.shutdown_timeout.min(context.options.head_timeout), connection).await;
}

/// What hyper calls for every request.
async fn answer(
    handler: Arc<impl Handler>,
    activity: Arc<Activity>,
    peer: Peer,
    request: http::Request<Incoming>,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let began = Instant::now();
    let _in_work = activity.begin();
    let answer = handler.answer(request, peer, began).await;
    if answer.left_unread {
        activity.leave_unread();
    }
    Ok(answer.response)
}
