//! The store in a SQLite file, for the processes of one machine.
//!
//! Every batch is one transaction that takes the write lock first: one that reads first and writes later can't
//! wait for it, SQLite fails it at once. The lock is asked for again and again, at short random intervals, for
//! three quarters of the deadline: SQLite's own waiting backs off so far that one process starves another.
//!
//! The application may keep its own tables in the same file. It must not use another copy of the SQLite library
//! for the same file in the same process: the system's file locks don't hold between two copies.

mod backend;
mod database;
mod options;
mod statements;
mod thread;

pub use backend::{Batch, SqliteBackend};
pub use options::{Durability, SqliteOptions};
