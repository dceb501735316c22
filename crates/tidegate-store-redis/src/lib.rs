//! The limit store on Redis 6.2 or Valkey 7.2, or newer: all instances share one server's rows, on its clock. The
//! server may stand alone, be found through sentinels, or be a shard of a cluster; [`StoreUrl`] tells how each
//! is written.
//!
//! A batch of the driver is two round trips. The first reads the rows and the clock; then everything is decided
//! here; the second writes all that changed, if every row is still as it was read, and otherwise nothing, and
//! the driver decides again. That one is a script, which the server runs as one step. A commit is sent once:
//! whether one that was not answered was done is not known, and nothing is done twice.
//!
//! - `url`, `options`, `open`, `server`, `error`: how a store is opened, and what a server must be like.
//! - `link`: the connection, and how the master is found again.
//! - `reading`, `batch`, `script`: what is said to the server. `names`, `row`: what is kept there.
//! - `backend`: the store itself.
//!
//! # What is kept
//!
//! | name | type | what |
//! |---|---|---|
//! | `{prefix}:format` | string | how all this is laid out: 2 |
//! | `{prefix}:secrets` | set | the ids of secrets that may have rows |
//! | `{prefix}:<id>:rows` | hash | the rows, by keys of 24 bytes: 8 bytes of a version, 8 of the row's expiry in ms (big endian), its value. The id is the secret's, in hexadecimal, 0 for none |
//! | `{prefix}:<id>:index` | sorted set | the rows' keys by their expiry: what to sweep |
//! | `{prefix}:<id>:keys` | sorted set | the rows' keys in their own order: what there is of a group |
//! | `{prefix}:<id>:turn` | string | which instance goes first, for 100 ms at most |
//!
//! The rows are one hash, since one command then reads or writes those of a whole batch: the server does a third of
//! the work that it has with a key for each. It lets none of them expire by itself; an instance sweeps them. What
//! nobody uses any more goes by `UNLINK` of these few keys.
//!
//! # Several instances
//!
//! Two instances that change the same rows are in conflict now and then, and the one whose batch was not taken
//! decides it again. So that an instance that is slow, or far from the server, comes through at all, it asks for
//! the turn when it loads again: until it has committed, or for 100 ms, the others' batches wait.
//!
//! # Clusters
//!
//! The names of a store share a hash tag, so all its rows are in one slot, on one shard: any rows can be updated
//! together, and an update that would span slots can't be asked for. A store is as large and as fast as one
//! shard. More shards are used by more stores, each with a prefix of its own, among which an application divides
//! what need not be updated together. A hash tag for each [`tidegate_store::Group`] is not offered: a batch
//! carries updates of many groups, and no two slots can be written as one.
//! While the slot is being moved to another shard, the store is unavailable.
//!
//! # What lasts
//!
//! An answered update is as durable as the server was told to make it. Without `appendonly` a crash of the server
//! loses what it counted since its last snapshot; with it and `appendfsync everysec`, about a second's;
//! with `appendfsync always`, nothing. Replicas follow a little later, so a failover loses what the master
//! had not passed on yet, and a master that was cut off loses what it took meanwhile (`min-replicas-to-write`
//! bounds that). [`Options::wait_replicas`] answers an update only once that many replicas have it; what another
//! instance wrote an instant ago may be read sooner. Rows expire on the clock of the master: the clocks of servers
//! that may take its place must agree. `maxmemory-policy` should be `noeviction`. With `allkeys-…` a full server may
//! remove all counts at once, of which opening the store warns; with any other it refuses to write.

mod backend;
mod batch;
mod error;
mod link;
mod names;
mod open;
mod options;
mod reading;
mod row;
mod script;
mod server;
#[cfg(test)]
mod tests;
mod url;

pub use backend::RedisBackend;
pub use batch::Batch;
pub use error::OpenError;
pub use options::Options;
pub use url::{StoreUrl, UrlError};
