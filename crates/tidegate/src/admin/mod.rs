//! The admin listener: the dashboard, the API under `/api/v1`, metrics, and whether the process is well.

mod access;
mod api;
mod apps;
pub(crate) mod listener;
mod sessions;
pub(crate) mod shapes;
mod tokens;
mod web;

use std::{collections::BTreeMap, io, path::Path, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::State,
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use parking_lot::RwLock;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use prometheus_client::{encoding::text, registry::Registry};
use tidegate_core::{admission::FamilyRules, secret::Secret};
use tidegate_guard::service::Service;
use tidegate_ingress::defense::Defense;
use tidegate_listen::Shutdown;
use tokio::{sync::Semaphore, time::Instant};

use self::{
    access::{Access, Denied},
    sessions::Sessions,
    tokens::StoredTokens,
};
use crate::{
    config::{Ability, Configuration},
    secrets::DataSecrets,
};

/// Pages that are kept up to date at once: a share of the connections, so that others get through.
const STREAMS_MAX: usize = 128;

/// What the admin listener serves.
pub(crate) struct Admin {
    registry: Registry,
    access: Access,
    sessions: Sessions,
    service: Arc<Service>,
    apps: apps::Apps,
    /// The guard's families as configured; none while that has faults.
    families: RwLock<BTreeMap<String, FamilyRules>>,
    streams: Arc<Semaphore>,
    is_tls: bool,
    shutdown: Shutdown,
}

/// What the admin listener is made of.
pub(crate) struct Parts<'a> {
    pub(crate) registry: Registry,
    pub(crate) configuration: &'a Configuration,
    pub(crate) secrets: Option<&'a DataSecrets>,
    pub(crate) data_directory: Option<&'a Path>,
    pub(crate) service: Arc<Service>,
    /// The abuse defense of this instance; none where no app is served.
    pub(crate) defense: Option<Defense>,
    pub(crate) is_tls: bool,
    pub(crate) shutdown: Shutdown,
}

impl Admin {
    /// # Errors
    /// The tokens of the data directory can't be read.
    pub(crate) fn new(parts: Parts<'_>) -> io::Result<Self> {
        let Parts { registry, configuration, secrets, data_directory, service, defense, is_tls, shutdown } =
            parts;
        let stored = StoredTokens::open(data_directory)?;
        Ok(Self {
            registry,
            access: Access::new(configuration, secrets, stored),
            sessions: Sessions::default(),
            service,
            apps: apps::Apps(defense),
            families: RwLock::new(families(configuration)),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            is_tls,
            shutdown,
        })
    }

    /// Takes over what a reload may change.
    pub(crate) fn reload(&self, configuration: &Configuration, secrets: Option<&DataSecrets>) {
        self.access.replace(configuration, secrets);
        *self.families.write() = families(configuration);
    }

    /// A code that signs somebody in once, with the token of the first start; none where that is not in use.
    pub(crate) fn first_code(&self) -> Option<Secret> {
        let token = self.access.first_token()?;
        self.sessions.make_code(token, Instant::now()).ok()
    }

    /// Everything that the listener answers.
    pub(crate) fn router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get(async || "ok\n"))
            .route("/readyz", get(ready))
            .nest("/api/v1", api::routes())
            .merge(web::routes())
            .fallback(async || (StatusCode::NOT_FOUND, "there is nothing here\n"))
            .layer(middleware::from_fn(api::as_documented))
            .with_state(Arc::clone(self))
    }
}

fn families(configuration: &Configuration) -> BTreeMap<String, FamilyRules> {
    configuration.guard.as_ref().map(|rules| rules.families.clone()).unwrap_or_default()
}

/// What a part of a path can't have in it.
const IN_A_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A name as a part of a path.
pub(crate) fn path_part(name: &str) -> String {
    utf8_percent_encode(name, IN_A_PATH).to_string()
}

async fn metrics(State(admin): State<Arc<Admin>>, headers: HeaderMap) -> Response {
    let allowed = || admin.access.bearer(&headers)?.needs(Ability::Read);
    if !admin.access.metrics_public()
        && let Err(denied) = allowed()
    {
        let unknown = |text: &'static str| {
            let mut answer = (StatusCode::UNAUTHORIZED, text).into_response();
            api::ask_for_bearer(&mut answer);
            answer
        };
        return match denied {
            Denied::NoToken => unknown("a bearer token is required\n"),
            Denied::UnknownToken => unknown("the bearer token is not known\n"),
            Denied::Lacks(ability) => {
                let text = format!("the token lacks the ability `{}`\n", ability.name());
                (StatusCode::FORBIDDEN, text).into_response()
            }
        };
    }
    if let Some(defense) = &admin.apps.0 {
        defense.measure();
    }
    let mut body = String::new();
    if text::encode(&mut body, &admin.registry).is_err() {
        return (StatusCode::INTERNAL_SERVER_ERROR, "the metrics can't be written\n").into_response();
    }
    ([(header::CONTENT_TYPE, HeaderValue::from_static(METRICS_TYPE))], body).into_response()
}

const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

async fn ready(State(admin): State<Arc<Admin>>) -> Response {
    admin.service.ready().await.response.map(Body::new)
}

#[cfg(test)]
mod tests;
