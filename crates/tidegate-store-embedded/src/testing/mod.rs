//! For tests: a disk that fails, tears and forgets, and an entry for fuzzing.

mod fuzz;
mod random;
mod simulated;

pub use fuzz::fuzz_recover;
pub use random::Random;
pub use simulated::{Fault, SimulatedDisk};
