//! Where alerts are posted: one URL, the secret that signs, an HTTP client.

use std::{fmt, io, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header, uri::InvalidUri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use thiserror::Error;
use tidegate_core::secret::Secret;
use tidegate_protocol::signature;
use tidegate_store::clock::wall_ms;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::rustls::{ClientConfig, Error as TlsError, RootCertStore, crypto::ring};

use crate::{config::Admin, start::chain};

/// A receiver of alerts.
pub struct Target {
    uri: Uri,
    secret: Secret,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// Why alerts can't be posted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The URL is none.
    #[error("reading admin.webhook_url")]
    Url(#[from] InvalidUri),
    /// TLS can't be set up.
    #[error("setting up TLS")]
    Tls(#[from] TlsError),
    /// The system has no certificates to check the receiver's with.
    #[error("loading the system's certificates")]
    Certificates(#[from] io::Error),
}

/// Why an attempt has failed. The receiver may still have taken the alert, except where it answered.
#[derive(Debug, Error)]
pub(super) enum Failure {
    #[error("no answer within {} s", ATTEMPT_TIMEOUT.as_secs())]
    TimedOut,
    #[error("no answer")]
    Transport(#[from] legacy::Error),
    #[error("making the request")]
    Request(#[from] http::Error),
    #[error("the receiver answered {0}")]
    Answer(StatusCode),
}

impl Target {
    /// The receiver that the configuration names. One that can't be used is logged and left out.
    #[must_use]
    pub fn configured(admin: &Admin) -> Option<Self> {
        let (url, secret) = (admin.webhook_url.as_ref()?, admin.webhook_secret.as_ref()?);
        Self::new(url.expose(), secret.clone())
            .inspect_err(|error| {
                tracing::error!(kind = "webhook-misconfigured", error = chain(error), "no alert is posted");
            })
            .ok()
    }

    /// A receiver at `url`.
    ///
    /// # Errors
    /// The URL is none, or it is `https` and the system has no certificates.
    pub fn new(url: &str, secret: Secret) -> Result<Self, TargetError> {
        let uri: Uri = url.parse()?;
        let tls = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()?;
        // Clear text needs no certificates, and shall work where there are none.
        let tls = match uri.scheme_str() {
            Some("https") => tls.with_native_roots()?,
            _ => tls.with_root_certificates(RootCertStore::empty()),
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls.with_no_client_auth())
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .build();
        // Alerts are rare: a connection kept for the next one would most often be dead by then.
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        Ok(Self { uri, secret, client })
    }

    /// Posts `body`, signed now. Redirects are not followed: whoever answers one has not taken the alert.
    pub(super) async fn post(&self, body: Bytes) -> Result<(), Failure> {
        let target = self.uri.path_and_query().map_or("/", |target| target.as_str());
        let signature = signature::sign(&self.secret, wall_ms(), "POST", target, &body);
        let request = Request::post(self.uri.clone())
            .header(signature::HEADER, signature)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        let deadline = Instant::now() + ATTEMPT_TIMEOUT;
        let answer =
            timeout_at(deadline, self.client.request(request)).await.map_err(|_| Failure::TimedOut)??;
        let status = answer.status();
        let _ = timeout_at(deadline, read(answer.into_body())).await;
        if status.is_success() { Ok(()) } else { Err(Failure::Answer(status)) }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Target(…)")
    }
}

/// Takes what the receiver says, so that it need not see a broken connection; what it says does not matter.
async fn read(body: Incoming) {
    let _ = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
}

impl Failure {
    /// Whether another attempt may end better.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::TimedOut | Self::Transport(_) => true,
            Self::Request(_) => false,
            Self::Answer(status) => {
                status.is_server_error()
                    || matches!(*status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
            }
        }
    }
}

/// A receiver that takes longer will not have it by waiting on; the next alert waits meanwhile.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// Far more than any receiver has to say.
const ANSWER_BYTES_MAX: usize = 16 * 1024;
