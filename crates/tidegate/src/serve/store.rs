//! The store that the configuration names.

use std::time::Duration;

use tidegate_rate_limit::{OpenError, OpenStore, StoreOptions, Url};
use tokio::runtime::Handle;

use crate::config::{Hidden, Store};

/// Opens it: one in this process with a driver on each of `runtimes`, any other with one driver here.
pub(super) async fn open(store: &Store, runtimes: &[Handle]) -> Result<OpenStore, OpenError> {
    OpenStore::open_on(&options(store), runtimes).await
}

/// Makes or upgrades the tables of a store that has some; says what was done.
///
/// # Errors
/// See [`OpenError`]; the tables are as they were.
pub async fn migrate(store: &Store) -> Result<String, OpenError> {
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
