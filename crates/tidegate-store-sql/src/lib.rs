//! The limit store in a SQL database: SQLite, for the processes of one machine, and MySQL or MariaDB, for all
//! instances.
//!
//! Both keep the same rows in the same tables, under names that begin with `tidegate_`, so that they can share a
//! database with an application. Neither holds a decision: SQL locks, reads and writes rows, nothing else.
//!
//! - `sqlite`: one writer, `BEGIN IMMEDIATE`, the process's clock, which never goes back within a file.
//! - `mysql`: row locks in key order under READ COMMITTED, the server's clock.
//! - `schema`: versions of the tables, which only go forward; `changes` and `scope`: what the two have in common.

mod changes;
mod error;
pub mod mysql;
mod schema;
mod scope;
pub mod sqlite;
mod url;

pub use error::OpenError;
pub use mysql::{MySqlBackend, MySqlOptions};
pub use sqlite::{Durability, SqliteBackend, SqliteOptions};
pub use url::DatabaseUrl;
