//! The admin listener: metrics, and whether the process is well.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use hyper::body::Incoming;
use parking_lot::RwLock;
use prometheus_client::{encoding::text, registry::Registry};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tidegate_guard::{
    Metrics,
    server::Handler,
    service::{Answer, Peer, Service, bearer_token},
};
use tokio::time::Instant;

use crate::{
    config::{Ability, Configuration, Credential},
    secrets::DataSecrets,
};

pub(super) struct Admin {
    registry: Registry,
    access: RwLock<Access>,
    service: Arc<Service>,
    metrics: Arc<Metrics>,
}

/// Who may see what.
struct Access {
    tokens: Vec<KnownToken>,
    metrics_public: bool,
}

/// A token as it is compared: hashed, so that every comparison takes the same time.
struct KnownToken {
    sha256: [u8; 32],
    abilities: Vec<Ability>,
}

impl Admin {
    pub(super) fn new(
        registry: Registry,
        configuration: &Configuration,
        secrets: Option<&DataSecrets>,
        service: Arc<Service>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let access = RwLock::new(Access::of(configuration, secrets));
        Self { registry, access, service, metrics }
    }

    pub(super) fn replace_tokens(&self, configuration: &Configuration, secrets: Option<&DataSecrets>) {
        *self.access.write() = Access::of(configuration, secrets);
    }

    fn metrics_page(&self, headers: &HeaderMap) -> Answer {
        if let Err((status, why)) = self.access.read().allows(headers, Ability::Read) {
            return Answer::text(status, why);
        }
        let mut body = String::new();
        if text::encode(&mut body, &self.registry).is_err() {
            return Answer::text(StatusCode::INTERNAL_SERVER_ERROR, "the metrics can't be written\n");
        }
        let mut answer = Answer::text(StatusCode::OK, body);
        answer.response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(METRICS_TYPE));
        answer
    }
}

impl Handler for Admin {
    async fn answer(&self, request: Request<Incoming>, _peer: Peer, _began: Instant) -> Answer {
        match (request.uri().path(), request.method()) {
            ("/metrics", &Method::GET | &Method::HEAD) => self.metrics_page(request.headers()),
            ("/healthz", &Method::GET | &Method::HEAD) => Answer::text(StatusCode::OK, "ok\n"),
            ("/readyz", &Method::GET | &Method::HEAD) => self.service.ready().await,
            ("/metrics" | "/healthz" | "/readyz", _) => {
                let mut answer = Answer::text(StatusCode::METHOD_NOT_ALLOWED, "use GET or HEAD\n");
                answer.response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
                answer
            }
            _ => Answer::text(StatusCode::NOT_FOUND, "there is nothing here\n"),
        }
    }

    fn refused_connection(&self) {
        self.metrics.connections_refused.inc();
    }
}

const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Access {
    fn of(configuration: &Configuration, secrets: Option<&DataSecrets>) -> Self {
        let configured = configuration.admin.tokens.iter().map(|token| KnownToken {
            sha256: match &token.credential {
                Credential::Token(token) => Sha256::digest(token.expose()).into(),
                Credential::Sha256(sha256) => *sha256,
            },
            abilities: token.abilities.clone(),
        });
        let made = secrets.map(|secrets| KnownToken {
            sha256: Sha256::digest(secrets.admin_token.expose()).into(),
            abilities: Ability::ALL.to_vec(),
        });
        let mut tokens: Vec<KnownToken> = configured.collect();
        if tokens.is_empty() {
            tokens.extend(made);
        }
        Self { tokens, metrics_public: configuration.admin.metrics_public }
    }

    /// Whether the request carries a token with this ability. For metrics, none is needed where they are
    /// public.
    fn allows(&self, headers: &HeaderMap, ability: Ability) -> Result<(), (StatusCode, String)> {
        if self.metrics_public && ability == Ability::Read {
            return Ok(());
        }
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| bearer_token(value.as_bytes()));
        let given: [u8; 32] = Sha256::digest(bearer.unwrap_or_default()).into();
        let known = self.tokens.iter().rfind(|token| bool::from(token.sha256.ct_eq(&given)));
        match known {
            _ if bearer.is_none() => {
                Err((StatusCode::UNAUTHORIZED, "a bearer token is required\n".to_owned()))
            }
            None => Err((StatusCode::UNAUTHORIZED, "the bearer token is not known\n".to_owned())),
            Some(token) if token.abilities.contains(&ability) => Ok(()),
            Some(_) => {
                Err((StatusCode::FORBIDDEN, format!("the token lacks the ability `{}`\n", ability.name())))
            }
        }
    }
}
