//! The ingress: its listeners, the defense, and the proxy behind them.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use prometheus_client::{metrics::counter::Counter, registry::Registry};
use tidegate_ingress::{
    authz::{self, Authz, ListenerOptions},
    defense::{AppSetup, Defense, DefenseOptions},
    proxy::{self, Proxy, ProxyOptions},
};
use tidegate_listen::{CertificateFiles, CertifiedNames, Connections, Shutdown, Workers, told};
use tidegate_rate_limit::OpenStore;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

use super::{
    ServeError,
    handover::{Offer, Sockets},
};
use crate::config::{Configuration, Forwarded};

/// Listeners that are bound, but serve nothing yet.
pub(super) struct Bound {
    plain: TcpListener,
    tls: Option<(TcpListener, Arc<CertifiedNames>)>,
    authz: Option<TcpListener>,
}

/// The running ingress.
pub(super) struct Ingress {
    pub(super) defense: Defense,
    proxy: Arc<Proxy>,
    certificates: Option<Arc<CertifiedNames>>,
    address: SocketAddr,
    tls_address: Option<SocketAddr>,
    authz_address: Option<SocketAddr>,
}

/// What the listeners are served with.
pub(super) struct Surroundings<'a> {
    pub(super) store: &'a OpenStore,
    pub(super) registry: &'a mut Registry,
    pub(super) workers: &'a Workers,
    pub(super) shutdown: &'a watch::Sender<bool>,
    pub(super) listeners: &'a mut JoinSet<()>,
}

const LISTEN: &str = "ingress.listen";
const TLS_LISTEN: &str = "ingress.tls_listen";
const AUTHZ_LISTEN: &str = "ingress.authz_listen";
/// How often certificate files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);

impl Bound {
    /// Binds the configured addresses, or takes the sockets that listen there already.
    pub(super) async fn bind(
        configuration: &Configuration,
        sockets: &mut Sockets,
    ) -> Result<Self, ServeError> {
        let ingress = &configuration.ingress;
        let plain = sockets.listen(LISTEN, ingress.listen).await?;
        let tls = match ingress.tls_listen {
            Some(address) => {
                let names = CertifiedNames::read(certificate_files(configuration))
                    .map_err(|cause| ServeError::Tls { key: TLS_LISTEN, cause })?;
                Some((sockets.listen(TLS_LISTEN, address).await?, names))
            }
            None => None,
        };
        let authz = match ingress.authz_listen {
            Some(address) => Some(sockets.listen(AUTHZ_LISTEN, address).await?),
            None => None,
        };
        Ok(Self { plain, tls, authz })
    }

    /// Offers them to a process that takes over.
    pub(super) fn offer(&self, offer: &mut Offer) {
        offer.add(LISTEN, &self.plain);
        if let Some((listener, _)) = &self.tls {
            offer.add(TLS_LISTEN, listener);
        }
        if let Some(listener) = &self.authz {
            offer.add(AUTHZ_LISTEN, listener);
        }
    }
}

impl Ingress {
    /// Opens the defense and serves apps on the bound listeners.
    pub(super) async fn start(bound: Bound, configuration: &Configuration, around: Surroundings<'_>) -> Self {
        let (store, clock) = (around.store.limit_store(), around.store.clock());
        let defense = Defense::open(store, clock, defense_options(configuration)).await;
        defense.register_metrics(around.registry);
        #[cfg(debug_assertions)]
        panic_for_tests(&defense);
        let refused = Counter::<u64>::default();
        let help = "Connections to apps that were closed at once, since too many were open or one could not be accepted";
        around.registry.register("http_ingress_connections_refused", help, refused.clone());

        let options = configuration.ingress.proxy.clone();
        let workers = around.workers;
        let proxy = Proxy::new(&configuration.apps, defense.clone(), options, workers.runtimes().len());
        let local = |listener: &TcpListener| listener.local_addr().ok();
        let ingress = Self {
            address: local(&bound.plain).unwrap_or(configuration.ingress.listen),
            tls_address: bound.tls.as_ref().and_then(|(listener, _)| local(listener)),
            authz_address: bound.authz.as_ref().and_then(local),
            certificates: bound.tls.as_ref().map(|(_, names)| Arc::clone(names)),
            defense,
            proxy,
        };
        let connections_max = usize::try_from(configuration.ingress.max_connections).unwrap_or(usize::MAX);
        let connections = Connections::new(connections_max);
        let plain = (bound.plain, None);
        let tls = bound.tls.map(|(listener, names)| (listener, Some(names)));
        for (listener, names) in std::iter::once(plain).chain(tls) {
            let (proxy, told, refused) =
                (Arc::clone(&ingress.proxy), around.shutdown.subscribe(), refused.clone());
            let refused = move || {
                refused.inc();
            };
            let (connections, workers) = (connections.clone(), workers.clone());
            around.listeners.spawn(proxy::serve(listener, names, proxy, refused, connections, workers, told));
        }
        if let Some(listener) = bound.authz {
            let told = around.shutdown.subscribe();
            let refused = move || {
                refused.inc();
            };
            let asked = Arc::clone(&ingress.proxy);
            let authz = Authz::new(ingress.defense.clone(), move |host| asked.app_of_host(host));
            let options = authz_options(&configuration.ingress.proxy);
            let workers = workers.clone();
            around.listeners.spawn(authz::serve(
                listener,
                authz,
                options,
                refused,
                connections,
                workers,
                told,
            ));
        }
        ingress.spawn_upkeep(around.shutdown, around.listeners);
        ingress
    }

