//! The ingress, from outside: the real binary before real servers, with bytes that a test chooses.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "helpers of tests are tests"
)]

#[path = "../support/mod.rs"]
mod support;

#[path = "../crash/log_file.rs"]
mod log_file;

mod addresses;
mod answers;
mod api;
mod apps;
mod authz;
mod backend;
mod bodies;
mod bounds;
mod fail_open;
mod files;
mod frames;
mod framing;
mod headers;
mod heads;
mod http2;
mod limits;
mod operators;
mod policy;
mod proxy_protocol;
mod refusals;
mod reloading;
mod rig;
mod shield;
mod slow;
mod status;
mod stopping;
mod tls;
mod trust;
mod tunnels;
mod upstreams;
