//! Both faces on their sockets.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;
use axum::{
    Router,
    http::{Method, request::Parts},
};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use tidegate_admission::{AdmissionLayer, Clock, HttpAdmission, Operation, Profile, Seed, UdpGate};
use tokio::{
    net::{TcpListener, TcpStream, UdpSocket},
    sync::{Semaphore, watch},
    task::JoinSet,
};
use tower::Layer as _;

use crate::{
    edge::{Edge, System},
    http::{Face, routes},
    service::Service,
    udp::Mediation,
};

/// The service on its sockets.
#[derive(Debug)]
pub struct Running {
    /// Where HTTP is served.
    pub http: SocketAddr,
    /// Where datagrams are taken.
    pub mediator: SocketAddr,
    tasks: JoinSet<anyhow::Result<()>>,
}

/// Connections at once. Requests have their own bounds.
const CONNECTIONS_MAX: usize = 1_024;
/// A head must be there by then.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The profile at `path`, or the built-in one.
///
/// # Errors
/// The file can't be read, or the profile has faults.
pub fn profile(path: Option<&Path>) -> anyhow::Result<Profile> {
    let Some(path) = path else { return Ok(Profile::default()) };
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    Profile::parse(&text).with_context(|| format!("in {}", path.display()))
}

/// What a request is for. Renewing, updating and deleting keep what callers hold; they go on when the rest is shed.
#[must_use]
pub fn operation(parts: &Parts) -> Operation {
    let path = parts.uri.path();
    match (&parts.method, path) {
        (&Method::GET | &Method::HEAD, "/healthz") => Operation::health(),
        (&Method::POST, _) if path.ends_with("/renew") => Operation::critical(0),
        (&Method::PUT, _) => Operation::critical(1),
        (&Method::DELETE, _) => Operation::critical(2),
        (&Method::POST, "/v1/listings") => Operation::optional(0),
        (&Method::GET, "/v1/listings") => Operation::optional(1),
        (&Method::POST, _) => Operation::optional(2),
        _ => Operation::optional(3),
    }
}

impl Running {
    /// Opens both sockets and serves until `ended` says so.
    ///
    /// # Errors
    /// A socket can't be opened, or the system has no random bytes.
    pub async fn start(
        service: Arc<Service>,
        profile: &Profile,
        http: SocketAddr,
        mediator: SocketAddr,
        ended: watch::Receiver<bool>,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(http).await.with_context(|| format!("listening on {http}"))?;
        let socket =
            UdpSocket::bind(mediator).await.with_context(|| format!("taking datagrams on {mediator}"))?;
        let (clock, edge): (_, Arc<dyn Edge>) = (Clock::machine(), Arc::new(System));
        let admission = HttpAdmission::new(profile, Seed::random()?, clock.clone())?;
        let gate = Arc::new(UdpGate::new(profile, Seed::random()?)?);
        let mut running =
            Self { http: listener.local_addr()?, mediator: socket.local_addr()?, tasks: JoinSet::new() };
        let routes = routes(Face { service: Arc::clone(&service), edge: Arc::clone(&edge) });
        running.tasks.spawn(serve(listener, routes, admission, ended.clone()));
        let mediation = Mediation { service, gate, clock, edge };
        running.tasks.spawn(async move { Ok(mediation.serve(&socket, ended).await?) });
        Ok(running)
    }

    /// Waits until both faces have ended.
    ///
    /// # Errors
    /// One of them failed.
    pub async fn ended(mut self) -> anyhow::Result<()> {
        while let Some(task) = self.tasks.join_next().await {
            task??;
        }
        Ok(())
    }
}

async fn serve(
    listener: TcpListener,
    routes: Router,
    admission: HttpAdmission,
    mut ended: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let layer = AdmissionLayer::new(admission, operation);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            _ = ended.wait_for(|ended| *ended) => break,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        // Out of descriptors, or a peer that was gone at once: others may come.
        let Ok((stream, peer)) = accepted else {
            tokio::task::yield_now().await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let service = layer.clone().with_peer(peer.ip()).layer(routes.clone());
        let ended = ended.clone();
        connections.spawn(async move {
            connection(stream, service, ended).await;
            drop(place);
        });
    }
    while connections.join_next().await.is_some() {}
    Ok(())
}

/// One connection, until it ends by itself or all are to end: then what was accepted is still answered.
async fn connection<S>(stream: TcpStream, service: S, mut ended: watch::Receiver<bool>)
where
    S: tower::Service<axum::http::Request<Incoming>, Error = std::convert::Infallible>
        + Clone
        + Send
        + 'static,
    S: tower::Service<axum::http::Request<Incoming>, Response = axum::http::Response<AnswerBody>>,
    S::Future: Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(64);
    let served = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut served = std::pin::pin!(served);
    tokio::select! {
        // What a peer does wrong on its connection ends the connection, and is of no interest.
        _ = served.as_mut() => {}
        () = async { drop(ended.wait_for(|ended| *ended).await) } => {
            served.as_mut().graceful_shutdown();
            let _ = served.await;
        }
    }
}

type AnswerBody = tidegate_admission::body::AdmittedBody<axum::body::Body>;
