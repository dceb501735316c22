//! The store on a real server, which the tests start themselves.
#![expect(clippy::print_stdout, reason = "figures to look at")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests; their helpers, too")]

mod contract;
mod failures;
mod isolation;
mod schema;
mod setup;
mod sharing;
mod tables;
mod tls;
mod watching;
