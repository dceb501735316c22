//! The limit store on PostgreSQL 14 or newer: all instances share one table, on the server's clock.
//!
//! A batch of the driver is one transaction of two round trips. The first begins it, locks the rows that are
//! there and reads the clock; the second writes what was decided and commits. What makes batches of several
//! instances behave as if one ran after the other is told in `backend`.
//!
//! - `options`, `tls`, `connection`: how the server is reached, and how a call ends when it does not answer.
//! - `schema`: what `tidegate migrate` makes, and the check that it is there.
//! - `statements`: all the SQL of the store.
//! - `backend`, `batch`, `sweep`: the store itself.
//!
//! A pool such as PgBouncer may stand between, in session mode: the store prepares statements and sets
//! settings of its session. The server's `synchronous_commit` decides what a commit promises; its default
//! flushes before the answer.

mod backend;
mod batch;
mod connection;
mod error;
mod options;
mod schema;
mod statements;
mod sweep;
mod tls;

pub use backend::PostgresBackend;
pub use batch::Batch;
pub use error::OpenError;
pub use options::{DatabaseUrl, Options};
pub use schema::{Migrated, SCHEMA_VERSION, migrate};
