//! One guard store, as a caller sees it: a request goes there once, and one answer or one error comes back.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tidegate_core::secret::Secret;
use tidegate_guard::Guard;
use tidegate_protocol::{
    identity::{self, Digest, Pepper, Purpose},
    name::OperationId,
    request::Request,
    response::{ErrorBody, Response},
};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{
    Caller, Cause, ConfigurationFault, GuardUnavailable, GuardView, Networks,
    http::{HttpTransport, SocketTransport},
};

/// A handle on a guard store. Cloning shares its connections.
#[derive(Debug, Clone)]
pub struct GuardClient {
    transport: Transport,
    peppers: Arc<Peppers>,
    timeout: Duration,
    under_way: Arc<Semaphore>,
}

#[derive(Debug, Clone)]
struct Peppers {
    /// Hashes partitions and keys.
    storage: Pepper,
    /// Hashes source, networks and principal.
    fairness: Pepper,
}

#[derive(Debug, Clone)]
enum Transport {
    Http(Arc<HttpTransport>),
    Socket(Arc<SocketTransport>),
    InProcess(Guard),
}

/// How long a call may take where nothing else is said.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_millis(750);
/// The shortest time-out that is taken: less would fail on an ordinary network.
pub const TIMEOUT_MIN: Duration = Duration::from_millis(100);
/// The longest one: the server itself gives up after this.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(2);
/// Calls of one client that are under way at once. A store that hangs holds no more than these for the length
/// of a time-out; whoever comes then fails at once.
pub const CALLS_MAX: usize = 512;

impl GuardClient {
    /// A client that signs its requests and sends them to `url`: https, or http to this machine.
    ///
    /// # Errors
    /// The URL can't be used.
    pub fn new(url: &str, secret: Secret, pepper: &Secret) -> Result<Self, ConfigurationFault> {
        Ok(Self::over(Transport::Http(Arc::new(HttpTransport::new(url, secret)?)), pepper))
    }

    /// A client over the guard store's Unix socket, whose permissions are the boundary.
    #[must_use]
    pub fn over_socket(path: impl Into<PathBuf>, pepper: &Secret) -> Self {
        Self::over(Transport::Socket(Arc::new(SocketTransport::new(path.into()))), pepper)
    }

    /// A client of a guard in this process.
    #[must_use]
    pub fn in_process(guard: Guard, pepper: &Secret) -> Self {
        Self::over(Transport::InProcess(guard), pepper)
    }

    /// With another time-out for each call, held between [`TIMEOUT_MIN`] and [`TIMEOUT_MAX`].
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: timeout.clamp(TIMEOUT_MIN, TIMEOUT_MAX), ..self }
    }

    /// With a pepper of its own for source, networks and principal, so that services with different peppers
    /// share one allowance, and rotating the other pepper resets no quota.
    #[must_use]
    pub fn with_fairness_pepper(self, pepper: &Secret) -> Self {
        let peppers = Peppers { fairness: Pepper::new(pepper), ..(*self.peppers).clone() };
        Self { peppers: Arc::new(peppers), ..self }
    }

    /// A view for one request, whose calls are charged to these identities: the source in its canonical form
    /// (`unknown` if it is missing or can't be read), the networks around it, and a principal if there is one.
    #[must_use]
    pub fn with_fairness(
        &self,
        source: Option<&str>,
        networks: Networks,
        principal: Option<&str>,
    ) -> GuardView {
        let caller = source.map_or_else(Caller::unknown, Caller::at);
        let caller = principal.map_or(caller, |principal| caller.principal(principal));
        self.view(caller, networks)
    }

    pub(crate) fn view(&self, caller: Caller<'_>, networks: Networks) -> GuardView {
        GuardView::new(self.clone(), caller.fairness(&self.peppers.fairness, networks))
    }

    /// What stands for `value` on the server, as a partition or a key. Identities are hashed by
    /// [`Self::with_fairness`].
    #[must_use]
    pub fn digest(&self, purpose: Purpose, value: &str) -> Digest {
        identity::digest(&self.peppers.storage, purpose, value)
    }

    /// How long a call may take.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sends a request, once.
    ///
    /// # Errors
    /// There is no answer, or it is a refusal. After a time-out or a broken connection the request may have
    /// been executed; the same operation id tells.
    pub async fn run(&self, request: &Request) -> Result<Response, GuardUnavailable> {
        request.validate().map_err(|fault| Cause::BadRequest(fault.to_string()))?;
        let _held = self.hold()?;
        self.within_timeout(async {
            match &self.transport {
                Transport::Http(http) => read_answer(&http.post(body(request)?).await?),
                Transport::Socket(socket) => read_answer(&socket.post(body(request)?).await?),
                Transport::InProcess(guard) => {
                    guard.run(request.clone()).await.map_err(|refusal| Cause::of_refusal(refusal.to_body()))
                }
            }
        })
        .await
    }

    /// Sends a body as it stands, once, and hands back what came: for tools that show the exchange itself.
    ///
    /// # Errors
    /// There is no answer; an answer of any status is one.
    pub async fn send_raw(&self, body: Vec<u8>) -> Result<RawAnswer, GuardUnavailable> {
        let _held = self.hold()?;
        self.within_timeout(async {
            match &self.transport {
                Transport::Http(http) => http.post(body).await,
                Transport::Socket(socket) => socket.post(body).await,
                Transport::InProcess(_) => {
                    Err(Cause::Transport("a guard in this process takes no bytes".into()))
                }
            }
        })
        .await
    }

    fn over(transport: Transport, pepper: &Secret) -> Self {
        let storage = Pepper::new(pepper);
        Self {
            transport,
            peppers: Arc::new(Peppers { fairness: storage.clone(), storage }),
            timeout: TIMEOUT_DEFAULT,
            under_way: Arc::new(Semaphore::new(CALLS_MAX)),
        }
    }

    fn hold(&self) -> Result<SemaphorePermit<'_>, Cause> {
        let full = |_| Cause::Unavailable(format!("{CALLS_MAX} calls of this client are under way"));
        self.under_way.try_acquire().map_err(full)
    }

    async fn within_timeout<T>(
        &self,
        exchange: impl Future<Output = Result<T, Cause>>,
    ) -> Result<T, GuardUnavailable> {
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(answer) => answer.map_err(GuardUnavailable::from),
            Err(_elapsed) => Err(Cause::TimedOut.into()),
        }
    }
}

/// An answer as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The JSON.
    pub body: Vec<u8>,
}

/// An id for one logical call, to be kept by a caller that wants to retry it itself.
///
/// # Errors
/// The system gives no random bytes.
pub fn operation_id() -> Result<OperationId, GuardUnavailable> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits)
        .map_err(|error| Cause::Transport(format!("drawing an operation id: {error}")))?;
    Ok(OperationId::from_random(bits))
}

fn body(request: &Request) -> Result<Vec<u8>, Cause> {
    request.to_json().map_err(|fault| Cause::BadRequest(fault.to_string()))
}

/// Reads what the server answered.
///
/// # Errors
/// It is a refusal, or nothing that a guard store says.
fn read_answer(answer: &RawAnswer) -> Result<Response, Cause> {
    if answer.status == 200 {
        return Response::from_json(&answer.body).map_err(|_| Cause::NotAGuard { status: 200 });
    }
    match ErrorBody::from_json(&answer.body) {
        Ok(refusal) => Err(Cause::of_refusal(refusal)),
        Err(_) => Err(Cause::NotAGuard { status: answer.status }),
    }
}
