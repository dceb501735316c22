//! Tidegate's decisions as pure functions: (state, input, time) -> (state, answer).
//!
//! Nothing here reads a clock, opens a socket or draws a random number: whoever calls hands those in.
//! The crate is `no_std` + `alloc`, so the compiler holds it to that.
#![no_std]
extern crate alloc;

pub mod address;
pub mod admission;
pub mod codec;
pub mod decimal;
pub mod defense;
pub mod duration;
pub mod forwarded;
pub mod json;
pub mod key;
pub mod network;
pub mod path;
pub mod policy;
pub mod proxy_header;
pub mod record;
pub mod reservation;
pub mod secret;
pub mod tracker;
pub mod window;

/// The largest limit, cost or counter: what every JSON reader can hold exactly (2^53 - 1).
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

/// The longest life of a row from its last write: 120 days, in ms.
pub const LIFE_MS_MAX: u64 = 120 * 24 * 60 * 60 * 1000;
