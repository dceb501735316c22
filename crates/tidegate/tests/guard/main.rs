//! The guard store, from outside: the real binary, its listeners and its protocol.
//!
//! Every line of the protocol's page has a test here; the engine's own rules are tested in process.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "helpers of tests are tests, and take what json! has just made"
)]

#[path = "../support/mod.rs"]
mod support;

mod admin;
mod admission;
mod answers;
mod bodies;
mod bounds;
mod budgets;
mod control;
mod crowded;
mod digests;
mod documents;
mod flood;
mod framing;
mod http2;
mod mending;
mod misconfigured;
mod other_stores;
mod parsing;
mod quiet_logs;
mod quotas;
mod races;
mod receipts;
mod replay;
mod reserve;
mod rotation;
mod shutdown;
mod signature;
mod slow;
mod standing;
mod state;
mod statuses;
mod stopping;
mod streams;
mod tls;
mod transports;
mod unix_socket;
