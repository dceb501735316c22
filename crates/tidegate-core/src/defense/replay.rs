//! What a policy would have done to requests that have been.

use alloc::{vec, vec::Vec};
use core::{
    cmp::Reverse,
    hash::{BuildHasher, Hash},
};

use hashbrown::{HashTable, hash_table::Entry};

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

/// Clients that there is room for from the start, 56 MiB; more of them let it grow.
const ROOM_MAX: usize = 1 << 20;

/// Runs `records`, in the order they came in, through `policy` from full buckets on. All of them lie between
/// `from_ms` and `to_ms`; what lies outside counts to the first or last part of the time. There are at most
/// about `records_max`.
pub fn replay<'a, S: BuildHasher>(
    policy: &Policy,
    records: impl Iterator<Item = Facts<'a>>,
    records_max: usize,
    (from_ms, to_ms): (u64, u64),
    hasher: &S,
) -> Replay {
    let mut clients: Rows<'_, ClientKey, Seen, S> = Rows::with_room(records_max.min(ROOM_MAX), hasher);
    let mut routes = Rows::with_room(0, hasher);
    let mut timeline = Timeline::new(from_ms, to_ms);
    let mut by_reason = [0; Reason::ALL.len()];
    let mut requests = 0;
    for facts in records {
        let seen = clients.row(ClientKey::of(facts.client, policy.ipv6_prefix()));
        let mut buckets = Recalled { own: &mut seen.bucket, routes: &mut routes };
        let verdict = decide(policy, &facts, &mut buckets);
        let blocked = verdict.outcome != Outcome::Allowed;
        requests += 1;
        seen.requests += 1;
        seen.would_block += u32::from(blocked);
        if let Some(reason) = verdict.reason {
            by_reason[reason as usize] += 1;
        }
        timeline.count(facts.at_ms, blocked);
    }
    let told = || clients.rows.iter().map(|(client, seen)| seen.told(*client));
    Replay {
        requests,
        would_block: by_reason.iter().sum(),
        by_reason,
        series: timeline.slices,
        clients: clients.rows.len() as u64,
        busiest: told().max_by_key(|client| (client.requests, client.client)).unwrap_or_default(),
        top_clients: top(told()),
    }
}

/// What is known of a client.
#[derive(Default)]
struct Seen {
    /// Under the client's own limit.
    bucket: Bucket,
    requests: u32,
    would_block: u32,
}

impl Seen {
    fn told(&self, client: ClientKey) -> Client {
        Client { client, requests: self.requests.into(), would_block: self.would_block.into() }
    }
}

/// A map that only grows: rows side by side, in the order they came in, and a small index of them. Most of the time
/// of a replay with many clients goes into memory that is touched for the first time, and into looking things up
/// in more of it than the processor has at hand.
struct Rows<'a, K, V, S> {
    index: HashTable<Place>,
    rows: Vec<(K, V)>,
    hasher: &'a S,
}

/// A row, and part of its key's hash: enough to move it when the index grows, without a look at the row.
struct Place {
    hash: u32,
    row: u32,
}

impl Place {
    /// What the index goes by.
    const fn spread(hash: u32) -> u64 {
        (hash as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

impl<'a, K: Copy + Eq + Hash, V: Default, S: BuildHasher> Rows<'a, K, V, S> {
    /// With room for so many rows: what of it is not used is never touched.
    fn with_room(rows: usize, hasher: &'a S) -> Self {
        Self { index: HashTable::new(), rows: Vec::with_capacity(rows), hasher }
    }

    fn row(&mut self, key: K) -> &mut V {
        let Self { index, rows, hasher } = self;
        let hash = hasher.hash_one(key);
        let hash = u32::try_from(hash >> 32).unwrap_or_default();
        let is_it = |place: &Place| place.hash == hash && rows[place.row as usize].0 == key;
        let entry = index.entry(Place::spread(hash), is_it, |place| Place::spread(place.hash));
        let row = match entry {
            Entry::Occupied(place) => place.get().row,
            Entry::Vacant(vacant) => {
                let row = u32::try_from(rows.len()).expect("a log has less than 2^32 records");
                vacant.insert(Place { hash, row });
                rows.push((key, V::default()));
                row
            }
        };
        &mut rows[row as usize].1
    }
}

/// The buckets of the client whose turn it is.
struct Recalled<'a, 'b, S> {
    own: &'a mut Bucket,
    routes: &'a mut Rows<'b, BucketId, Bucket, S>,
}

impl<S: BuildHasher> Buckets for Recalled<'_, '_, S> {
    fn bucket(&mut self, id: BucketId, _: u64) -> &mut Bucket {
        if id.is_of_client() { self.own } else { self.routes.row(id) }
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

/// Those that come first by `order`, in that order. No more than twice as many are held at a time.
fn top(clients: impl Iterator<Item = Client>) -> Vec<Client> {
    let order = |client: &Client| (Reverse(client.would_block), Reverse(client.requests), client.client);
    let mut first: Vec<Client> = Vec::with_capacity(2 * TOP_CLIENTS);
    let mut last = None;
    for client in clients {
        if last.is_some_and(|last| order(&client) > last) {
            continue;
        }
        first.push(client);
        if first.len() == 2 * TOP_CLIENTS {
            let (_, least, _) = first.select_nth_unstable_by_key(TOP_CLIENTS - 1, order);
            last = Some(order(least));
            first.truncate(TOP_CLIENTS);
        }
    }
    first.sort_unstable_by_key(order);
    first.truncate(TOP_CLIENTS);
    first
}
