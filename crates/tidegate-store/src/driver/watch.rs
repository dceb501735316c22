//! The task that keeps the time: it answers calls past their deadline and says when to sweep.
//!
//! One timer serves all callers, and the backend, whatever it does, can't hold it up.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::shared::{Overdue, Shared};

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
    let next = match shared.answer_overdue(now) {
        Overdue::NoneWaits => now + shared.options.deadline,
        Overdue::NextAt(at) => at.min(now + shared.options.deadline),
        Overdue::LookAgain => now + PAUSE,
    };
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

/// How long to leave the worker with the batch in hand.
const PAUSE: Duration = Duration::from_millis(5);
