//! The HTTP face of the guard store: routes, authentication before anything else, and one table of answers.

mod body;
mod control;
mod failures;
mod respond;

use std::{net::IpAddr, sync::Arc, time::Duration};

use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use parking_lot::RwLock;
use tidegate_core::secret::Secret;
use tidegate_protocol::{
    request::Request as Rpc,
    response::Response as RpcResponse,
    signature::{self, Keyring, Rejected, Verified},
};
use tidegate_store::clock::wall_ms;
use tokio::time::Instant;

use crate::{Guard, Metrics, Refusal, metrics::Ending, server::Handler};
pub use control::bearer_token;
use failures::FailureBudget;
pub use respond::Answer;
use respond::Refused;

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Somebody at this address, who has to sign.
    Address(IpAddr),
    /// Somebody who may open the Unix socket, and is trusted for that.
    Socket,
}

/// What the service answers RPCs with. A configuration that can't be served answers all of them
/// `guard_unavailable`, while the process goes on with its other work.
#[derive(Debug)]
pub enum Face {
    /// The guard, and who may call it.
    Ready {
        /// The engine.
        guard: Guard,
        /// The accepted signing secrets.
        keyring: Keyring,
        /// What an operator shows.
        operator_token: Secret,
    },
    /// The guard's configuration has faults, which the log has named.
    Misconfigured,
}

/// What a service allows a request.
#[derive(Debug, Clone, Copy)]
pub struct ServiceOptions {
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// How many failed authentications a source may cause in a second before its requests are refused
    /// unread; 0: no bound.
    pub failures_per_second: u32,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self { body_timeout: Duration::from_secs(10), failures_per_second: 500 }
    }
}

/// The guard store's HTTP service, shared by its listeners.
#[derive(Debug)]
pub struct Service {
    face: RwLock<Arc<Face>>,
    options: ServiceOptions,
    failures: FailureBudget,
    metrics: Arc<Metrics>,
    started: Instant,
}

const RPC_PATH: &str = "/v1/rpc";

impl Service {
    /// A service with this face.
    #[must_use]
    pub fn new(face: Face, options: ServiceOptions, metrics: Arc<Metrics>) -> Self {
        Self {
            face: RwLock::new(Arc::new(face)),
            options,
            failures: FailureBudget::new(options.failures_per_second),
            metrics,
            started: Instant::now(),
        }
    }

    /// Serves the following requests with another face; those in work go on with theirs.
    pub fn replace(&self, face: Face) {
        *self.face.write() = Arc::new(face);
    }

    /// The guard that RPCs are answered by; none while its configuration has faults.
    #[must_use]
    pub fn guard(&self) -> Option<Guard> {
        match &**self.face.read() {
            Face::Ready { guard, .. } => Some(guard.clone()),
            Face::Misconfigured => None,
        }
    }

    /// Whether an RPC would get an answer: an update goes the way that requests take, within its deadline.
    pub async fn ready(&self) -> Answer {
        let face = Arc::clone(&self.face.read());
        match &*face {
            Face::Ready { guard, .. } if guard.probe().await.is_ok() => {
                Answer::text(StatusCode::OK, "ready\n")
            }
            Face::Ready { .. } => {
                Answer::text(StatusCode::SERVICE_UNAVAILABLE, "the store does not take an update in time\n")
            }
            Face::Misconfigured => Answer::text(
                StatusCode::SERVICE_UNAVAILABLE,
                "the guard's configuration has faults; `tidegate check` names them\n",
            ),
        }
    }

    async fn counted_rpc(&self, request: &mut Request<Incoming>, peer: Peer, began: Instant) -> Answer {
        let outcome = self.rpc(request, peer, began).await;
        self.metrics.seconds.observe(began.elapsed().as_secs_f64());
        match outcome {
            Ok(response) => {
                self.metrics.count(if response.denied { Ending::Denied } else { Ending::Allowed });
                respond::ok(response.to_json())
            }
            Err(refused) => {
                if let Some(ending) = refused.ending() {
                    self.metrics.count(ending);
                }
                refused.into_answer()
            }
        }
    }

    async fn rpc(
        &self,
        request: &mut Request<Incoming>,
        peer: Peer,
        began: Instant,
    ) -> Result<RpcResponse, Refused> {
        let face = Arc::clone(&self.face.read());
        let Face::Ready { guard, keyring, .. } = &*face else { return Err(Refusal::Unavailable.into()) };
        if let Peer::Address(source) = peer
            && self.failures.is_spent(source, self.micros(began))
        {
            self.metrics.sources_cut.inc();
            return Err(Refused::Unauthenticated);
        }
        let raw = self.read_body(request).await?;
        let verified = match peer {
            Peer::Socket => Verified::trusted(&raw),
            Peer::Address(source) => self.verify(keyring, request, &raw, source)?,
        };
        let rpc = Rpc::parse(verified).map_err(Refusal::BadRequest)?;
        Ok(guard.run_valid(rpc).await?)
    }

    async fn read_body(&self, request: &mut Request<Incoming>) -> Result<bytes::Bytes, Refused> {
        let read = body::read(request.body_mut(), self.options.body_timeout).await;
        read.map_err(|fault| match fault {
            body::BodyFault::TooLarge => Refused::TooLarge,
            body::BodyFault::Incomplete => Refused::Incomplete,
        })
    }

    fn verify<'a>(
        &self,
        keyring: &Keyring,
        request: &Request<Incoming>,
        raw: &'a [u8],
        source: IpAddr,
    ) -> Result<Verified<'a>, Refused> {
        let headers = request.headers().get_all(signature::HEADER).iter().map(http::HeaderValue::as_bytes);
        // The whole target is signed: a query that was added on the way makes the signature wrong.
        let target = request.uri().path_and_query().map_or(RPC_PATH, http::uri::PathAndQuery::as_str);
        signature::verify(keyring, headers, request.method().as_str(), target, raw, wall_ms()).map_err(
            |rejected| match rejected {
                Rejected::ClockOff { .. } => Refused::ClockOff(rejected.to_string()),
                _ => {
                    self.failures.charge(source, self.micros(Instant::now()));
                    Refused::Unauthenticated
                }
            },
        )
    }

    /// µs from this service's start to `instant`.
    fn micros(&self, instant: Instant) -> u64 {
        u64::try_from((instant - self.started).as_micros()).unwrap_or(u64::MAX)
    }
}

impl Handler for Service {
    async fn answer(&self, mut request: Request<Incoming>, peer: Peer, began: Instant) -> Answer {
        let path = request.uri().path();
        match (path, peer) {
            (RPC_PATH, _) if request.method() == Method::POST => {
                self.counted_rpc(&mut request, peer, began).await
            }
            (RPC_PATH, _) => Refused::MethodNotAllowed { allow: "POST" }.into_answer(),
            (path, Peer::Address(source)) if path.starts_with(control::PREFIX) => {
                self.control(&mut request, source).await
            }
            ("/healthz" | "/readyz", Peer::Address(_)) if !is_read(request.method()) => {
                Refused::MethodNotAllowed { allow: "GET, HEAD" }.into_answer()
            }
            ("/healthz", Peer::Address(_)) => Answer::text(StatusCode::OK, "ok\n"),
            ("/readyz", Peer::Address(_)) => self.ready().await,
            _ => Refused::NotFound.into_answer(),
        }
    }

    fn refused_connection(&self) {
        self.metrics.connections_refused.inc();
    }
}

fn is_read(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}
