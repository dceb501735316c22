//! Alerts, from outside: the real binary, a store that is filled, and a receiver that behaves well or badly.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking and says why")]

#[path = "../support/mod.rs"]
mod support;

mod delivery;
mod raise;
mod receiver;
mod reload;
mod tls;
mod trouble;
