//! The defense as the proxy, the API and other proxies use it.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking and says why"
)]

mod authz;
mod caddy;
mod fail_open;
mod judging;
mod nginx;
mod policies;
mod replay;
mod support;
