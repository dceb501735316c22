//! Accepting connections within a bound, each on one of the runtimes.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    net::{TcpListener, UnixListener},
    runtime::Handle,
    sync::{Semaphore, watch},
    task::JoinSet,
};

/// The places for connections that several listeners share.
#[derive(Debug, Clone)]
pub struct Connections(Arc<Semaphore>);

impl Connections {
    /// `connections_max` places.
    #[must_use]
    pub fn new(connections_max: usize) -> Self {
        Self(Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS))))
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

    /// The runtimes, in the order of their numbers.
    #[must_use]
    pub fn runtimes(&self) -> &[Handle] {
        &self.runtimes
    }

    fn next(&self) -> (usize, &Handle) {
        let number = self.next.fetch_add(1, Ordering::Relaxed) % self.runtimes.len();
        (number, &self.runtimes[number])
    }
}

/// Tells every listener and connection to end: send `true`.
pub type Shutdown = watch::Receiver<bool>;

/// What connections come from: a stream that no runtime has registered yet, and who is at its other end.
pub trait Listener {
    /// A connection.
    type Stream;
    /// Who is at its other end.
    type Peer;

    /// The next connection.
    fn next(&self) -> impl Future<Output = io::Result<(Self::Stream, Self::Peer)>> + Send;
}

impl Listener for TcpListener {
    type Stream = std::net::TcpStream;
    type Peer = SocketAddr;

    async fn next(&self) -> io::Result<(Self::Stream, SocketAddr)> {
        let (stream, address) = self.accept().await?;
        Ok((stream.into_std()?, address))
    }
}

impl Listener for UnixListener {
    type Stream = std::os::unix::net::UnixStream;
    type Peer = ();

    async fn next(&self) -> io::Result<(Self::Stream, ())> {
        let (stream, _address) = self.accept().await?;
        Ok((stream.into_std()?, ()))
    }
}

/// Accepts until `shutdown`: each connection gets one of the places and one of the workers, whose number `serve`
/// is told, or is closed and `refused` is called. Answers the connections that still run.
pub async fn accept<L: Listener, R>(
    listener: &L,
    serve: impl Fn(L::Stream, L::Peer, usize) -> R,
    refused: impl Fn(),
    connections: &Connections,
    workers: &Workers,
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
                refused();
                after_failed_accept(&error).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&connections.0).try_acquire_owned() else {
            refused();
            continue;
        };
        let (number, runtime) = workers.next();
        let serving = serve(stream, peer, number);
        let held = async move {
            serving.await;
            drop(place);
        };
        tasks.spawn_on(held, runtime);
    }
}

/// Ends once `shutdown` says so, or its sender is gone.
pub async fn told(shutdown: &mut Shutdown) {
    // An error means that the sender is gone, which says the same.
    let _ = shutdown.wait_for(|told| *told).await;
}

/// Waits for the connections that still run, and cuts those that don't end in time.
pub async fn finish(mut tasks: JoinSet<()>, timeout: Duration) {
    let all = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(timeout, all).await.is_err() {
        tracing::warn!(connections = tasks.len(), "cutting connections that did not end in time");
    }
}

/// A failed accept is the machine's trouble (no descriptor left, say): try again a little later.
async fn after_failed_accept(error: &io::Error) {
    tracing::warn!(kind = "accept-failing", error = %error, "accepting a connection failed");
    tokio::time::sleep(Duration::from_millis(100)).await;
}
