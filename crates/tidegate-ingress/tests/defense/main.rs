//! The defense as the proxy, the API and other proxies use it.

mod authz;
mod fail_open;
mod judging;
mod nginx;
mod policies;
mod replay;
mod support;
