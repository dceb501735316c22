//! The `tidegate` binary's parts: configuration, command line, secrets of the data directory, logging, alerts.
//!
//! Nothing here decides about a request. It reads what people wrote, names every fault in it, and hands
//! checked values to the crates that do the work.

mod admin;
pub mod alerts;
pub mod cli;
pub mod config;
pub mod log;
pub mod process;
pub mod secrets;
pub mod serve;
pub mod start;
