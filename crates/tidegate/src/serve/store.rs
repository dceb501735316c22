//! The store that the configuration names.

use std::{error::Error, time::Duration};

use tidegate_ingress::defense::Defense;
use tidegate_listen::{Shutdown, told};
use tidegate_rate_limit::{OpenError, OpenStore, Opening, StoreOptions, Url};
use tokio::{runtime::Handle, time};

use crate::{
    config::{Configuration, Hidden, Store, StoreKind},
    secrets,
    start::chain,
};

/// The store of a process: open, or one that is opened as soon as it can be.
pub(super) struct Opened {
    pub(super) store: OpenStore,
    pub(super) late: Option<LateStore>,
}

/// A store that could not be opened at the start.
pub(super) struct LateStore {
    opening: Opening,
    options: StoreOptions,
    runtimes: Vec<Handle>,
    fault: String,
}

/// The pause after the first attempt to open it; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// A damaged log is read to the damage each time, so it is not tried all the time.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// More than a process takes to close its store.
const CLOSING: Duration = Duration::from_secs(10);

/// Opens it: one in this process with a driver on each of `runtimes`, any other with one driver here. Where it
/// takes over, the other process still has it until its last answer.
///
/// # Errors
/// It can't be opened. Where there are apps to serve that is no error unless the configuration is at fault: they
/// are served while the store stays away.
pub(super) async fn open(
    configuration: &Configuration,
    runtimes: &[Handle],
    take_over: bool,
    serves_apps: bool,
) -> Result<Opened, OpenError> {
    let others = configuration.ingress.proxy.shutdown_timeout
        + Duration::from_millis(configuration.listener.shutdown_timeout_ms);
    let patience = if take_over { others + CLOSING } else { Duration::ZERO };
    let deadline = time::Instant::now() + patience;
    let options = options(&configuration.store);
    loop {
        match OpenStore::open_on(&options, runtimes).await {
            Ok(store) => return Ok(Opened { store, late: None }),
            Err(error) if error.is_in_use() && time::Instant::now() < deadline => {
                time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) if serves_apps && (error.may_pass() || take_over) => {
                let fault = chain(&error);
                tracing::error!(kind = "limit-store-failing", fault, "{SERVED_WITHOUT}");
                let (opening, runtimes) = (OpenStore::unopened(), runtimes.to_vec());
                let store = opening.store().clone();
                return Ok(Opened { store, late: Some(LateStore { opening, options, runtimes, fault }) });
            }
            Err(error) => return Err(error),
        }
    }
}

const SERVED_WITHOUT: &str =
    "the store can't be opened: apps are served without a check, and RPCs answered 503, until it can";

impl LateStore {
    /// Tries again until it is open or the process ends. The defense's status says why it is not.
    pub(super) async fn keep_opening(self, defense: Defense, mut shutdown: Shutdown) {
        tokio::select! {
            () = told(&mut shutdown) => {}
            () = self.open(&defense) => {
                tracing::info!(kind = "limit-store-open", "the store is open, and all is checked from now on");
            }
        }
    }

    async fn open(&self, defense: &Defense) {
        let mut pause = FIRST_PAUSE;
        let mut fault = self.fault.clone();
        loop {
            defense.note_store_fault(&fault);
            time::sleep(pause).await;
            match self.attempt().await {
                Ok(()) => return,
                Err(error) => fault = chain(&*error),
            }
            tracing::error!(kind = "limit-store-failing", fault, "{SERVED_WITHOUT}");
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// On a thread of its own: reading a log back takes its time.
    async fn attempt(&self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (opening, options, runtimes) =
            (self.opening.clone(), self.options.clone(), self.runtimes.clone());
        let here = Handle::current();
        let attempt = move || here.block_on(opening.open_on(&options, &runtimes));
        Ok(tokio::task::spawn_blocking(attempt).await??)
    }
}

/// Makes or upgrades the tables of a store that has some; says what was done. Tables in a file need the data directory,
/// which is made as a first start would make it.
///
/// # Errors
/// See [`OpenError`] and [`SecretsError`](crate::secrets::SecretsError); the tables are as they were.
pub async fn migrate(store: &Store) -> Result<String, Box<dyn Error>> {
    if store.kind == StoreKind::Sqlite {
        secrets::make_directory(&store.path)?;
    }
    let has_tables = tidegate_rate_limit::migrate(&options(store)).await?;
    Ok(if has_tables { "the tables are there, and of this version" } else { NO_TABLES }.to_owned())
}

const NO_TABLES: &str = "this store has no tables; there is nothing to migrate";

fn options(store: &Store) -> StoreOptions {
    StoreOptions {
        path: store.path.clone(),
        url: store.url.as_ref().map(|url| Url::from(Hidden::expose(url))),
        durability: store.durability,
        max_entries: store.max_entries,
        deadline: Duration::from_millis(store.deadline_ms),
        max_calls: usize::try_from(store.max_calls).unwrap_or(usize::MAX),
        secret: store.secret.clone(),
        ..StoreOptions::of(store.kind)
    }
}
