//! The operator's calls: stop, resume, state, resets, forgetting, and the audit log.
//!
//! Over HTTP they carry the operator's token instead of a signature. Nothing is retried.

use std::{sync::Arc, time::Duration};

use http::{Method, Request, header};
use tidegate_core::secret::Secret;
use tidegate_guard::Guard;
use tidegate_protocol::{
    control::{
        AUDIT_PATH, Audit, FAIRNESS_RESET_PATH, FORGET_PATH, FairnessReset, Forget, Forgotten, RESUME_PATH,
        Reset, Resume, STATE_PATH, STOP_PATH, State, Stop,
    },
    response::ErrorBody,
};

use crate::{Cause, ConfigurationFault, GuardUnavailable, RawAnswer, http::Origin};

/// A handle on a guard store for its operator. Cloning shares its connections.
#[derive(Debug, Clone)]
pub struct ControlClient {
    transport: Transport,
    timeout: Duration,
}

#[derive(Debug, Clone)]
enum Transport {
    Http { origin: Arc<Origin>, token: Secret },
    InProcess(Guard),
}

/// How long a call may take where nothing else is said: a stop waits for what other instances were leased,
/// and an operator would rather wait than not know.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// What an operator asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Call {
    /// Put up the fence.
    Stop(Stop),
    /// Take it down, and let families go on.
    Resume(Resume),
    /// Tell how everything stands.
    State,
    /// Clear quotas.
    ResetFairness(FairnessReset),
    /// Remove rows.
    Forget(Forget),
    /// Tell what operators did.
    Audit {
        /// How many entries, the newest first.
        limit: usize,
    },
}

impl ControlClient {
    /// A client that shows `token` to the guard store at `url`: https, or http to this machine.
    ///
    /// # Errors
    /// The URL can't be used.
    pub fn new(url: &str, token: Secret) -> Result<Self, ConfigurationFault> {
        Ok(Self::over(Transport::Http { origin: Arc::new(Origin::new(url)?), token }))
    }

    /// A client of a guard in this process. Its entries in the audit come from `in process`.
    #[must_use]
    pub fn in_process(guard: Guard) -> Self {
        Self::over(Transport::InProcess(guard))
    }

    /// With another time-out for each call.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Puts up the fence: once this has answered, no RPC executes a step.
    ///
    /// # Errors
    /// There is no answer, or it is a refusal. After a time-out the fence may stand or not: ask for the state.
    pub async fn stop(&self, stop: Stop) -> Result<State, GuardUnavailable> {
        self.ask(&Call::Stop(stop), State::from_json).await
    }

    /// Takes the fence down and lets stopped families go on.
    ///
    /// # Errors
    /// As [`Self::stop`].
    pub async fn resume(&self, resume: Resume) -> Result<State, GuardUnavailable> {
        self.ask(&Call::Resume(resume), State::from_json).await
    }

    /// Tells how everything stands.
    ///
    /// # Errors
    /// There is no answer, or it is a refusal.
    pub async fn state(&self) -> Result<State, GuardUnavailable> {
        self.ask(&Call::State, State::from_json).await
    }

    /// Clears quotas.
    ///
    /// # Errors
    /// There is no answer, or it is a refusal. After a time-out they may be cleared or not.
    pub async fn reset_fairness(&self, reset: FairnessReset) -> Result<Reset, GuardUnavailable> {
        self.ask(&Call::ResetFairness(reset), Reset::from_json).await
    }

    /// Removes the rows of a partition or of one key.
    ///
    /// # Errors
    /// There is no answer, or it is a refusal. After a time-out some rows may be removed; asking again is safe.
    pub async fn forget(&self, forget: Forget) -> Result<Forgotten, GuardUnavailable> {
        self.ask(&Call::Forget(forget), Forgotten::from_json).await
    }

    /// The last `limit` things that operators did, the newest first.
    ///
    /// # Errors
    /// There is no answer, or it is a refusal.
    pub async fn audit(&self, limit: usize) -> Result<Audit, GuardUnavailable> {
        self.ask(&Call::Audit { limit }, Audit::from_json).await
    }

