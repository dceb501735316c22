//! The command line as people use it: the real binary, run from a folder, by a shell where it prints commands.

#![allow(clippy::panic, clippy::print_stderr, reason = "a test fails by panicking and says why")]

#[path = "../support/mod.rs"]
mod support;

mod apps;
mod call;
mod control;
mod drill;
mod files;
mod first_start;
mod operating;
mod readme;
mod running;
mod shell;
mod verbs;
