//! The embedded limit store: live rows in memory, an append-only log on disk, group commit.
//!
//! Every batch is one frame of the log, written before any of it can be read, and flushed before anybody is
//! answered who has read it. When a store is opened the log is read back: a torn frame at its very end is cut off, any other damage is an error that
//! says where. `docs/store-format.md` describes the files.
//!
//! - `rows`: the table, the arena its rows live in, and the wheel that knows which of them expire when.
//! - `format` and `log`: the bytes of frames, and where they go.
//! - `cleaner`: copies what is still needed out of old segments, so that they can go.
//! - `recovery`: reads a log, judges its end, repairs it.
//! - `engine`, `settled`, `threads`, `backend`: all of it together, with a thread that flushes and one for the
//!   upkeep.

mod backend;
mod cleaner;
pub mod disk;
mod engine;
mod error;
mod format;
mod log;
mod memory;
mod options;
mod recovery;
mod rows;
mod settled;
mod stats;
pub mod testing;
#[cfg(test)]
mod tests;
mod threads;

pub use backend::{Batch, EmbeddedBackend};
pub use disk::RealDisk;
pub use error::{Damage, DamageKind, OpenError};
pub use options::{Durability, Options, Upkeep};
pub use recovery::{Repair, RepairStep, Verification, repair, repair_disk, verify, verify_disk};
pub use settled::Settled;
pub use stats::Stats;
