//! The transports: signed HTTP over TCP, kept alive, and HTTP over a Unix socket.

use std::{error::Error, net::IpAddr, path::PathBuf, time::Duration};

use bytes::Bytes;
use http::{Request, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, client::conn::http1};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use tidegate_core::secret::Secret;
use tidegate_protocol::signature;
use tidegate_store::clock::wall_ms;
use tokio::net::UnixStream;

use crate::{Cause, ConfigurationFault, RawAnswer};

/// Where RPCs go.
const PATH: &str = "/v1/rpc";

/// Far more than the largest answer: 32 commands whose results hold 2 KiB of escaped text each.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Shorter than a server keeps an idle connection, so that a call does not cross its close on the way.
const IDLE_MAX: Duration = Duration::from_secs(4);

/// RPCs, signed, over connections that are kept alive.
#[derive(Debug)]
pub(crate) struct HttpTransport {
    origin: Origin,
    secret: Secret,
}

/// Connections to one server, which are kept alive.
pub(crate) struct Origin {
    /// Scheme and authority.
    base: String,
    connections: Connections,
}

/// Cleartext, which stays on this machine, needs no certificates.
enum Connections {
    Cleartext(Client<HttpConnector, Full<Bytes>>),
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl HttpTransport {
    pub(crate) fn new(origin: &str, secret: Secret) -> Result<Self, ConfigurationFault> {
        Ok(Self { origin: Origin::new(origin)?, secret })
    }

    pub(crate) async fn post(&self, body: Vec<u8>) -> Result<RawAnswer, Cause> {
        let signature = signature::sign(&self.secret, wall_ms(), "POST", PATH, &body);
        let request = Request::post(self.origin.uri(PATH)).header(signature::HEADER, signature);
        self.origin.exchange(request, body).await
    }
}

impl Origin {
    pub(crate) fn new(origin: &str) -> Result<Self, ConfigurationFault> {
        let base = base_of(origin)?;
        let mut pool = Client::builder(TokioExecutor::new());
        pool.pool_idle_timeout(IDLE_MAX);
        let connections = if base.starts_with("http:") {
            let mut connector = HttpConnector::new();
            connector.set_nodelay(true);
            Connections::Cleartext(pool.build(connector))
        } else {
            let tls = HttpsConnectorBuilder::new()
                .with_provider_and_native_roots(rustls::crypto::ring::default_provider())
                .map_err(|cause| ConfigurationFault::Certificates(cause.to_string()))?;
            Connections::Tls(pool.build(tls.https_only().enable_http1().enable_http2().build()))
        };
        Ok(Self { base, connections })
    }

    /// The URL of a path and query on this server.
    pub(crate) fn uri(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Sends a request with this body, JSON unless it is empty.
    pub(crate) async fn exchange(
        &self,
        request: http::request::Builder,
        body: Vec<u8>,
    ) -> Result<RawAnswer, Cause> {
        let request =
            if body.is_empty() { request } else { request.header(header::CONTENT_TYPE, "application/json") };
        let request =
            request.body(Full::new(Bytes::from(body))).map_err(|cause| Cause::Transport(chain(&cause)))?;
        let exchange = match &self.connections {
            Connections::Cleartext(client) => client.request(request),
            Connections::Tls(client) => client.request(request),
        };
        whole(exchange.await.map_err(|cause| Cause::Transport(chain(&cause)))?).await
    }
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Origin").field("base", &self.base).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct SocketTransport {
    path: PathBuf,
}

impl SocketTransport {
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) async fn post(&self, body: Vec<u8>) -> Result<RawAnswer, Cause> {
        let failed = |cause: &(dyn Error + 'static)| Cause::Transport(chain(cause));
        let stream = UnixStream::connect(&self.path).await.map_err(|cause| failed(&cause))?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|cause| failed(&cause))?;
        // It ends with the exchange; what goes wrong shows there.
        tokio::spawn(connection);
        let request = Request::post(PATH)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|cause| failed(&cause))?;
        whole(sender.send_request(request).await.map_err(|cause| failed(&cause))?).await
    }
}

async fn whole(answer: http::Response<Incoming>) -> Result<RawAnswer, Cause> {
    let status = answer.status().as_u16();
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|cause| Cause::Transport(chain(&*cause)))?;
    Ok(RawAnswer { status, body: body.to_bytes().to_vec() })
}

/// Scheme and authority of an origin.
fn base_of(origin: &str) -> Result<String, ConfigurationFault> {
    let uri: Uri = origin.parse().map_err(|_| ConfigurationFault::Url)?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(ConfigurationFault::Url);
    };
    let bare = matches!(uri.path(), "" | "/") && uri.query().is_none() && !authority.as_str().contains('@');
    if !bare || !matches!(scheme, "http" | "https") {
        return Err(ConfigurationFault::Url);
    }
    if scheme == "http" && !is_this_machine(authority.host()) {
        return Err(ConfigurationFault::Cleartext);
    }
    Ok(format!("{scheme}://{authority}"))
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// An error and what lies beneath it, in one line.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins() {
        let table = [
            ("https://guard.example", Ok("https://guard.example")),
            ("https://guard.example:8787/", Ok("https://guard.example:8787")),
            ("http://127.0.0.1:8787", Ok("http://127.0.0.1:8787")),
            ("http://[::1]:8787", Ok("http://[::1]:8787")),
            ("http://localhost", Ok("http://localhost")),
            ("http://guard.example", Err(ConfigurationFault::Cleartext)),
            ("http://127.0.0.1.example", Err(ConfigurationFault::Cleartext)),
            ("http://192.0.2.7", Err(ConfigurationFault::Cleartext)),
            ("https://guard.example/v1", Err(ConfigurationFault::Url)),
            ("https://guard.example/?a=b", Err(ConfigurationFault::Url)),
            ("https://user@guard.example", Err(ConfigurationFault::Url)),
            ("ftp://guard.example", Err(ConfigurationFault::Url)),
            ("guard.example:8787", Err(ConfigurationFault::Url)),
            ("", Err(ConfigurationFault::Url)),
        ];
        for (origin, expected) in table {
            assert_eq!(base_of(origin), expected.map(str::to_owned), "{origin}");
        }
    }
}