    /// Makes a call and hands back what came: for tools that show the answer itself.
    ///
    /// # Errors
    /// There is no answer; an answer of any status is one.
    pub async fn send_raw(&self, call: &Call) -> Result<RawAnswer, GuardUnavailable> {
        let exchange = async {
            match &self.transport {
                Transport::Http { origin, token } => {
                    let request = Request::builder()
                        .method(call.method())
                        .uri(origin.uri(&call.path()))
                        .header(header::AUTHORIZATION, bearer(token));
                    origin.exchange(request, call.body()?).await
                }
                Transport::InProcess(guard) => Ok(answered_in_process(guard, call).await),
            }
        };
        within(self.timeout, exchange).await
    }

    fn over(transport: Transport) -> Self {
        Self { transport, timeout: TIMEOUT_DEFAULT }
    }

    async fn ask<A>(&self, call: &Call, read: fn(&[u8]) -> Read<A>) -> Result<A, GuardUnavailable> {
        let raw = self.send_raw(call).await?;
        if raw.status == 200 {
            return read(&raw.body).map_err(|_| Cause::NotAGuard { status: 200 }.into());
        }
        Err(refused(&raw).into())
    }
}

type Read<A> = Result<A, serde_json::Error>;

impl Call {
    const fn method(&self) -> Method {
        match self {
            Self::State | Self::Audit { .. } => Method::GET,
            _ => Method::POST,
        }
    }

    fn path(&self) -> String {
        match self {
            Self::Stop(_) => STOP_PATH.to_owned(),
            Self::Resume(_) => RESUME_PATH.to_owned(),
            Self::State => STATE_PATH.to_owned(),
            Self::ResetFairness(_) => FAIRNESS_RESET_PATH.to_owned(),
            Self::Forget(_) => FORGET_PATH.to_owned(),
            Self::Audit { limit } => format!("{AUDIT_PATH}?limit={limit}"),
        }
    }

    fn body(&self) -> Result<Vec<u8>, Cause> {
        let body = match self {
            Self::Stop(stop) => serde_json::to_vec(stop),
            Self::Resume(resume) => serde_json::to_vec(resume),
            Self::ResetFairness(reset) => serde_json::to_vec(reset),
            Self::Forget(forget) => serde_json::to_vec(forget),
            Self::State | Self::Audit { .. } => Ok(Vec::new()),
        };
        body.map_err(|fault| Cause::BadRequest(fault.to_string()))
    }
}

/// Reads the metrics of the admin API at `url`, with a token of the ability `read` where one is needed.
///
/// # Errors
/// The URL can't be used, there is no answer, or it is a refusal.
pub async fn read_metrics(url: &str, token: Option<&Secret>) -> Result<String, MetricsError> {
    let origin = Origin::new(url)?;
    let request = Request::get(origin.uri("/metrics"));
    let request = match token {
        Some(token) => request.header(header::AUTHORIZATION, bearer(token)),
        None => request,
    };
    let raw = within(TIMEOUT_DEFAULT, origin.exchange(request, Vec::new())).await?;
    if raw.status != 200 {
        return Err(MetricsError::Refused { status: raw.status });
    }
    String::from_utf8(raw.body).map_err(|_| MetricsError::Refused { status: raw.status })
}

