//! The HTTP calls of a player.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Method, Request, StatusCode, header};
use hyper_util::{
    client::legacy::{self, Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};
use thiserror::Error;

use crate::capability::Capability;

/// A player's view of the rendezvous.
#[derive(Clone)]
pub struct Api {
    client: Client<HttpConnector, Full<Bytes>>,
    url: String,
    token: String,
}

/// A call that was not done.
#[derive(Debug, Error)]
pub enum ApiError {
    /// The call can't be made: the URL or the token.
    #[error("making the request")]
    Request(#[from] hyper::http::Error),
    /// No answer.
    #[error("sending the request")]
    Send(#[from] legacy::Error),
    /// The answer broke off or is too long.
    #[error("reading the answer")]
    Answer(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Refused.
    #[error("the rendezvous answered {0}")]
    Refused(StatusCode),
    /// The answer is not what was agreed.
    #[error("the answer is not what is expected: {0}")]
    Shape(&'static str),
}

const ANSWER_BYTES_MAX: usize = 1 << 20;

impl Api {
    /// At `url`, as the holder of `token`.
    #[must_use]
    pub fn new(url: &str, token: &str) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { client, url: url.trim_end_matches('/').to_owned(), token: token.to_owned() }
    }

    /// Lists a game; its id.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn create(&self, name: &str) -> Result<String, ApiError> {
        let listing = self.call(Method::POST, "/v1/listings", Some(json!({ "name": name }))).await?;
        text(&listing, "id")
    }

    /// Takes a game off the list.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn delete(&self, listing: &str) -> Result<(), ApiError> {
        self.call(Method::DELETE, &format!("/v1/listings/{listing}"), None).await.map(drop)
    }

    /// The ids of the tenant's games.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn list(&self) -> Result<Vec<String>, ApiError> {
        let body = self.call(Method::GET, "/v1/listings", None).await?;
        array(&body, "listings")?.iter().map(|listing| text(listing, "id")).collect()
    }

    /// Starts an attempt to join a game; the joiner's capability.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn start_attempt(&self, listing: &str) -> Result<Capability, ApiError> {
        let path = format!("/v1/listings/{listing}/attempts");
        capability(&self.call(Method::POST, &path, None).await?)
    }

    /// The host's capabilities for the attempts at its game, oldest first.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn attempts(&self, listing: &str) -> Result<Vec<Capability>, ApiError> {
        let body = self.call(Method::GET, &format!("/v1/listings/{listing}/attempts"), None).await?;
        array(&body, "attempts")?.iter().map(capability).collect()
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, ApiError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::from(body.map(|body| body.to_string()).unwrap_or_default()))?;
        let answer = self.client.request(request).await?;
        let status = answer.status();
        if !status.is_success() {
            return Err(ApiError::Refused(status));
        }
        let body =
            Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(ApiError::Answer)?;
        let body = body.to_bytes();
        if body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&body).map_err(|_| ApiError::Shape("it is not JSON"))
    }
}

fn array<'a>(body: &'a Value, name: &str) -> Result<&'a [Value], ApiError> {
    body[name].as_array().map(Vec::as_slice).ok_or(ApiError::Shape("a list is missing"))
}

fn text(body: &Value, name: &str) -> Result<String, ApiError> {
    body[name].as_str().map(str::to_owned).ok_or(ApiError::Shape("a text is missing"))
}

fn capability(body: &Value) -> Result<Capability, ApiError> {
    Capability::parse(&text(body, "capability")?).map_err(|_| ApiError::Shape("a capability is none"))
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("url", &self.url).finish_non_exhaustive()
    }
}
