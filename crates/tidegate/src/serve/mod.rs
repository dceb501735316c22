//! `tidegate serve`: from a configuration to running listeners, and back down in order.

mod banner;
mod guard;
mod handover;
mod ingress;
mod metrics;
mod signals;
mod store;
mod threads;

pub use store::migrate;
pub use tidegate_rate_limit::OpenError as StoreError;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use handover::{Offer, Sockets};
use prometheus_client::registry::Registry;
use signals::Signals;
use store::Opened;
use thiserror::Error;
use threads::Threads;
use tidegate_guard::{
    Metrics,
    server::{self, Connections, ServerOptions, Shutdown, TlsError, Workers},
    service::{Service, ServiceOptions},
};
use tidegate_ingress::proxy::Backend;
use tidegate_rate_limit::OpenStore;
use tokio::{
    net::{TcpListener, UnixListener},
    runtime::{Builder, Handle},
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    admin::{self, Admin},
    alerts::{Target, Webhook},
    config::{self, Configuration, Loaded, Sources},
    log::LevelHandle,
    secrets::{self, DataSecrets, SecretsError},
    start::{self, Prepared},
};

/// Why nothing is served. Everything that was opened is closed again.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The data directory's secrets.
    #[error("reading or making the secrets of the data directory")]
    Secrets(#[from] SecretsError),
    /// The store.
    #[error("opening the store")]
    Store(#[from] StoreError),
    /// A listener.
    #[error("listening on {address} ({key})")]
    Listen {
        /// The key that names it.
        key: &'static str,
        /// Where.
        address: String,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// The tokens that were made.
    #[error("reading the tokens of the data directory")]
    Tokens(#[source] io::Error),
    /// TLS.
    #[error("offering TLS on {key}")]
    Tls {
        /// The key that names the listener.
        key: &'static str,
        /// Why not.
        #[source]
        cause: TlsError,
    },
    /// The sockets of a running process.
    #[error("taking over from the process at {path}")]
    TakeOver {
        /// Where it hands over.
        path: String,
        /// Why it does not.
        #[source]
        cause: io::Error,
    },
    /// The runtime or its signals.
    #[error("starting the runtime")]
    Runtime(#[source] io::Error),
}

/// Serves until a signal ends it, then answers what was accepted. `sources` gives the configuration anew when
/// a reload is asked for. With `take_over` it takes the listening sockets of the process that serves from the
/// same data directory, and that one ends.
///
/// # Errors
/// Something can't be opened. Nothing was served then.
pub fn serve(
    prepared: Prepared,
    sources: impl Fn() -> Sources + Send + 'static,
    take_over: bool,
    out: &mut dyn io::Write,
) -> Result<(), ServeError> {
    let threads = Threads::start().map_err(ServeError::Runtime)?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(ServeError::Runtime)?;
    let served = runtime.block_on(async {
        // Before anybody can see that there is a process: a signal must not find it without.
        let mut signals = Signals::listen()?;
        let starting = Instance::start(prepared, threads.handles(), take_over);
        let (mut instance, banner) = tokio::select! {
            started = starting => started?,
            () = signals.end.come() => return Ok(()),
        };
        // Whoever reads it may have gone; the server stays.
        let _ = out.write_all(banner.as_bytes()).and_then(|()| out.flush());
        instance.run(signals, sources).await;
        instance.stop().await;
        Ok(())
    });
    threads.end();
    // Looking up the name of the webhook's receiver may hang in the system; nobody waits for it any more.
    runtime.shutdown_background();
    served
}

/// What runs.
struct Instance {
    loaded: Loaded,
    service: Arc<Service>,
    store: OpenStore,
    metrics: Arc<Metrics>,
    secrets: Option<DataSecrets>,
    admin: Arc<Admin>,
    ingress: ingress::Ingress,
    level: LevelHandle,
    webhook: Webhook,
    socket: Option<PathBuf>,
    workers: Workers,
    shutdown: watch::Sender<bool>,
    listeners: JoinSet<()>,
    /// Another process has taken the listening sockets.
    handed_over: mpsc::Receiver<()>,
    /// Offers them.
    offering: JoinSet<()>,
}

impl Instance {
    async fn start(
        prepared: Prepared,
        runtimes: Vec<Handle>,
        take_over: bool,
    ) -> Result<(Self, String), ServeError> {
        let Prepared { loaded, configuration, level, alerts } = prepared;
        let serves_apps = configuration.apps.iter().any(|app| !matches!(app.backend, Backend::Demo));
        let (secrets, first_start) = match data_secrets(&configuration) {
            Ok(Some((secrets, made))) => (Some(secrets), made),
            Ok(None) => (None, false),
            Err(error) if serves_apps => {
                let fault = start::chain(&error);
                tracing::error!(kind = "guard-misconfigured", fault, "there are no secrets; apps are served");
                (None, false)
            }
            Err(error) => return Err(error.into()),
        };
        // Before the store: an address that is taken shall not cost a recovery.
        let listener = &configuration.listener;
        let directory = configuration.store.path.as_path();
        let mut sockets = if take_over { Sockets::take_over(directory)? } else { Sockets::default() };
        let guard_tcp = sockets.listen("guard.listen", listener.listen).await?;
        let admin_tcp = sockets.listen("admin.listen", configuration.admin.listen).await?;
        let tls = listener.tls.as_ref().map(|tls| server::acceptor(&tls.cert, &tls.key)).transpose();
        let tls = tls.map_err(|cause| ServeError::Tls { key: "guard.listen", cause })?;
        let admin_tls = configuration.admin.tls.as_ref();
        let admin_tls = admin_tls.map(|tls| server::acceptor(&tls.cert, &tls.key)).transpose();
        let admin_tls = admin_tls.map_err(|cause| ServeError::Tls { key: "admin.listen", cause })?;
        let ingress = ingress::Bound::bind(&configuration, &mut sockets).await?;
        // From here on the other process ends, whatever becomes of this one.
        sockets.confirm()?;

        let mut registry = Registry::default();
        let metrics = Arc::new(Metrics::register(&mut registry));
        let Opened { store, late } = store::open(&configuration, &runtimes, take_over, serves_apps).await?;
        metrics::register_store(&mut registry, &store);
        alerts.register(&mut registry);

        let (shutdown, workers) = (watch::Sender::new(false), Workers::new(runtimes));
        let mut listeners = JoinSet::new();
        let (mut offer, handed_over) = Offer::new();
        offer.add("guard.listen", &guard_tcp);
        offer.add("admin.listen", &admin_tcp);
        ingress.offer(&mut offer);
        let around = ingress::Surroundings {
            store: &store,
            registry: &mut registry,
            workers: &workers,
            shutdown: &shutdown,
            listeners: &mut listeners,
        };
        let ingress = ingress::Ingress::start(ingress, &configuration, around).await;
        if let Some(late) = late {
            listeners.spawn(late.keep_opening(ingress.defense.clone(), shutdown.subscribe()));
        }

        let face = guard::face(&loaded, secrets.as_ref(), &store, &metrics);
        let options = ServiceOptions {
            body_timeout: Duration::from_millis(listener.body_timeout_ms),
            failures_per_second: u32::try_from(listener.auth_failures_per_second).unwrap_or(u32::MAX),
        };
        let service = Arc::new(Service::new(face, options, Arc::clone(&metrics)));
        let admin = Arc::new(
            Admin::new(admin::Parts {
                registry,
                configuration: &configuration,
                secrets: secrets.as_ref(),
                data_directory: secrets.is_some().then_some(configuration.store.path.as_path()),
                service: Arc::clone(&service),
                defense: Some(ingress.defense.clone()),
                is_tls: admin_tls.is_some(),
                shutdown: shutdown.subscribe(),
            })
            .map_err(ServeError::Tokens)?,
        );
        let code = if first_start { admin.first_code() } else { None };

        let secrets_directory = secrets.is_some().then(|| configuration.store.path.clone());
        let mut instance = Self {
            loaded,
            service,
            store,
            metrics,
            secrets,
            admin,
            ingress,
            level,
            webhook: alerts.attach(Target::configured(&configuration.admin)),
            socket: listener.socket.clone(),
            workers,
            shutdown,
            listeners,
            handed_over,
            offering: offering(offer, secrets_directory),
        };
        let socket =
            instance.socket.as_deref().map(|path| listen_socket("guard.socket", path)).transpose()?;
        let addresses = banner::Addresses {
            guard: guard_tcp.local_addr().unwrap_or(listener.listen),
            apps: instance.ingress.places(),
            admin: admin_tcp.local_addr().unwrap_or(configuration.admin.listen),
        };
        instance.spawn_listeners(&configuration, guard_tcp, tls, socket, admin_tcp, admin_tls);
        Ok((instance, banner::text(&configuration, &addresses, first_start, code.as_ref())))
    }

    fn spawn_listeners(
        &mut self,
        configuration: &Configuration,
        guard_tcp: TcpListener,
        tls: Option<tokio_rustls::TlsAcceptor>,
        socket: Option<UnixListener>,
        admin_tcp: TcpListener,
        admin_tls: Option<tokio_rustls::TlsAcceptor>,
    ) {
        let listener = &configuration.listener;
        let options = ServerOptions {
            connections_max: usize::try_from(listener.max_connections).unwrap_or(usize::MAX >> 4),
            head_timeout: Duration::from_millis(listener.header_timeout_ms),
            shutdown_timeout: Duration::from_millis(listener.shutdown_timeout_ms),
        };
        let connections = Connections::new(options.connections_max);
        let service = Arc::clone(&self.service);
        let told: Shutdown = self.shutdown.subscribe();
        let workers = self.workers.clone();
        let serve =
            server::serve_tcp(guard_tcp, tls, service, options, connections.clone(), workers.clone(), told);
        self.listeners.spawn(serve);
        if let Some(socket) = socket {
            let (service, told) = (Arc::clone(&self.service), self.shutdown.subscribe());
            let serve = server::serve_unix(socket, service, options, connections, workers, told);
            self.listeners.spawn(serve);
        }
        let timeouts =
            admin::listener::Timeouts { head: options.head_timeout, shutdown: options.shutdown_timeout };
        let refused = self.metrics.connections_refused.clone();
        let told = self.shutdown.subscribe();
        let serve =
            admin::listener::serve(admin_tcp, admin_tls, self.admin.router(), timeouts, refused, told);
        self.listeners.spawn(serve);
    }

    /// Until a signal ends it.
    async fn run(&mut self, mut signals: Signals, sources: impl Fn() -> Sources) {
        loop {
            tokio::select! {
                () = signals.end.come() => return,
                Some(()) = self.handed_over.recv() => return,
                _ = signals.hang_up.recv() => self.reload(&sources()),
            }
        }
    }

    /// Takes over what can change without a restart. A faulty configuration changes nothing.
    fn reload(&mut self, sources: &Sources) {
        let new = config::load(sources);
        let shared = self.secrets.as_ref().and_then(|made| config::shared_with_made(&new, made));
        let compared = shared.map_or_else(|| config::compare(&self.loaded, &new), |fault| Err(vec![fault]));
        let change = match compared {
            Ok(change) => change,
            Err(faults) => {
                for fault in faults {
                    tracing::error!(kind = "reload-refused", %fault, "the configuration in force stays");
                }
                return;
            }
        };
        let configuration = new.regardless();
        if let Err(error) = self.level.change(&configuration.log.level) {
            tracing::error!(kind = "reload-refused", %error, "the log level stays");
        }
        self.service.replace(guard::face(&new, self.secrets.as_ref(), &self.store, &self.metrics));
        self.admin.reload(configuration, self.secrets.as_ref());
        self.ingress.reload(configuration);
        if change.applied.iter().any(|key| key.starts_with("admin.webhook_")) {
            self.webhook.replace(Target::configured(&configuration.admin));
        }
        let (applied, waiting) = (change.applied.join(", "), change.waiting.join(", "));
        tracing::info!(kind = "reloaded", applied, waiting_for_a_restart = waiting, "configuration reloaded");
        self.loaded = new;
    }

    /// Stops accepting, answers what was accepted, then closes the store and delivers the last alerts.
    async fn stop(mut self) {
        tracing::info!(kind = "stopping", "answering what was accepted");
        // What is offered listens too: a connection that nobody accepts must be refused, not left waiting.
        self.offering.shutdown().await;
        // An error means that every listener has ended already.
        let _ = self.shutdown.send(true);
        while self.listeners.join_next().await.is_some() {}
        if let Some(socket) = &self.socket {
            let _ = std::fs::remove_file(socket);
        }
        self.store.shutdown().await;
        self.webhook.finish().await;
        tracing::info!(kind = "stopped", "good bye");
    }
}

/// The secrets of the data directory, made if they are not there; none where the configuration gives all.
fn data_secrets(configuration: &Configuration) -> Result<Option<(DataSecrets, bool)>, SecretsError> {
    let rules = configuration.guard.as_ref().ok();
    let all_given = rules.is_some_and(|rules| !rules.secrets.is_empty() && rules.operator_token.is_some())
        && !configuration.admin.tokens.is_empty();
    if all_given && configuration.store.kind == config::StoreKind::Memory {
        return Ok(None);
    }
    secrets::read_or_make(&configuration.store.path).map(Some)
}

/// Offers the sockets in the data directory, if there is one.
fn offering(offer: Offer, directory: Option<PathBuf>) -> JoinSet<()> {
    let mut offering = JoinSet::new();
    let Some(directory) = directory else { return offering };
    let path = handover::path_in(&directory);
    // What stands there is of the process that was taken over, or of one that was killed.
    let _ = std::fs::remove_file(&path);
    match listen_socket("the hand-over", &path) {
        Ok(socket) => drop(offering.spawn(offer.serve(socket))),
        Err(error) => tracing::warn!(kind = "handover-failing", %error, "no other process can take over"),
    }
    offering
}

/// Binds the socket with mode 0600, taking the place of one that nobody listens on any more.
fn listen_socket(key: &'static str, path: &Path) -> Result<UnixListener, ServeError> {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};

    let failed = |cause| ServeError::Listen { key, address: path.display().to_string(), cause };
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path).map_err(failed)?;
    }
    // The socket exists from bind on: nobody else may open it in between, so it is made under a name of its
    // own, closed to others, and moved into place.
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    if path.exists() {
        return Err(failed(io::ErrorKind::AddrInUse.into()));
    }
    let listener = UnixListener::bind(&fresh).map_err(failed)?;
    let moved = std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| std::fs::rename(&fresh, path));
    if moved.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    moved.map_err(failed)?;
    Ok(listener)
}
