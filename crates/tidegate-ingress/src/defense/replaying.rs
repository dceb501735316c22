//! Runs the access log through a draft.

use std::{
    hash::RandomState,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use thiserror::Error;
use tidegate_core::{
    defense::{Client, Facts, Reason, Replay, replay},
    policy::{Policy, PolicyFault},
};

use super::{
    counters::Kind,
    log::{LogEntry, Segment},
    view::{ReplayReport, ReplayStep, TopClient, WouldBlock},
};

/// Why a draft could not be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// No app has that name.
    #[error("there is no such app")]
    NoSuchApp,
    /// The draft is faulty; all that is wrong with it.
    #[error("the draft is not valid")]
    Invalid(Vec<PolicyFault>),
    /// As many replays are running as may.
    #[error("too many replays are running")]
    Busy,
}

/// Replays that may run at once: each holds on to a log's memory.
const REPLAYS_MAX: usize = 2;
/// One client with so many of a hundred requests is likely a proxy.
const ONE_CLIENT_PERCENT: u64 = 90;
/// Fewer requests say nothing about who is a proxy.
const REQUESTS_MIN: u64 = 20;

/// Leave to replay.
pub(super) struct Permit<'a>(&'a AtomicUsize);

impl<'a> Permit<'a> {
    pub(super) fn take(running: &'a AtomicUsize) -> Result<Self, ReplayError> {
        let taken = running.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
            (count < REPLAYS_MAX).then_some(count + 1)
        });
        taken.map(|_| Self(running)).map_err(|_| ReplayError::Busy)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The requests of a log that reached the policy, since `from_ms`.
fn decided(log: &[Arc<Segment>], from_ms: u64) -> impl DoubleEndedIterator<Item = LogEntry<'_>> {
    let entries = log.iter().flat_map(|segment| segment.entries());
    entries.filter(move |entry| entry.kind != Kind::Firewall && entry.facts.at_ms >= from_ms)
}

/// What `policy` would have done to what the log holds since `since_ms`.
pub(super) fn report(policy: &Policy, log: &[Arc<Segment>], since_ms: u64, now_ms: u64) -> ReplayReport {
    let facts = |entry: LogEntry<'_>| entry.facts.at_ms;
    let from_ms = decided(log, since_ms).next().map_or(now_ms, facts);
    let to_ms = decided(log, since_ms).next_back().map_or(now_ms, facts);
    let records = decided(log, since_ms).map(|entry| -> Facts<'_> { entry.facts });
    let records_max = log.iter().map(|segment| segment.entries().len()).sum();
    let replay = replay(policy, records, records_max, (from_ms, to_ms), &RandomState::new());
    ReplayReport {
        from_ms,
        to_ms,
        requests: replay.requests,
        would_block: WouldBlock {
            total: replay.would_block,
            by_reason: Reason::ALL.map(|reason| (reason.as_str(), replay.by_reason[reason as usize])).into(),
        },
        warning: warning(&replay, policy.ipv6_prefix()),
        series: replay.series.iter().map(step).collect(),
        top_clients: replay
            .top_clients
            .iter()
            .map(|client| top_client(client, policy.ipv6_prefix()))
            .collect(),
    }
}

fn step(slice: &tidegate_core::defense::Slice) -> ReplayStep {
    ReplayStep { at_ms: slice.at_ms, allowed: slice.allowed, would_block: slice.would_block }
}

fn top_client(client: &Client, ipv6_prefix: u8) -> TopClient {
    TopClient {
        client: client.client.text(ipv6_prefix),
        requests: client.requests,
        would_block: client.would_block,
    }
}

/// One client that makes nearly all requests.
fn warning(replay: &Replay, ipv6_prefix: u8) -> Option<String> {
    let one_client = replay.requests >= REQUESTS_MIN
        && replay.busiest.requests * 100 > replay.requests * ONE_CLIENT_PERCENT;
    one_client.then(|| {
        format!(
            "{} makes {} of {} requests. If that is a proxy, name it in ingress.trusted_proxies first: until \
             then every visitor behind it shares one limit.",
            replay.busiest.client.text(ipv6_prefix),
            replay.busiest.requests,
            replay.requests
        )
    })
}
