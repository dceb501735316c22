//! The admin listener: a bounded number of connections, each of which has to get somewhere.
//!
//! It is apart from the guard's server because its answers may stream for hours, which there would be a stall.

use std::{net::SocketAddr, time::Duration};

use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response},
};
use http::{Request, StatusCode, header};
use hyper::{body::Incoming, server::conn, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use prometheus_client::metrics::counter::Counter;
use tidegate_guard::service::Peer;
use tidegate_listen::{Connections, Shutdown, Workers, accept, finish};
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::api;

/// Some people and some collectors of metrics.
const CONNECTIONS_MAX: usize = 256;
/// Enough for any browser's head.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Streams of one HTTP/2 connection at once: a browser's tabs, each with a stream of events.
const STREAMS_MAX: u32 = 64;
/// A peer of an HTTP/2 connection that does not answer for so long is gone.
const PING_EVERY: Duration = Duration::from_secs(20);

/// A body that dribbles in, mostly: every answer begins well within it, streams of events too.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// A whole request head, the TLS handshake, idling between two requests.
    pub(crate) head: Duration,
    /// Answers that are under way when the process stops.
    pub(crate) shutdown: Duration,
}

/// Serves until `shutdown`, then ends the answers that were begun.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    timeouts: Timeouts,
    refused: Counter,
    shutdown: Shutdown,
) {
    let graceful = GracefulShutdown::new();
    let run = |stream, address: SocketAddr, _worker| {
        let peer = Peer::Address(address.ip());
        run(stream, tls.clone(), router.clone(), peer, timeouts.head, graceful.watcher())
    };
    let refused = || {
        refused.inc();
    };
    // On the thread of the listener: these are few, and must not take turns with the guard's.
    let here = Workers::new(Vec::new());
    let connections = Connections::new(CONNECTIONS_MAX);
    let tasks = accept(&listener, run, refused, &connections, &here, shutdown).await;
    drop(listener);
    tokio::join!(graceful.shutdown(), finish(tasks, timeouts.shutdown));
}

fn too_slow() -> Response {
    (StatusCode::REQUEST_TIMEOUT, [(header::CONNECTION, "close")], "the request took too long\n")
        .into_response()
}

async fn run(
    stream: std::net::TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    peer: Peer,
    head_timeout: Duration,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let Ok(stream) = TcpStream::from_std(stream) else { return };
    // Without it answers wait for the client's acknowledgement; a failure costs only speed.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let is_api = api::is_api(&request);
        let too_slow = move || if is_api { api::documented(too_slow()) } else { too_slow() };
        let answer = router.clone().oneshot(request.map(Body::new));
        async move { timeout(ANSWER_WITHIN, answer).await.unwrap_or_else(|_| Ok(too_slow())) }
    });
    let mut http1 = conn::http1::Builder::new();
    http1.timer(TokioTimer::new()).header_read_timeout(head_timeout).max_buf_size(HEAD_BYTES_MAX);
    let Some(tls) = tls else {
        let _ = watcher.watch(http1.serve_connection(TokioIo::new(stream), service)).await;
        return;
    };
    let Ok(Ok(stream)) = timeout(head_timeout, tls.accept(stream)).await else { return };
    // Whatever ends a connection, there is nobody left to tell.
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        let mut http2 = conn::http2::Builder::new(TokioExecutor::new());
        http2.timer(TokioTimer::new()).keep_alive_interval(PING_EVERY).keep_alive_timeout(PING_EVERY);
        http2.max_concurrent_streams(STREAMS_MAX);
        http2.max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX));
        let _ = watcher.watch(http2.serve_connection(TokioIo::new(stream), service)).await;
    } else {
        let _ = watcher.watch(http1.serve_connection(TokioIo::new(stream), service)).await;
    }
}
