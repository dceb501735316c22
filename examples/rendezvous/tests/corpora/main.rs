//! Arbitrary input from recorded seeds: the same in every run.

#![allow(clippy::unwrap_used, reason = "tests; their helpers, too")]

mod envelopes;
mod requests;
#[path = "../support/mod.rs"]
mod support;
mod transitions;
