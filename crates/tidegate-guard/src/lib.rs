//! The guard store: commands over a limit store, all of a request in one update, and the HTTP service that
//! lets authenticated callers send them.
//!
//! [`Guard::run`] is the engine without HTTP; [`service::Service`] authenticates, bounds and answers;
//! [`server`] owns listeners and connections.

mod admission;
mod execute;
mod families;
mod guard;
mod metrics;
mod operation;
mod operator;
mod plan;
mod refusals;
pub mod server;
pub mod service;

pub use guard::{Guard, GuardOptions, REFUSALS_MAX, RETRY_MS, Refusal};
pub use metrics::{Ending, Metrics};
pub use operator::Operator;
