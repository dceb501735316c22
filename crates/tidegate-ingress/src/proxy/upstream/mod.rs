//! The servers behind an app: in turn, past those that are down.

mod connection;
mod link;
mod patience;
mod sending;
mod wire;

use std::{
    fmt, io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tidegate_core::decimal;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout},
};

pub(super) use connection::{Connection, Home, Tunnelled, UpstreamBody};
pub(super) use link::Failure;
pub(super) use sending::Outgoing;
pub(super) use wire::Head;

/// Where a server of an app is: an address, or a name that is looked up at every connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamAddress(Place);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Address(SocketAddr),
    Name { host: String, port: u16 },
}

impl UpstreamAddress {
    /// Reads `127.0.0.1:3000`, `[::1]:3000`, `app:3000`, or one of them after `http://`; without a port, 80 is
    /// meant. None for anything else: another scheme, a path, a user.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("http://").unwrap_or(text);
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if let Ok(address) = rest.parse::<SocketAddr>() {
            return Some(Self(Place::Address(address)));
        }
        let (host, port) = match rest.rsplit_once(':').filter(|_| !rest.ends_with(']')) {
            Some((host, port)) => (host, decimal::parse(port).filter(|port| *port != 0)?),
            None => (rest, 80),
        };
        if let Ok(ip) = host.trim_start_matches('[').trim_end_matches(']').parse() {
            return Some(Self(Place::Address(SocketAddr::new(ip, port))));
        }
        let named = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        let good = !host.is_empty() && host.len() <= 253 && host.bytes().all(named);
        good.then(|| Self(Place::Name { host: host.to_owned(), port }))
    }
}

impl fmt::Display for UpstreamAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Address(address) => write!(f, "{address}"),
            Place::Name { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// What a connection to a server is allowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) connect_timeout: Duration,
    /// How long one that could not be reached is passed over.
    pub(super) unhealthy: Duration,
    pub(super) idle: Duration,
    pub(super) head_bytes_max: usize,
    pub(super) headers_max: usize,
}

/// One server, with the connections to it that are kept, for each worker its own.
#[derive(Debug)]
#[expect(clippy::vec_box, reason = "a connection goes from pool to request and back without being copied")]
pub(super) struct Upstream {
    pub(super) address: UpstreamAddress,
    idle: Box<[Mutex<Vec<Box<Connection>>>]>,
    /// When it may be tried again, in milliseconds since `since`; 0: it is well.
    down_until_ms: AtomicU64,
    since: Instant,
}

/// The servers of an app.
#[derive(Debug)]
pub(super) struct Upstreams {
    all: Vec<Arc<Upstream>>,
    next: AtomicUsize,
}

impl Upstreams {
    /// Servers at `addresses`; those that are in `kept` already go on with their connections.
    pub(super) fn new(addresses: Vec<UpstreamAddress>, kept: Option<&Self>, workers: usize) -> Self {
        let same = |address: &UpstreamAddress| kept?.all.iter().find(|upstream| upstream.address == *address);
        let upstream = |address| match same(&address) {
            Some(upstream) => Arc::clone(upstream),
            None => Arc::new(Upstream::new(address, workers)),
        };
        Self { all: addresses.into_iter().map(upstream).collect(), next: AtomicUsize::new(0) }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The next in turn that is not down; none if all are.
    pub(super) fn pick(&self) -> Option<&Arc<Upstream>> {
        if let [only] = &*self.all {
            return only.is_well().then_some(only);
        }
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        let in_turn = (0..self.all.len()).map(|step| &self.all[(start.wrapping_add(step)) % self.all.len()]);
        in_turn.into_iter().find(|upstream| upstream.is_well())
    }

    /// Closes the connections that nobody has used for long.
    pub(super) fn sweep(&self, idle: Duration) {
        for upstream in &self.all {
            upstream.sweep(idle);
        }
    }
}

impl Upstream {
    fn new(address: UpstreamAddress, workers: usize) -> Self {
        Self {
            address,
            idle: (0..workers.max(1)).map(|_| Mutex::new(Vec::new())).collect(),
            down_until_ms: AtomicU64::new(0),
            since: Instant::now(),
        }
    }

    /// A connection: a kept one, which the server may have closed, else a new one.
    pub(super) async fn connection(&self, worker: usize, limits: &Limits) -> io::Result<Box<Connection>> {
        let now = Instant::now();
        while let Some(mut kept) = self.take(worker) {
            if kept.used_at() + limits.idle > now {
                kept.wake(now);
                return Ok(kept);
            }
        }
        let connected = match timeout(limits.connect_timeout, self.connect()).await {
            Ok(connected) => connected,
            Err(_elapsed) => Err(io::ErrorKind::TimedOut.into()),
        };
        self.note(&connected, limits.unhealthy);
        Ok(Box::new(Connection::new(connected?, limits)))
    }

    /// Keeps a connection for the next request of the same worker.
    pub(super) fn keep(&self, connection: Box<Connection>, worker: usize, idle_max: usize) {
        let mut idle = self.idle[worker % self.idle.len()].lock();
        if idle.len() < idle_max {
            idle.push(connection);
        }
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let stream = match &self.address.0 {
            Place::Address(address) => TcpStream::connect(address).await?,
            Place::Name { host, port } => TcpStream::connect((host.as_str(), *port)).await?,
        };
        // Without it requests wait for acknowledgements; a failure costs only speed.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    fn take(&self, worker: usize) -> Option<Box<Connection>> {
        self.idle[worker % self.idle.len()].lock().pop()
    }

    fn sweep(&self, idle: Duration) {
        let now = Instant::now();
        for kept in &self.idle {
            kept.lock().retain(|connection| connection.used_at() + idle > now);
        }
    }

    fn is_well(&self) -> bool {
        let until = self.down_until_ms.load(Ordering::Relaxed);
        until == 0 || self.elapsed_ms() >= until
    }

    /// Remembers whether it could be reached; the log says when that changes.
    fn note<T>(&self, reached: &io::Result<T>, unhealthy: Duration) {
        let until = match reached {
            Ok(_) => 0,
            Err(_) => self.elapsed_ms() + u64::try_from(unhealthy.as_millis()).unwrap_or(u64::MAX / 2).max(1),
        };
        let before = self.down_until_ms.swap(until, Ordering::Relaxed);
        match reached {
            Ok(_) if before != 0 => {
                tracing::info!(kind = "upstream-up", upstream = %self.address, "an app's server is back");
            }
            Err(error) if before == 0 => {
                tracing::warn!(kind = "upstream-down", upstream = %self.address, %error, "an app's server can't be reached");
            }
            _ => {}
        }
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_strictly() {
        for (text, expected) in [
            ("127.0.0.1:3000", Some("127.0.0.1:3000")),
            ("http://127.0.0.1:3000", Some("127.0.0.1:3000")),
            ("http://127.0.0.1:3000/", Some("127.0.0.1:3000")),
            ("http://[::1]:3000", Some("[::1]:3000")),
            ("http://[::1]", Some("[::1]:80")),
            ("app:3000", Some("app:3000")),
            ("app", Some("app:80")),
            ("https://app", None),
            ("http://app/path", None),
            ("http://user@app", None),
            ("app:99999", None),
            ("app:+80", None),
            ("", None),
        ] {
            let read = UpstreamAddress::parse(text).map(|address| address.to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }
}
