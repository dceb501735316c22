//! Listeners: accepting, bounding and ending connections.
//!
//! A server is handed its bound listener and its shutdown, so that a test can give it port 0 and end it.

mod activity;
mod connection;
mod tls;

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hyper::body::Incoming;
use tokio::{
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    runtime::Handle,
    sync::{Semaphore, watch},
    task::JoinSet,
    time::Instant,
};
use tokio_rustls::TlsAcceptor;

use crate::service::{Answer, Peer};

pub use tls::{TlsError, acceptor};

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

/// The places for connections that several listeners share.
#[derive(Debug, Clone)]
pub struct Connections(Arc<Semaphore>);

impl Connections {
    /// `options.connections_max` places.
    #[must_use]
    pub fn new(options: &ServerOptions) -> Self {
        Self(Arc::new(Semaphore::new(options.connections_max)))
    }
}

/// The runtimes that connections are served on, in turn: each connection stays on one thread, with the store's
/// driver of that thread, so that a request wakes no other.
#[derive(Debug, Clone)]
pub struct Workers {
    runtimes: Arc<[Handle]>,
    next: Arc<AtomicUsize>,
}

impl Workers {
    /// Serves connections on each of `runtimes` in turn; on the caller's own one if there are none.
    ///
    /// # Panics
    /// With no runtimes, outside a tokio runtime.
    #[must_use]
    pub fn new(runtimes: Vec<Handle>) -> Self {
        let runtimes = if runtimes.is_empty() { vec![Handle::current()] } else { runtimes };
        Self { runtimes: runtimes.into(), next: Arc::default() }
    }

    fn next(&self) -> &Handle {
        &self.runtimes[self.next.fetch_add(1, Ordering::Relaxed) % self.runtimes.len()]
    }
}

/// Tells every listener and connection to end: send `true`.
pub type Shutdown = watch::Receiver<bool>;

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
    let run = |stream, context| {
        let tls = tls.clone();
        async move {
            // It is registered anew, with the runtime that it is served on.
            if let Ok(stream) = TcpStream::from_std(stream) {
                connection::run_tcp(stream, tls, context).await;
            }
        }
    };
    let tasks = accept(&listener, run, handler, options, connections, workers, shutdown).await;
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
    let run = |stream, context| async move {
        if let Ok(stream) = UnixStream::from_std(stream) {
            connection::run_http1(stream, context).await;
        }
    };
    let tasks = accept(&listener, run, handler, options, connections, workers, shutdown).await;
    drop(listener);
    finish(tasks, options.shutdown_timeout).await;
}

/// What connections come from: a stream that no runtime has registered yet, and who is at its other end.
trait Listener {
    type Stream;

    fn next(&self) -> impl Future<Output = io::Result<(Self::Stream, Peer)>> + Send;
}

impl Listener for TcpListener {
    type Stream = std::net::TcpStream;

    async fn next(&self) -> io::Result<(Self::Stream, Peer)> {
        let (stream, address) = self.accept().await?;
        Ok((stream.into_std()?, Peer::Address(address.ip())))
    }
}

impl Listener for UnixListener {
    type Stream = std::os::unix::net::UnixStream;

    async fn next(&self) -> io::Result<(Self::Stream, Peer)> {
        let (stream, _address) = self.accept().await?;
        Ok((stream.into_std()?, Peer::Socket))
    }
}

/// Accepts until `shutdown`: each connection gets one of the places and one of the workers, or is closed.
/// Answers the connections that still run.
async fn accept<L: Listener, H: Handler, R>(
    listener: &L,
    run: impl Fn(L::Stream, connection::Context<H>) -> R,
    handler: Arc<H>,
    options: ServerOptions,
    connections: Connections,
    workers: Workers,
    mut shutdown: Shutdown,
) -> JoinSet<()>
where
    R: Future<Output = ()> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = told(&mut shutdown) => return tasks,
            Some(_ended) = tasks.join_next(), if !tasks.is_empty() => continue,
            accepted = listener.next() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                after_failed_accept(&*handler, &error).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&connections.0).try_acquire_owned() else {
            handler.refused_connection();
            continue;
        };
        let context =
            connection::Context { peer, handler: Arc::clone(&handler), options, shutdown: shutdown.clone() };
        let serve = run(stream, context);
        let held = async move {
            serve.await;
            drop(place);
        };
        tasks.spawn_on(held, workers.next());
    }
}

/// Ends once `shutdown` says so, or its sender is gone.
pub(crate) async fn told(shutdown: &mut Shutdown) {
    // An error means that the sender is gone, which says the same.
    let _ = shutdown.wait_for(|told| *told).await;
}

/// A failed accept is the machine's trouble (no descriptor left, say): try again a little later.
async fn after_failed_accept(handler: &impl Handler, error: &io::Error) {
    handler.refused_connection();
    tracing::warn!(kind = "accept-failing", error = %error, "accepting a connection failed");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

async fn finish(mut tasks: JoinSet<()>, timeout: Duration) {
    let all = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(timeout, all).await.is_err() {
        tracing::warn!(connections = tasks.len(), "cutting connections that did not end in time");
    }
}
