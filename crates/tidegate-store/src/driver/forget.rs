//! Removing everything that belongs together: the backend says what there is, ordinary updates remove it.

use std::any::Any;

use super::{Driver, guarded::guarded, log::chain};
use crate::{Backend, Job, Scope, StoreError, Unavailable, View};

/// Rows of one update.
const KEYS_AT_ONCE: usize = 256;

/// Looks over all rows until one finds nothing: a row that was written meanwhile may have moved to where the
/// look had been. Rows that come all the time don't keep this going.
const PASSES_MAX: usize = 3;

/// Removes every row of `scope`; answers how many.
pub(super) async fn forget<B: Backend>(driver: &Driver<B>, scope: Scope) -> Result<u64, StoreError> {
    let shared = &driver.0.shared;
    let scope = shared.secret.as_ref().map_or(scope, |secret| secret.scope(scope));
    let mut removed = 0;
    let mut passes_left = PASSES_MAX;
    while passes_left > 0 {
        let found = guarded("looking for the rows to forget", shared.backend.keys_in(scope, KEYS_AT_ONCE));
        let keys = match tokio::time::timeout(shared.options.deadline, found).await {
            Ok(Ok(keys)) => keys,
            Ok(Err(error)) => {
                let (store, error) = (shared.options.name, chain(&error));
                tracing::error!(
                    kind = "limit-store-failing",
                    store,
                    error,
                    "the limit store's backend failed"
                );
                return Err(Unavailable::Backend.into());
            }
            Err(_elapsed) => return Err(Unavailable::Deadline.into()),
        };
        if keys.is_empty() {
            break;
        }
        passes_left -= usize::from(keys.len() < KEYS_AT_ONCE);
        let job: Box<dyn Any> =
            driver.run_hashed(keys.into(), Box::new(Removal::default())).await?.into_any();
        removed += job.downcast::<Removal>().map_or(0, |removal| removal.rows);
    }
    Ok(removed)
}

/// Removes all rows of its update.
#[derive(Debug, Default)]
struct Removal {
    rows: u64,
}

impl Job for Removal {
    fn apply(&mut self, view: &mut View<'_>) {
        self.rows = 0;
        for index in 0..view.keys() {
            self.rows += u64::from(view.get(index).is_some());
            view.delete(index);
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
