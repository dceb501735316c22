//! What stands in front of apps: the proxy, the defense that decides about their requests, and other proxies' ways to
//! ask it.

pub mod authz;
pub mod defense;
pub mod proxy;
mod text;
