//! The stores in SQL databases, on real ones: their contract, races, failures of the database, secrets, bounds.
#![allow(clippy::panic, clippy::print_stdout, reason = "tests; their helpers, too")]

mod faults;
mod harness;
mod mysql;
mod shared;
mod sqlite;
mod watching;
