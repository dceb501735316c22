//! What a caller may rely on when processes are killed, answers are lost, disks fill and files are damaged: the
//! real binary, in folders of its own; and one model of it in process, on a disk that fails on purpose.

#![allow(clippy::panic, clippy::print_stderr, reason = "a test fails by panicking and says why")]

#[path = "../support/mod.rs"]
mod support;

mod budget_model;
mod budgets;
mod caller;
mod damage;
mod exhausted;
mod full_disk;
mod full_store;
mod kills;
mod ledger;
mod log_file;
mod lost_answer;
mod nothing_kept;
mod other_stores;
mod two_processes;
mod workload;
