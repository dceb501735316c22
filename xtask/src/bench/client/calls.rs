//! The kinds of calls that are measured.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tidegate_client::{
    Caller as Who, Family, GuardClient, RouteLimiter, Selection, WindowLimit, operation_id,
};
use tidegate_core::secret::Secret;
use tidegate_protocol::{
    Command, Request,
    identity::{Digest, Purpose},
    name, request, signature,
};

use crate::{bench::servers::SECRET, clock};

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Call {
    /// The same bytes again, over the HTTP library alone.
    Bare,
    /// A fresh request: operation id, JSON, signature, and the answer read.
    Client,
    /// The same, with a source, a network and a principal hashed.
    View,
    /// A caller that is let through.
    Limiter,
    /// A caller whose denial is remembered.
    RememberedDenial,
}

impl Call {
    pub(super) const ALL: [Self; 5] =
        [Self::Bare, Self::Client, Self::View, Self::Limiter, Self::RememberedDenial];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare HTTP exchange",
            Self::Client => "`GuardClient`, one window",
            Self::View => "the same, with source, network and principal",
            Self::Limiter => "`RouteLimiter`, a caller that is let through",
            Self::RememberedDenial => "`RouteLimiter`, a denial that is remembered",
        }
    }
}

/// Everything that the calls are made with.
#[derive(Clone)]
pub(super) struct Caller {
    address: SocketAddr,
    http: Client<HttpConnector, Full<Bytes>>,
    client: GuardClient,
    partition: Digest,
    key: Digest,
    allowing: Arc<RouteLimiter>,
    denying: Arc<RouteLimiter>,
    next: Arc<AtomicU32>,
}

const PEPPER: &str = "benchmark-pepper-0123456789abcdef-01";
const MINUTE: Duration = Duration::from_secs(60);
/// As the client has it: shorter than the server keeps an idle connection.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// A denial in it outlasts the run.
const LONG: Duration = Duration::from_secs(60 * 86_400);
/// Above what a run asks for.
const PLENTY: u64 = 1_000_000_000;

impl Caller {
    pub(super) async fn of(address: SocketAddr) -> Result<Self> {
        let (secret, pepper) = (Secret::new(SECRET)?, Secret::new(PEPPER)?);
        let client = GuardClient::new(&format!("http://{address}"), secret, &pepper)?;
        let client = client.with_timeout(tidegate_client::TIMEOUT_MAX);
        let selection = Selection::of(client.clone(), [Family::Proxy]);
        let limiter = |scope, window| RouteLimiter::new(&selection, scope, [window]).map(Arc::new);
        let denying = limiter("denying", WindowLimit::sliding(0, LONG))?;
        ensure!(!denying.check(Who::unknown()).await.is_allowed(), "a limit of nothing let a caller through");
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Ok(Self {
            address,
            http: Client::builder(TokioExecutor::new()).pool_idle_timeout(IDLE_MAX).build(connector),
            partition: client.digest(Purpose::Partition, "benchmark"),
            key: client.digest(Purpose::Key, "1m"),
            client,
            allowing: limiter("allowing", WindowLimit::sliding(PLENTY, MINUTE))?,
            denying,
            next: Arc::default(),
        })
    }

    /// Makes calls until then, so many at once; how many there were.
    pub(super) async fn call_until(&self, call: Call, callers: usize, until: Instant) -> Result<u64> {
        if call == Call::RememberedDenial {
            return self.denied_until(until).await;
        }
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..callers {
            let caller = self.clone();
            tasks.spawn(async move {
                // Signed once for the turn: the signature's time may be a minute off.
                let again = caller.signed()?;
                let mut calls = 0;
                while clock::now() < until {
                    caller.once(call, &again).await?;
                    calls += 1;
                }
                anyhow::Ok(calls)
            });
        }
        let mut calls = 0;
        while let Some(done) = tasks.join_next().await {
            calls += done.context("a caller's task")??;
        }
        Ok(calls)
    }

    async fn denied_until(&self, until: Instant) -> Result<u64> {
        const BETWEEN_LOOKS: u64 = 1000;
        let mut calls = 0;
        while clock::now() < until {
            for _ in 0..BETWEEN_LOOKS {
                ensure!(!self.denying.check(Who::unknown()).await.is_allowed(), "a denial was forgotten");
            }
            calls += BETWEEN_LOOKS;
        }
        Ok(calls)
    }

    async fn once(&self, call: Call, again: &Signed) -> Result<()> {
        match call {
            Call::Bare => self.exchange(again).await,
            Call::Client => {
                self.client.run(&self.request()?).await?;
                Ok(())
            }
            Call::View => {
                let source = self.source().to_string();
                let networks = tidegate_client::Networks::Around;
                let view = self.client.with_fairness(Some(&source), networks, Some(&source));
                view.run(&self.request()?).await?;
                Ok(())
            }
            Call::Limiter | Call::RememberedDenial => {
                ensure!(
                    self.allowing.check(Who::from(self.source())).await.is_allowed(),
                    "a caller with plenty was refused"
                );
                Ok(())
            }
        }
    }

    fn request(&self) -> Result<Request> {
        let window = request::Window::sliding(self.key, PLENTY, 60_000);
        Ok(Request::new(operation_id()?, name::Family::parse("proxy")?)
            .step(self.partition, [Command::hit([window])]))
    }

    fn signed(&self) -> Result<Signed> {
        let body = self.request()?.to_json()?;
        let secret = Secret::new(SECRET)?;
        let signature = signature::sign(&secret, clock::unix_ms(), "POST", "/v1/rpc", &body);
        Ok(Signed { body: Bytes::from(body), signature })
    }

    async fn exchange(&self, again: &Signed) -> Result<()> {
        let request = http::Request::post(format!("http://{}/v1/rpc", self.address))
            .header(signature::HEADER, &again.signature)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(Full::new(again.body.clone()))?;
        let answer = self.http.request(request).await?;
        ensure!(answer.status() == 200, "the server answered {}", answer.status());
        answer.into_body().collect().await?;
        Ok(())
    }

    /// One of a thousand addresses.
    fn source(&self) -> IpAddr {
        let number = self.next.fetch_add(1, Ordering::Relaxed) % 1000;
        IpAddr::from((0x0a00_0000 + number).to_be_bytes())
    }
}

/// A request, ready to be sent as often as one likes.
struct Signed {
    body: Bytes,
    signature: String,
}
