//! The guard store: commands over a limit store, all of a request in one update, and the HTTP service that
//! lets authenticated callers send them.
//!
//! [`Guard::run`] is the engine without HTTP; [`service::Service`] authenticates, bounds and answers;
//! [`server`] owns listeners and connections.

mod execute;
mod guard;
mod metrics;
mod operation;
mod plan;
pub mod server;
pub mod service;

pub use guard::{Guard, Refusal};
pub use metrics::{Ending, Metrics};
