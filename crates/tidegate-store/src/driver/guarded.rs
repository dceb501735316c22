//! Code of others that may panic: it must not take the driver with it.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

use crate::BackendError;

/// Waits for `work` of the backend; a panic in it is its failure.
pub(super) async fn guarded<T>(
    doing: &str,
    work: impl Future<Output = Result<T, BackendError>>,
) -> Result<T, BackendError> {
    let mut work = pin!(work);
    poll_fn(|context| {
        catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))).unwrap_or_else(|_| {
            Poll::Ready(Err(BackendError { doing: format!("{doing}, the backend panicked"), cause: None }))
        })
    })
    .await
}

/// Drops what callers made, whatever their `drop` does.
pub(super) fn discard<T>(made: impl IntoIterator<Item = T>) {
    for made in made {
        // The panic has been reported by the panic hook; there is nothing else to do about it.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(made)));
    }
}
