//! The guard store's RPC: its messages and their bounds, the signature over them, and the hashing of
//! identities. Shared by the server, the clients and whoever writes another client.
//!
//! Pure: time and random bytes are handed in. The crate is `no_std` + `alloc`.
#![no_std]
extern crate alloc;

pub mod bounds;
pub mod control;
pub mod identity;
pub mod name;
pub mod request;
pub mod response;
pub mod signature;

mod base64url;
mod strict;
mod word;

pub use request::{BadRequest, Command, Request, Step};
pub use response::{CommandResult, ErrorBody, ErrorCode, Response, StepResult};
pub use signature::{Keyring, Rejected, Verified};

#[cfg(test)]
mod vectors;
