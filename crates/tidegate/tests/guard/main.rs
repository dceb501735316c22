//! The guard store, from outside: the real binary, its listeners and its protocol.

#[path = "../support/mod.rs"]
mod support;

mod state;
