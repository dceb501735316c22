//! Listeners: accepting, bounding and ending connections.
//!
//! A server is handed its bound listener and its shutdown, so that a test can give it port 0 and end it.

mod connection;

use std::{sync::Arc, time::Duration};

use hyper::body::Incoming;
use tokio::{
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    time::Instant,
};
use tokio_rustls::TlsAcceptor;

use crate::service::{Answer, Peer};

pub use tidegate_listen::{Connections, Shutdown, TlsError, Workers, acceptor};
use tidegate_listen::{accept, finish};

/// What answers the requests of a listener.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request, whose head was whole at `began`.
    fn answer(
        &self,
        request: http::Request<Incoming>,
        peer: Peer,
        began: Instant,
    ) -> impl Future<Output = Answer> + Send;

    /// A connection was turned away, or could not be accepted.
    fn refused_connection(&self);
}

/// What a listener allows a connection.
#[derive(Debug, Clone, Copy)]
pub struct ServerOptions {
    /// Connections at once over all listeners that share these options' [`Connections`].
    pub connections_max: usize,
    /// How long a connection may take to bring a whole request head (the TLS handshake and idling between
    /// two requests included) before it is closed.
    pub head_timeout: Duration,
    /// How long a shutdown waits for the requests that were accepted.
    pub shutdown_timeout: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            head_timeout: Duration::from_secs(10),
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}

/// Serves TCP connections until `shutdown`, then answers what was accepted.
pub async fn serve_tcp<H: Handler>(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    handler: Arc<H>,
    options: ServerOptions,
    connections: Connections,
    workers: Workers,
    shutdown: Shutdown,
) {
    let context = connection::Context::of(&handler, options, &shutdown);
    let run = |stream, peer: std::net::SocketAddr, _worker| {
        let (tls, context) = (tls.clone(), context.with(Peer::Address(peer.ip())));
        async move {
            // It is registered anew, with the runtime that it is served on.
            if let Ok(stream) = TcpStream::from_std(stream) {
                connection::run_tcp(stream, tls, context).await;
            }
        }
    };
    let tasks =
        accept(&listener, run, || handler.refused_connection(), &connections, &workers, shutdown).await;
    drop(listener);
    finish(tasks, options.shutdown_timeout).await;
}

/// Serves connections of a Unix domain socket, HTTP/1.1, until `shutdown`. Whoever may open the socket is
/// trusted.
pub async fn serve_unix<H: Handler>(
    listener: UnixListener,
    handler: Arc<H>,
    options: ServerOptions,
    connections: Connections,
    workers: Workers,
    shutdown: Shutdown,
) {
    let context = connection::Context::of(&handler, options, &shutdown);
    let run = |stream, (), _worker| {
        let context = context.with(Peer::Socket);
        async move {
            if let Ok(stream) = UnixStream::from_std(stream) {
                connection::run_http1(stream, context).await;
            }
        }
    };
    let tasks =
        accept(&listener, run, || handler.refused_connection(), &connections, &workers, shutdown).await;
    drop(listener);
    finish(tasks, options.shutdown_timeout).await;
}
