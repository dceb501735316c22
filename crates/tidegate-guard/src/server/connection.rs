//! One connection, from its first byte to its end.

use std::{convert::Infallible, future::poll_fn, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{body::Incoming, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{Handler, ServerOptions, Shutdown, activity::Activity, told};
use crate::service::Peer;

pub(super) struct Context<H> {
    pub(super) peer: Peer,
    pub(super) handler: Arc<H>,
    pub(super) options: ServerOptions,
    pub(super) shutdown: Shutdown,
}

/// Enough for any honest client's head, and the most that an HTTP/2 head may inflate to.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// More than any honest client sends.
const HEADERS_MAX: usize = 64;
/// Streams of one HTTP/2 connection at once.
const STREAMS_MAX: u32 = 256;
/// How long a connection that is being closed over an unread body may go on sending before it is cut, so
/// that the answer reaches a client that reads only after it has written.
const LINGER: Duration = Duration::from_secs(1);
/// How much of that is read and thrown away.
const LINGER_BYTES_MAX: usize = 256 * 1024;
/// How every HTTP/2 connection begins when the client knows in advance that the server speaks it.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

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

/// Looks at the first bytes without taking them; None: the client left before they told.
async fn speaks_http2(stream: &TcpStream) -> Option<bool> {
    let mut first = [0; HTTP2_PREFACE.len()];
    let mut seen = 0;
    loop {
        let length = stream.peek(&mut first).await.ok()?;
        if length == 0 {
            return None;
        }
        if !HTTP2_PREFACE.starts_with(&first[..length]) {
            return Some(false);
        }
        if length == HTTP2_PREFACE.len() {
            return Some(true);
        }
        if length == seen {
            // The socket stays readable while the rest is awaited: look again a little later.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        seen = length;
    }
}

pub(super) async fn run_http1<S, H>(stream: S, mut context: Context<H>)
where
    H: Handler,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::new(Activity::new());
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
        let stalled = activity.stalled(context.options.head_timeout);
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
    let activity = Arc::new(Activity::new());
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
    let stalled = activity.stalled(context.options.head_timeout);
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
    let _in_work = activity.begin(began);
    let answer = handler.answer(request, peer, began).await;
    if answer.left_unread {
        activity.leave_unread();
    }
    Ok(answer.response)
}

/// Says that nothing more will come, and for a moment takes what is still being sent: closing a socket with
/// unread bytes would reset it, and the client might never see its answer.
async fn close<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, linger: bool) {
    let shut = stream.shutdown().await;
    if shut.is_err() || !linger {
        return;
    }
    let drain = async {
        let (mut scratch, mut taken) = ([0; 4096], 0);
        while taken < LINGER_BYTES_MAX {
            match stream.read(&mut scratch).await {
                Ok(length) if length > 0 => taken += length,
                _ended => break,
            }
        }
    };
    let _ = timeout(LINGER, drain).await;
}
