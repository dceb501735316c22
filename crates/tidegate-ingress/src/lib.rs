//! What stands in front of apps: the defense that decides about their requests, and the proxies' ways to ask
//! it.

pub mod defense;
