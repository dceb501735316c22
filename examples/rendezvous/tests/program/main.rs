//! The program itself: two players meet through it, on loopback and in network namespaces of their own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests; their helpers, too")]

mod loopback;
mod namespaces;
mod process;