    /// Takes over what can change without a restart. Buckets, counters, connections and tunnels go on.
    pub(super) fn reload(&self, configuration: &Configuration) {
        self.defense.reconfigure(defense_options(configuration));
        self.proxy.reconfigure(&configuration.apps, configuration.ingress.proxy.clone());
        if let Some(certificates) = &self.certificates
            && let Err(error) = certificates.replace(certificate_files(configuration))
        {
            log_certificates(&error);
        }
    }

    /// Where apps are served, for people.
    pub(super) fn places(&self) -> String {
        let tls = self.tls_address.map(|address| format!(" and https://{address}")).unwrap_or_default();
        let authz = self
            .authz_address
            .map(|address| format!("\n  authz    http://{address}   GET /authz, ext_authz"));
        format!("http://{}{tls}{}", self.address, authz.unwrap_or_default())
    }

    fn spawn_upkeep(&self, shutdown: &watch::Sender<bool>, listeners: &mut JoinSet<()>) {
        listeners.spawn(Arc::clone(&self.proxy).run(shutdown.subscribe()));
        let (defense, mut ends) = (self.defense.clone(), shutdown.subscribe());
        listeners.spawn(async move { defense.run(told(&mut ends)).await });
        if let Some(certificates) = &self.certificates {
            listeners.spawn(watch_certificates(Arc::clone(certificates), shutdown.subscribe()));
        }
    }
}

/// Lets decisions about one path panic, where a test says so. It is not in a release build.
#[cfg(debug_assertions)]
#[expect(
    clippy::disallowed_methods,
    clippy::panic,
    reason = "for tests, which have no other way to break it"
)]
fn panic_for_tests(defense: &Defense) {
    let Ok(path) = std::env::var("TEST_TIDEGATE_DECISION_PANICS_AT") else { return };
    defense.interpose(move |facts| {
        if facts.path.as_bytes() == path.as_bytes() {
            panic!("the test asked for it");
        }
    });
}

/// Reads changed certificates anew, whoever renewed them.
async fn watch_certificates(certificates: Arc<CertifiedNames>, mut shutdown: Shutdown) {
    let mut every = tokio::time::interval(LOOK_EVERY);
    loop {
        tokio::select! {
            () = told(&mut shutdown) => return,
            _ = every.tick() => {}
        }
        match certificates.refresh() {
            Ok(true) => {
                tracing::info!(kind = "certificates-read", "the changed certificates are shown from now on");
            }
            Ok(false) => {}
            Err(error) => log_certificates(&error),
        }
    }
}

fn log_certificates(error: &tidegate_listen::TlsError) {
    tracing::error!(kind = "certificates-refused", %error, "the certificates in use stay");
}

const fn authz_options(options: &ProxyOptions) -> ListenerOptions {
    ListenerOptions {
        header_timeout: options.header_timeout,
        idle_timeout: options.idle_timeout,
        shutdown_timeout: options.shutdown_timeout,
        header_bytes_max: options.header_bytes_max,
        streams_max: options.streams_max,
    }
}

fn certificate_files(configuration: &Configuration) -> Vec<CertificateFiles> {
    let general = configuration.ingress.tls.iter().map(|tls| (Vec::new(), tls));
    let of_apps = configuration.app_tls.iter().map(|app| (app.domains.clone(), &app.tls));
    let files = general.chain(of_apps);
    files
        .map(|(names, tls)| CertificateFiles { names, chain: tls.cert.clone(), key: tls.key.clone() })
        .collect()
}

fn defense_options(configuration: &Configuration) -> DefenseOptions {
    let ingress = &configuration.ingress;
    let forwarded = match ingress.forwarded {
        Forwarded::Header(source) => source,
        Forwarded::ProxyProtocol => Default::default(),
    };
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let setup = |app: &proxy::App| AppSetup {
        name: app.name.clone(),
        routed: !app.domains.is_empty() && !app.stopped,
    };
    DefenseOptions {
        apps: configuration.apps.iter().map(setup).collect(),
        tracked_clients_max: count(ingress.max_tracked_clients),
        access_log_entries: count(ingress.access_log_entries),
        access_log_ms: ingress.access_log_minutes * 60_000,
        trusted: ingress.proxy.trusted.clone(),
        forwarded,
        firewall_allow: ingress.allow.clone(),
        firewall_deny: ingress.deny.clone(),
    }
}
