//! The engine as a whole, on a simulated disk.

mod cleaning;
mod damage;
mod faults;
mod full;
mod harness;
mod model;
mod secrets;
mod settling;
mod threads;
