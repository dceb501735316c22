//! The reverse proxy: from a client's connection to an app's answer.
//!
//! A request goes peer, client address, instance firewall, the app's abuse defense, its shield, its server. What comes
//! before the server is decided by [`Defense`]; a refusal is answered here and the server never sees it.

mod answers;
mod app;
mod aside;
mod body;
mod connection;
mod context;
mod demo;
mod files;
mod forward;
mod framing;
mod gathered;
mod handler;
mod headers;
mod proxy_protocol;
mod route;
mod shield;
mod target;
mod tunnel;
mod upstream;
mod watched;

use std::{sync::Arc, time::Duration};

use parking_lot::RwLock;
use tidegate_core::network::PrefixSet;
use tidegate_listen::{CertifiedNames, Connections, Shutdown, Workers, accept, finish, told};
use tokio::net::{TcpListener, TcpStream};

pub use app::{App, Backend};
pub use shield::Shield;
pub use upstream::UpstreamAddress;

use crate::defense::{AppId, Defense};
use app::{AppState, Server};
use route::Routes;

/// What the proxy allows its clients and the apps' servers. Every bound comes from the configuration.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// Peers whose word on the client's address counts.
    pub trusted: PrefixSet,
    /// Trusted peers begin each connection with a header of the PROXY protocol, and nobody else connects.
    pub proxy_protocol: bool,
    /// From a connection's begin, or the first byte of a later head, to the end of the head.
    pub header_timeout: Duration,
    /// Between two requests of a connection.
    pub idle_timeout: Duration,
    /// Between two pieces of a body, in either direction.
    pub body_idle_timeout: Duration,
    /// For a whole request's body.
    pub body_timeout: Duration,
    /// In which an app's server takes a connection.
    pub connect_timeout: Duration,
    /// In which an app's server begins its answer.
    pub upstream_timeout: Duration,
    /// For which a server that can't be reached is passed over.
    pub unhealthy: Duration,
    /// Between two pieces of a WebSocket or another tunnel.
    pub tunnel_idle_timeout: Duration,
    /// For the requests in work when the server ends.
    pub shutdown_timeout: Duration,
    /// Bytes of a head.
    pub header_bytes_max: usize,
    /// Headers of a head.
    pub headers_max: usize,
    /// Streams of an HTTP/2 connection at once.
    pub streams_max: u32,
    /// Kept connections to each server, for each thread.
    pub upstream_idle_max: usize,
    /// For which a connection to a server is kept unused.
    pub upstream_idle: Duration,
}

/// The proxy, shared by its listeners.
#[derive(Debug)]
pub struct Proxy {
    defense: Defense,
    live: RwLock<Live>,
    workers: usize,
}

/// What requests are served by now.
#[derive(Debug, Clone)]
struct Live {
    routes: Arc<Routes>,
    options: Arc<ProxyOptions>,
}

impl Proxy {
    /// A proxy for `apps`, served on so many workers.
    #[must_use]
    pub fn new(apps: &[App], defense: Defense, options: ProxyOptions, workers: usize) -> Arc<Self> {
        let proxy = Self {
            defense,
            live: RwLock::new(Live { routes: Arc::default(), options: Arc::new(options) }),
            workers: workers.max(1),
        };
        proxy.replace_apps(apps);
        Arc::new(proxy)
    }

    /// Serves the following requests by other apps and options. Requests in work and open tunnels go on, and what stays
    /// the same keeps its connections and its health.
    pub fn reconfigure(&self, apps: &[App], options: ProxyOptions) {
        self.live.write().options = Arc::new(options);
        self.replace_apps(apps);
    }

    /// The app that has this host, with or without a port.
    #[must_use]
    pub fn app_of_host(&self, host: &str) -> Option<AppId> {
        self.routes().app(host).and_then(|app| app.id.clone())
    }

    /// How many requests an app has in work, open WebSockets included.
    #[must_use]
    pub fn in_work(&self, app: &str) -> Option<u64> {
        self.routes().apps().iter().find(|state| state.name() == app).map(|state| state.in_work.now())
    }

    /// Closes kept connections that nobody uses any more, until `shutdown`.
    pub async fn run(self: Arc<Self>, mut shutdown: Shutdown) {
        let mut every = tokio::time::interval(SWEEP_EVERY);
        loop {
            tokio::select! {
                () = told(&mut shutdown) => return,
                _ = every.tick() => {}
            }
            let idle = self.options().upstream_idle;
            for app in self.routes().apps() {
                if let Server::Upstreams(upstreams) = &app.server {
                    upstreams.sweep(idle);
                }
            }
        }
    }

    fn replace_apps(&self, apps: &[App]) {
        let before = self.routes();
        let mut routes = Routes::default();
        for app in apps {
            let same = before.apps().iter().find(|state| state.name() == app.name);
            let id = self.defense.app(&app.name);
            let state = Arc::new(AppState::new(app, id, same.map(|state| &**state), self.workers));
            routes.add(&app.domains, &state);
        }
        self.live.write().routes = Arc::new(routes);
    }

    fn routes(&self) -> Arc<Routes> {
        Arc::clone(&self.live.read().routes)
    }

    fn options(&self) -> Arc<ProxyOptions> {
        Arc::clone(&self.live.read().options)
    }
}

/// Serves the connections of a listener until `shutdown`, then answers what was accepted. `refused` is called for every
/// connection that found no place.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<CertifiedNames>>,
    proxy: Arc<Proxy>,
    refused: impl Fn(),
    connections: Connections,
    workers: Workers,
    shutdown: Shutdown,
) {
    let tls = tls.map(|names| names.acceptor());
    let run = |stream, peer: std::net::SocketAddr, worker| {
        let (proxy, tls, shutdown) = (Arc::clone(&proxy), tls.clone(), shutdown.clone());
        async move {
            // It is registered anew, with the runtime that it is served on.
            if let Ok(stream) = TcpStream::from_std(stream) {
                connection::run(stream, peer.ip(), tls, proxy, worker, shutdown).await;
            }
        }
    };
    let tasks = accept(&listener, run, refused, &connections, &workers, shutdown.clone()).await;
    drop(listener);
    let timeout = proxy.options().shutdown_timeout;
    finish(tasks, timeout).await;
}

/// Often enough that a connection is not kept much longer than it should be.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
