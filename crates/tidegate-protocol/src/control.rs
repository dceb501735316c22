//! The operator's calls: what they ask for and what they answer.
//!
//! They carry a bearer token instead of a signature; see the protocol's page.

mod answers;
mod asks;
mod wire;

pub use answers::{Audit, AuditEntry, FamilyState, Fence, Forgotten, Reset, State};
pub use asks::{FairnessReset, Forget, Resume, Stop};
pub use tidegate_core::admission::{Action, Axis, Phase};

/// Puts up the fence.
pub const STOP_PATH: &str = "/control/stop";
/// Takes it down, and lets stopped families go on.
pub const RESUME_PATH: &str = "/control/resume";
/// Tells how everything stands.
pub const STATE_PATH: &str = "/control/state";
/// Clears quotas.
pub const FAIRNESS_RESET_PATH: &str = "/control/fairness/reset";
/// Removes rows.
pub const FORGET_PATH: &str = "/control/forget";
/// Tells what operators did.
pub const AUDIT_PATH: &str = "/control/audit";

/// Entries of one answer of [`AUDIT_PATH`], at most.
pub const AUDIT_LIMIT_MAX: usize = 1_000;
/// How many come where none is asked for.
pub const AUDIT_LIMIT_DEFAULT: usize = 100;

#[cfg(test)]
mod tests;
