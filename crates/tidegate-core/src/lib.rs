//! Tidegate's decisions as pure functions: (state, input, time) -> (state, answer).
//!
//! Nothing here reads a clock, opens a socket or draws a random number: whoever calls hands those in.
//! The crate is `no_std` + `alloc`, so the compiler holds it to that.
#![no_std]
extern crate alloc;

pub mod key;
