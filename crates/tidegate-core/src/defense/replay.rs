//! What a policy would have done to requests that have been.

use alloc::{vec, vec::Vec};
use core::{cmp::Reverse, hash::BuildHasher};

use hashbrown::HashMap;

use super::{Bucket, BucketId, Buckets, ClientKey, Facts, Outcome, Reason, decide};
use crate::policy::Policy;

/// What a policy would have done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// How many requests there were.
    pub requests: u64,
    /// How many of them would have been blocked.
    pub would_block: u64,
    /// And why, in the order of [`Reason::ALL`].
    pub by_reason: [u64; Reason::ALL.len()],
    /// Over time.
    pub series: Vec<Slice>,
    /// The clients that would have been hit most, most first; without a block, those that came most.
    pub top_clients: Vec<Client>,
    /// How many clients there were.
    pub clients: u64,
    /// The one that came most.
    pub busiest: Client,
}

/// Part of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slice {
    /// When it begins, in ms since the epoch.
    pub at_ms: u64,
    /// Requests that would have passed.
    pub allowed: u64,
    /// Requests that would not.
    pub would_block: u64,
}

/// A client of the replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Client {
    /// Who.
    pub client: ClientKey,
    /// Its requests.
    pub requests: u64,
    /// Those that would have been blocked.
    pub would_block: u64,
}

/// Parts that a replay's time is told in.
const SLICES: usize = 60;
/// Clients that are told.
const TOP_CLIENTS: usize = 20;

/// Runs `records`, in the order they came in, through `policy` from full buckets on. All of them lie between
/// `from_ms` and `to_ms`; what lies outside counts to the first or last part of the time.
pub fn replay<'a, S: BuildHasher + Clone>(
    policy: &Policy,
    records: impl Iterator<Item = Facts<'a>>,
    from_ms: u64,
    to_ms: u64,
    hasher: &S,
) -> Replay {
    let mut buckets = Recalled(HashMap::with_hasher(hasher.clone()));
    let mut clients: HashMap<ClientKey, (u64, u64), S> = HashMap::with_hasher(hasher.clone());
    let mut timeline = Timeline::new(from_ms, to_ms);
    let mut by_reason = [0; Reason::ALL.len()];
    let mut requests = 0;
    for facts in records {
        let verdict = decide(policy, &facts, &mut buckets);
        let blocked = verdict.outcome != Outcome::Allowed;
        requests += 1;
        if let Some(reason) = verdict.reason {
            by_reason[reason as usize] += 1;
        }
        timeline.count(facts.at_ms, blocked);
        let client = clients.entry(ClientKey::of(facts.client, policy.ipv6_prefix())).or_default();
        client.0 += 1;
        client.1 += u64::from(blocked);
    }
    Replay {
        requests,
        would_block: by_reason.iter().sum(),
        by_reason,
        series: timeline.slices,
        clients: clients.len() as u64,
        busiest: told(&clients).max_by_key(|client| (client.requests, client.client)).unwrap_or_default(),
        top_clients: top(told(&clients)),
    }
}

struct Recalled<S>(HashMap<BucketId, Bucket, S>);

impl<S: BuildHasher> Buckets for Recalled<S> {
    fn bucket(&mut self, id: BucketId, _: u64) -> &mut Bucket {
        self.0.entry(id).or_default()
    }
}

struct Timeline {
    from_ms: u64,
    slice_ms: u64,
    slices: Vec<Slice>,
}

impl Timeline {
    fn new(from_ms: u64, to_ms: u64) -> Self {
        let span_ms = to_ms.saturating_sub(from_ms) + 1;
        let slice_ms = span_ms.div_ceil(SLICES as u64).max(1);
        let count = usize::try_from(span_ms.div_ceil(slice_ms)).unwrap_or(SLICES).clamp(1, SLICES);
        let mut slices = vec![Slice::default(); count];
        for (slice, at_ms) in slices.iter_mut().zip((0..).map(|index: u64| from_ms + index * slice_ms)) {
            slice.at_ms = at_ms;
        }
        Self { from_ms, slice_ms, slices }
    }

    fn count(&mut self, at_ms: u64, blocked: bool) {
        let index = at_ms.saturating_sub(self.from_ms) / self.slice_ms;
        let last = self.slices.len() - 1;
        let slice = &mut self.slices[usize::try_from(index).unwrap_or(last).min(last)];
        slice.would_block += u64::from(blocked);
        slice.allowed += u64::from(!blocked);
    }
}

fn told<S>(clients: &HashMap<ClientKey, (u64, u64), S>) -> impl Iterator<Item = Client> {
    let client = |(client, (requests, would_block)): (&ClientKey, &(u64, u64))| Client {
        client: *client,
        requests: *requests,
        would_block: *would_block,
    };
    clients.iter().map(client)
}

fn top(clients: impl Iterator<Item = Client>) -> Vec<Client> {
    let order = |client: &Client| (Reverse(client.would_block), Reverse(client.requests), client.client);
    let mut all: Vec<Client> = clients.collect();
    if all.len() > TOP_CLIENTS {
        all.select_nth_unstable_by_key(TOP_CLIENTS, order);
        all.truncate(TOP_CLIENTS);
    }
    all.sort_unstable_by_key(order);
    all
}
