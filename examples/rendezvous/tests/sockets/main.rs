//! The service on real sockets: what is answered, and everything that is not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests; their helpers, too")]

mod flood;
mod http;
mod rig;
mod silence;
#[path = "../support/mod.rs"]
mod support;
