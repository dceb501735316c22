//! The reverse proxy and the per-app abuse defense: policies applied, counted, tried on past traffic.

pub mod defense;
pub mod proxy;
