//! What the end-to-end tests share: the real binary in a folder of its own, and clients that send exactly
//! what a test says.
//!
//! No port is fixed (the server binds port 0 and its banner says which one it got), nothing waits without a
//! deadline, and nothing sleeps to let something happen: what takes its time is asked again until it is there.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::panic, reason = "helpers of tests are tests")]
#![allow(clippy::needless_pass_by_value, reason = "a command is written where it is used, by json!")]

pub(crate) mod message;
pub(crate) mod operator;
pub(crate) mod server;
pub(crate) mod spending;
pub(crate) mod state;
pub(crate) mod stores;
pub(crate) mod wire;

use std::time::Duration;

use tokio::time::Instant;

/// How long anything may take before a test gives up: far more than a busy machine needs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Asks until there is an answer.
///
/// # Panics
/// There was none within [`DEADLINE`].
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        pause();
    }
}

/// The clock of those tests that measure how long the server takes.
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "between two questions to another process")]
fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}
