//! The limit store: one contract that carries everything durable, a driver that coalesces the updates of
//! all callers into batches, the memory backend, and the contract's own tests.
//!
//! A user of a store needs [`LimitStore`] and [`LimitStoreExt::update`]. Who writes a new backend implements
//! [`Backend`], hands it to [`Driver::start`] and runs [`testing::contract_cases`] against it.

mod backend;
pub mod clock;
mod contract;
mod driver;
mod error;
pub mod lanes;
mod memory;
pub mod testing;
mod view;

pub use backend::{Backend, BackendError, Change, Loaded, NewState, Swept, runs};
pub use contract::{BoxFuture, Job, Keys, LimitStore, LimitStoreExt};
pub use driver::{BATCH_SIZES, Driver, DriverOptions, DriverStats, Filling};
pub use error::{Invalid, StoreError, Unavailable};
pub use lanes::Lanes;
pub use memory::MemoryBackend;
pub use view::{Entry, Mark, Value, View};

pub use tidegate_core::key::{Group, Key, Member, Scope};

/// The largest value of an entry, in bytes.
pub const VALUE_BYTES_MAX: usize = 4096;
/// The longest life of an entry from its last write: 120 days.
pub const LIFE_MS_MAX: u64 = 120 * 24 * 60 * 60 * 1000;
/// The expiry of a row that stays until it is written again: the year 10000.
pub const LASTING_MS: u64 = 253_402_300_800_000;
/// The most keys of one update: an RPC of 32 commands with 4 windows each, its records and its admission.
pub const KEYS_MAX: usize = 512;