/// Why there are no metrics.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// The URL.
    #[error(transparent)]
    Url(#[from] ConfigurationFault),
    /// No answer.
    #[error("the metrics are out of reach: {}", .0.cause)]
    Unavailable(#[from] GuardUnavailable),
    /// An answer that is no metrics.
    #[error("the metrics are refused ({status})")]
    Refused {
        /// The HTTP status.
        status: u16,
    },
}

/// The answer that the same call has over HTTP.
async fn answered_in_process(guard: &Guard, call: &Call) -> RawAnswer {
    const FROM: &str = "in process";
    let operator = guard.operator();
    let answer = match call {
        Call::Stop(stop) => operator.stop(stop.clone(), FROM).await.map(|state| state.to_json()),
        Call::Resume(resume) => operator.resume(resume.clone(), FROM).await.map(|state| state.to_json()),
        Call::State => operator.state().await.map(|state| state.to_json()),
        Call::ResetFairness(reset) => {
            operator.reset_fairness(reset.clone(), FROM).await.map(|reset| reset.to_json())
        }
        Call::Forget(forget) => operator.forget(forget.clone(), FROM).await.map(|answer| answer.to_json()),
        Call::Audit { limit } => operator.audit(*limit).await.map(|audit| audit.to_json()),
    };
    match answer {
        Ok(body) => RawAnswer { status: 200, body },
        Err(refusal) => {
            let refusal = refusal.to_body();
            RawAnswer { status: refusal.error.code.status(), body: refusal.to_json() }
        }
    }
}

fn bearer(token: &Secret) -> String {
    format!("Bearer {}", token.expose())
}

async fn within(
    timeout: Duration,
    exchange: impl Future<Output = Result<RawAnswer, Cause>>,
) -> Result<RawAnswer, GuardUnavailable> {
    match tokio::time::timeout(timeout, exchange).await {
        Ok(answer) => answer.map_err(GuardUnavailable::from),
        Err(_elapsed) => Err(Cause::TimedOut.into()),
    }
}

fn refused(raw: &RawAnswer) -> Cause {
    match ErrorBody::from_json(&raw.body) {
        Ok(refusal) => Cause::of_refusal(refusal),
        Err(_) => Cause::NotAGuard { status: raw.status },
    }
}

#[cfg(test)]
mod tests {
    use tidegate_protocol::{
        control::Axis,
        identity::{Digest, Pepper, Purpose, digest},
        name::Family,
    };

    use super::*;

    fn some_digest() -> Digest {
        let pepper = Secret::new("pepper-for-test-vectors-0123456789abcdef").unwrap();
        digest(&Pepper::new(&pepper), Purpose::Source, "192.0.2.7/32")
    }

    #[test]
    fn calls_are_what_the_server_reads() {
        let (family, identity) = (Family::parse("replay").unwrap(), some_digest());
        let reset = FairnessReset { family, axis: Some(Axis::Source), identity: Some(identity) };
        let forget = Forget { partition: identity, key: None };
        let table = [
            (Call::Stop(Stop::default()), "POST", "/control/stop"),
            (Call::Stop(Stop { reason: Some("drill".into()) }), "POST", "/control/stop"),
            (Call::Resume(Resume { families: Some(vec![family]) }), "POST", "/control/resume"),
            (Call::State, "GET", "/control/state"),
            (Call::ResetFairness(reset), "POST", "/control/fairness/reset"),
            (Call::Forget(forget), "POST", "/control/forget"),
            (Call::Audit { limit: 5 }, "GET", "/control/audit?limit=5"),
        ];
        for (call, method, path) in table {
            assert_eq!((call.method().as_str(), call.path().as_str()), (method, path));
            let body = call.body().unwrap();
            let read_back = match &call {
                Call::Stop(stop) => Stop::from_json(&body).map(|read| read == *stop),
                Call::Resume(resume) => Resume::from_json(&body).map(|read| read == *resume),
                Call::ResetFairness(reset) => FairnessReset::from_json(&body).map(|read| read == *reset),
                Call::Forget(forget) => Forget::from_json(&body).map(|read| read == *forget),
                Call::State | Call::Audit { .. } => Ok(body.is_empty()),
            };
            assert_eq!(read_back, Ok(true), "{call:?}");
        }
    }

    #[test]
    fn the_token_stays_out_of_debug_output() {
        let token = Secret::new("operator-token-0123456789abcdef-0123456789").unwrap();
        let client = ControlClient::new("http://127.0.0.1:1", token).unwrap();
        assert!(!format!("{client:?}").contains("0123456789abcdef"), "{client:?}");
    }
}
