//! The Rust client and its ready-made limits, against the real binary: what each of them does while the guard
//! store is well, stopped, limited, slow, cut off or misconfigured; and that nothing is ever sent twice.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests")]

#[path = "../support/mod.rs"]
mod support;

mod attempts;
mod denials;
mod fail_modes;
mod late_answers;
mod limits;
mod proxy;
mod retries;
mod site;
mod vectors;
