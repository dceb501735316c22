//! Closed-loop load: so many connections, each sends its next request when the last one is answered.

mod event_loop;
mod get;
mod http1;
mod http2;
mod resp;
mod rpc;

pub(crate) use event_loop::drive;
pub(crate) use get::Gets;
pub(crate) use http1::Http1;
pub(crate) use http2::drive as drive_http2;
pub(crate) use resp::{Resp, Script, command};
pub(crate) use rpc::{BULK_WINDOWS, Check, RpcTemplate};

use std::time::Duration;

use super::histogram::Histogram;

/// How much load, of which kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Requests in flight.
    pub(crate) connections: usize,
    /// Checks are made on keys 0 to this, exclusive.
    pub(crate) keys: usize,
    pub(crate) order: Order,
}

/// Which keys, and when it ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// Uniformly random keys, until the time is up.
    RandomFor(Duration),
    /// Each key once, in order.
    EachOnce,
}

/// What came of it. Any wrong answer has ended the run instead.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) latency: Histogram,
    pub(crate) allowed: u64,
    pub(crate) elapsed: Duration,
}

impl Outcome {
    pub(crate) fn answers(&self) -> u64 {
        self.latency.count()
    }

    pub(crate) fn answers_per_second(&self) -> f64 {
        self.answers() as f64 / self.elapsed.as_secs_f64()
    }
}
