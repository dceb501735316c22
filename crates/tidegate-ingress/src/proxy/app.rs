//! An app: what the configuration says of it, and what it keeps over a reload.

use std::{path::PathBuf, sync::Arc};

use tower_http::services::ServeDir;

use super::{
    files,
    shield::{InWorkCount, Shield},
    upstream::{UpstreamAddress, Upstreams},
};
use crate::defense::AppId;

/// An app behind the proxy.
#[derive(Debug, Clone)]
pub struct App {
    /// Its name.
    pub name: String,
    /// Its hosts: exact names, `*.` and a name for everything below it, or `*` for every host that no other app has.
    pub domains: Vec<String>,
    /// What answers.
    pub backend: Backend,
    /// A stopped app answers 503.
    pub stopped: bool,
    /// How much it takes at once.
    pub shield: Shield,
    /// Whether paths pass that different programs may read differently: an escaped slash, say.
    pub allow_ambiguous_paths: bool,
}

/// What answers for an app.
#[derive(Debug, Clone)]
pub enum Backend {
    /// Servers, in turn.
    Upstreams(Vec<UpstreamAddress>),
    /// The files of a directory.
    Root(PathBuf),
    /// A built-in page, and an echo of what is asked for anywhere else.
    Demo,
}

/// An app as it is served.
#[derive(Debug)]
pub(super) struct AppState {
    name: String,
    pub(super) id: Option<AppId>,
    pub(super) server: Server,
    pub(super) stopped: bool,
    pub(super) shield: Shield,
    pub(super) in_work: InWorkCount,
    pub(super) allow_ambiguous_paths: bool,
}

#[derive(Debug)]
pub(super) enum Server {
    Upstreams(Arc<Upstreams>),
    Files(ServeDir),
    Demo,
}

impl AppState {
    /// The app, going on with the connections and the requests in work of `before`.
    pub(super) fn new(app: &App, id: Option<AppId>, before: Option<&Self>, workers: usize) -> Self {
        let upstreams_before = match before.map(|before| &before.server) {
            Some(Server::Upstreams(upstreams)) => Some(&**upstreams),
            _ => None,
        };
        let server = match &app.backend {
            Backend::Upstreams(addresses) => {
                let upstreams = Upstreams::new(addresses.clone(), upstreams_before, workers);
                Server::Upstreams(Arc::new(upstreams))
            }
            Backend::Root(root) => Server::Files(files::of(root)),
            Backend::Demo => Server::Demo,
        };
        Self {
            name: app.name.clone(),
            id,
            server,
            stopped: app.stopped,
            shield: app.shield,
            in_work: before.map(|before| before.in_work.clone()).unwrap_or_default(),
            allow_ambiguous_paths: app.allow_ambiguous_paths,
        }
    }

    #[cfg(test)]
    pub(super) fn named(name: &str) -> Self {
        let app = App {
            name: name.to_owned(),
            domains: Vec::new(),
            backend: Backend::Demo,
            stopped: false,
            shield: Shield { max_concurrency: 1, max_body_bytes: 1 },
            allow_ambiguous_paths: false,
        };
        Self::new(&app, None, None, 1)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}
