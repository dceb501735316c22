//! The driver over a backend that does what the test says, on paused time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests; their helpers, too")]

mod batches;
mod bound;
mod conflicts;
mod deadlines;
mod logs;
mod model;
mod scripted;
mod settling;
mod stop;
mod sweeps;
