//! Real databases for tests and benchmarks: each in a temporary folder, on a free port of this machine, and
//! stopped when it is dropped. Nothing that runs on the machine already is touched.
//!
//! The programs come from the distribution's packages; `cargo xtask test` installs what is missing.

mod mariadb;
mod postgres;
mod process;
mod redis;

pub use mariadb::MariaDb;
pub use postgres::{PostgresServer, PostgresSetup};
pub use process::{Process, free_port, program};
pub use redis::{RedisCluster, RedisSentinels, RedisServer};
