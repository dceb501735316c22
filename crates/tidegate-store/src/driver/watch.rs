//! The task that keeps the time: it answers calls past their deadline and says when to sweep.
//!
//! One timer serves all callers, and neither the backend nor an update, whatever it does, holds it up.

use std::sync::Arc;

use tokio::time::Instant;

use super::shared::Shared;

/// Runs until the worker has ended.
pub(super) async fn watch<B>(shared: Arc<Shared<B>>) {
    while let Some(next) = look(&shared, Instant::now()) {
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = shared.rouse.notified() => {}
        }
    }
}

/// Does what is due at `now`; answers when to look again.
fn look<B>(shared: &Shared<B>, now: Instant) -> Option<Instant> {
    // A call that comes after this look has its deadline after the next.
    let next = shared.answer_overdue(now).unwrap_or(now + shared.options.deadline);
    let mut line = shared.line.lock();
    if line.ended {
        return None;
    }
    match line.sweep_at {
        Some(at) if at <= now => {
            line.sweep_at = None;
            line.sweep_due = true;
            if std::mem::take(&mut line.asleep) {
                shared.work.notify_one();
            }
            Some(next)
        }
        Some(at) => Some(at.min(next)),
        None => Some(next),
    }
}
