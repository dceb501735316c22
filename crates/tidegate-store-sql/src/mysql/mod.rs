//! The store in MySQL or MariaDB, for all instances.
//!
//! A batch is two round trips. The first opens a transaction, locks the rows that are there in the order of their
//! keys, and reads the server's clock once it has them. The second writes and commits.
//!
//! Rows that are not there can't be locked: InnoDB would lock the gaps between rows, which others need too. So a
//! batch inserts what was absent with a plain `INSERT`, which fails where another instance was faster, and looks
//! again, after its own writes, at the keys that it leaves absent. Of two batches that each relied on the absence
//! of what the other inserts one sees the other's row, or both wait for each other and the server ends one. All of
//! it is a conflict: nothing was written, and the driver decides the batch again.
//!
//! What is acknowledged survives a crash of the server if it flushes at every commit, as it does by default
//! (`innodb_flush_log_at_trx_commit = 1`). On a cluster with several primaries (Galera, group replication) all
//! instances must use the same one, since row locks hold on one only.

mod backend;
mod connection;
mod migration;
mod options;
mod statements;

pub use backend::{Batch, MySqlBackend};
pub use options::MySqlOptions;
