//! A client of the admin API, for the verbs that use it: where it is, the token, one request and its answer.

use std::{io, path::PathBuf, time::Duration};

use bytes::Bytes;
use clap::Args;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;
use tidegate_core::secret::Secret;
use zeroize::Zeroizing;

use super::{
    call::from_here,
    control::REACHING,
    token_file::{self, TokenFileError},
};
use crate::{
    admin::shapes::ErrorBody,
    config::{Ability, Credential, Loaded, Token},
    secrets::{self, SecretsError},
};

/// Where the admin API is, and who asks.
#[derive(Debug, Clone, Default, Args)]
pub struct ReachArgs {
    /// The admin API [default: admin.listen of the configuration]
    #[arg(long, global = true, value_name = "URL", help_heading = REACHING)]
    pub url: Option<String>,
    /// A file with a token of the admin API [default: one of admin.tokens, or the data directory's]
    #[arg(long, global = true, value_name = "FILE", help_heading = REACHING)]
    pub token_file: Option<PathBuf>,
    /// Print the server's answer as it came
    #[arg(long, global = true, help_heading = REACHING)]
    pub json: bool,
}

/// Why nothing was done, or nothing is known of it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The token's file.
    #[error(transparent)]
    TokenFile(#[from] TokenFileError),
    /// The data directory's secrets can't be read.
    #[error("reading the secrets of the data directory")]
    Secrets(#[from] SecretsError),
    /// No token anywhere.
    #[error("no token: run this where `tidegate serve` was started, or give --token-file")]
    NoToken,
    /// The URL.
    #[error("{0:?} is no URL of an admin API")]
    Url(String),
    /// A token over cleartext to another machine.
    #[error("a token is sent by https only, or by http to this machine")]
    Cleartext,
    /// No connection, or no answer in time.
    #[error("asking the admin API at {url}")]
    Unreachable {
        /// Where.
        url: String,
        /// Why.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server said no.
    #[error("{}", refusal_text(*.status, .body))]
    Refused {
        /// With which status.
        status: StatusCode,
        /// And why.
        body: Box<Refusal>,
    },
    /// What answered is no admin API, or another version's.
    #[error("what answered ({status}) is no admin API that this version knows")]
    Strange {
        /// With which status.
        status: StatusCode,
    },
    /// A file that was given.
    #[error("{0}")]
    Given(String),
    /// The output is gone.
    #[error("writing")]
    Output(#[from] io::Error),
}

/// What a refusal says.
#[derive(Debug)]
pub struct Refusal(ErrorBody);

/// An answer: as it came, and read.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) raw: Bytes,
}

/// A client of the admin API.
pub(super) struct Api {
    origin: String,
    token: Secret,
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// Far more than a replay takes.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The access log is the largest answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

impl Api {
    /// A client with the token that the arguments, the configuration or the data directory give.
    ///
    /// # Errors
    /// There is no token, or the URL is none.
    pub(super) fn new(reach: &ReachArgs, loaded: &Loaded) -> Result<Self, ApiError> {
        let origin = match &reach.url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => own_url(loaded),
        };
        if !crate::config::is_private_url(&origin) {
            return Err(ApiError::Cleartext);
        }
        let token = match &reach.token_file {
            Some(path) => token_file::read(path)?,
            None => known_token(loaded)?,
        };
        let connector = HttpsConnectorBuilder::new().with_native_roots().map_err(ApiError::Output)?;
        let connector = connector.https_or_http().enable_http1().build();
        let http = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { origin, token, http })
    }

    /// One call below `/api/v1`.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        if_match: Option<u64>,
        body: Option<&Value>,
    ) -> Result<Answered, ApiError> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}/api/v1{path}", self.origin))
            .body(Full::new(Bytes::from(body.map(Value::to_string).unwrap_or_default())))
            .map_err(|_| ApiError::Url(self.origin.clone()))?;
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let bearer = Zeroizing::new(format!("Bearer {}", self.token.expose()));
        let mut bearer = HeaderValue::from_str(&bearer).map_err(|_| ApiError::NoToken)?;
        bearer.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, bearer);
        if let Some(tag) = if_match.and_then(|version| HeaderValue::from_str(&format!("\"{version}\"")).ok())
        {
            headers.insert(header::IF_MATCH, tag);
        }
        let unreachable = |cause| ApiError::Unreachable { url: self.origin.clone(), cause };
        let asked = async {
            let answer = self.http.request(request).await.map_err(|error| unreachable(error.into()))?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(unreachable)?;
            Ok::<_, ApiError>((head.status, body.to_bytes()))
        };
        let (status, raw) =
            tokio::time::timeout(TIMEOUT, asked).await.map_err(|error| unreachable(error.into()))??;
        if status.is_success() {
            return Ok(Answered { raw });
        }
        let body = serde_json::from_slice(&raw).map_err(|_| ApiError::Strange { status })?;
        Err(ApiError::Refused { status, body: Box::new(Refusal(body)) })
    }

    pub(super) async fn get(&self, path: &str) -> Result<Answered, ApiError> {
        self.call(Method::GET, path, None, None).await
    }
}

impl Answered {
    /// # Errors
    /// It is something else.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        serde_json::from_slice(&self.raw).map_err(|_| ApiError::Strange { status: StatusCode::OK })
    }

    /// The answer as it came, on a line.
    pub(super) fn print(&self, out: &mut dyn io::Write) -> Result<(), ApiError> {
        out.write_all(&self.raw)?;
        writeln!(out)?;
        Ok(())
    }
}

fn refusal_text(status: StatusCode, body: &Refusal) -> String {
    let error = &body.0.error;
    let mut text = format!("refused: {} ({})", error.code, status.as_u16());
    if !error.message.is_empty() {
        text = format!("{text}: {}", error.message);
    }
    for fault in &error.faults {
        text = format!("{text}\n  {}: {}", fault.field, fault.message);
    }
    super::words::printable(&text)
}

fn own_url(loaded: &Loaded) -> String {
    let admin = &loaded.regardless().admin;
    let scheme = if admin.tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{}", from_here(admin.listen))
}

/// A token that the configuration tells in full, the one with the most abilities; else the data directory's.
fn known_token(loaded: &Loaded) -> Result<Secret, ApiError> {
    let configuration = loaded.regardless();
    let told = |token: &Token| match &token.credential {
        Credential::Token(secret) => Some((token.abilities.len(), secret.clone())),
        Credential::Sha256(_) => None,
    };
    let tokens = configuration.admin.tokens.iter().filter_map(told);
    if let Some((_, token)) = tokens.max_by_key(|(abilities, _)| (*abilities).min(Ability::ALL.len())) {
        return Ok(token);
    }
    let made = secrets::read(&configuration.store.path)?;
    made.map(|made| made.admin_token).ok_or(ApiError::NoToken)
}
