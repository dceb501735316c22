//! A client's connection, from its first byte to its end.

use std::{
    future::{pending, poll_fn},
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use hyper::{server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tidegate_core::address::Address;
use tidegate_listen::{Patience, Shutdown, close, speaks_http2, told};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_rustls::TlsAcceptor;

use super::{
    Proxy, ProxyOptions, aside::Aside, context::Context, handler, proxy_protocol, tunnel, watched::Watched,
};

/// For so long a connection that idles when the server ends may still send a request that is on its way.
const LAST_CALL: Duration = Duration::from_millis(500);
/// For so long one that has not sent any yet may: its client has just connected to do so.
const FIRST_CALL: Duration = Duration::from_secs(3);
/// For so long a connection of HTTP/2 that is to end may say so.
const FAREWELL: Duration = Duration::from_millis(500);
/// What is buffered of an answer that a stream's client does not take.
const SEND_BYTES_MAX: usize = 64 * 1024;
/// What a stream's client may send ahead of what is read.
const STREAM_WINDOW_BYTES: u32 = 128 * 1024;
/// The same for all streams of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 512 * 1024;
/// The HTTP library takes no smaller buffer.
const MIN_BUFFER_BYTES: usize = 8192;

pub(super) async fn run(
    mut stream: TcpStream,
    peer: IpAddr,
    tls: Option<TlsAcceptor>,
    proxy: Arc<Proxy>,
    worker: usize,
    shutdown: Shutdown,
) {
    // Without it answers wait for the client's acknowledgement; a failure costs only speed.
    let _ = stream.set_nodelay(true);
    let options = proxy.options();
    let deadline = Instant::now() + options.header_timeout;
    let peer = if options.proxy_protocol {
        // Whether a header is expected is decided by who connects, never by what comes.
        if !options.trusted.contains(Address::from(peer)) {
            return;
        }
        match timeout_at(deadline, proxy_protocol::read(&mut stream)).await {
            Ok(Ok(named)) => named.unwrap_or(peer),
            _refused => return,
        }
    } else {
        peer
    };
    let context = Context::new(proxy, peer, worker, tls.is_some());
    if let Some(tls) = tls {
        let Ok(Ok(stream)) = timeout_at(deadline, tls.accept(stream)).await else { return };
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        return serve(stream, is_http2, context, &options, shutdown).await;
    }
    if let Ok(Some(is_http2)) = timeout_at(deadline, speaks_http2(&stream)).await {
        serve(stream, is_http2, context, &options, shutdown).await;
    }
}

async fn serve<S>(
    stream: S,
    is_http2: bool,
    context: Arc<Context>,
    options: &ProxyOptions,
    shutdown: Shutdown,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if is_http2 {
        run_http2(stream, context, options, shutdown).await;
    } else {
        run_http1(stream, context, options, shutdown).await;
    }
}

async fn run_http1<S>(stream: S, context: Arc<Context>, options: &ProxyOptions, mut shutdown: Shutdown)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::clone(&context.activity);
    let watched = Watched::new(stream, Arc::clone(&activity), Some(Arc::clone(&context.framing)));
    let mut connection = conn::http1::Builder::new()
        .max_buf_size(options.header_bytes_max.max(SEND_BYTES_MAX).max(MIN_BUFFER_BYTES))
        .max_header_size(options.header_bytes_max)
        .max_headers(options.headers_max)
        .serve_connection(TokioIo::new(watched), service_fn(|request| handler::answer(&context, request)));
    let served = {
        // Nobody else sees it; it has to be shared with what is watched beside the connection.
        let farewell = AtomicBool::new(false);
        let mut cut = Aside::new(Box::pin(async {
            tokio::select! {
                () = end(&mut shutdown, &context, &farewell) => {}
                () = context.fed_up.notified() => {}
                () = activity.stalled(patience(options)) => {}
            }
        }));
        poll_fn(|cx| {
            loop {
                if let Poll::Ready(served) = connection.poll_without_shutdown(cx) {
                    return Poll::Ready(served.is_ok());
                }
                if Pin::new(&mut cut).poll(cx).is_ready() {
                    return Poll::Ready(false);
                }
                if !farewell.swap(false, Ordering::Relaxed) {
                    return Poll::Pending;
                }
                Pin::new(&mut connection).graceful_shutdown();
            }
        })
        .await
    };
    if !served {
        return;
    }
    let parts = connection.into_parts();
    let stream = parts.io.into_inner().into_inner();
    match context.take_tunnel() {
        Some(tunnel) => {
            let app = tunnel.app;
            tunnel::run(stream, &parts.read_buf, app.stream, &app.read, options.tunnel_idle_timeout).await;
            drop(tunnel.permit);
        }
        None => close(stream, activity.left_unread()).await,
    }
}

/// Once the server ends: asks the connection to take its leave after a moment, and goes on for ever.
async fn end(shutdown: &mut Shutdown, context: &Context, farewell: &AtomicBool) {
    told(shutdown).await;
    context.end();
    sleep(if context.has_begun() { LAST_CALL } else { FIRST_CALL }).await;
    farewell.store(true, Ordering::Relaxed);
    pending::<()>().await;
}

async fn run_http2<S>(stream: S, context: Arc<Context>, options: &ProxyOptions, mut shutdown: Shutdown)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::clone(&context.activity);
    let watched = Watched::new(stream, Arc::clone(&activity), None);
    let answering = Arc::clone(&context);
    let connection = conn::http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(options.streams_max)
        .max_header_list_size(u32::try_from(options.header_bytes_max).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BYTES_MAX)
        .serve_connection(
            TokioIo::new(watched),
            service_fn(move |request| handler::answer(&answering, request)),
        );
    tokio::pin!(connection);
    let stalled = activity.stalled(patience(options));
    tokio::pin!(stalled);
    let farewell = tokio::select! {
        _served = &mut connection => return,
        () = told(&mut shutdown) => options.shutdown_timeout,
        () = context.fed_up.notified() => FAREWELL,
        () = &mut stalled => FAREWELL,
    };
    connection.as_mut().graceful_shutdown();
    let _ = timeout(farewell, connection).await;
}

const fn patience(options: &ProxyOptions) -> Patience {
    Patience { head: options.header_timeout, idle: options.idle_timeout, blocked: options.body_idle_timeout }
}
