//! The guard's engine, in process: every command, steps, replays, reservations and races over rows in memory,
//! on a clock that only the tests move.
//!
//! What a guarantee rests on is broken on purpose beside it (see `rig::Rig`), and the same check must tell.

mod admission;
mod damage;
mod harness;
mod instances;
mod model;
mod operator;
mod races;
mod records;
mod replay;
mod reservations;
mod rig;
mod steps;
mod windows;
