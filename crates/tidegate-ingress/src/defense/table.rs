//! The buckets of an app's clients: bounded, in shards with locks of their own.
//!
//! A bucket is known by 64 bits of a keyed hash of its client and limit, so no address is kept here and
//! nobody can aim at a place of the table. It may stand in either of two sets of eight. Only where both are
//! full, and the table may not grow, one of the sixteen is dropped: the one with which least is lost. A full
//! bucket says nothing and goes first; one that refuses goes last.

use std::hash::{BuildHasher, RandomState};

use parking_lot::{Mutex, MutexGuard};
use tidegate_core::defense::{Bucket, BucketId, Buckets};

/// The buckets of an app.
#[derive(Debug)]
pub(super) struct Clients {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
}

/// Part of the buckets.
#[derive(Debug)]
struct Shard {
    sets: Vec<Set>,
    sets_max: usize,
    tracked: usize,
}

/// Eight places; a tag of 0 marks an empty one. The tags share a cache line.
#[derive(Debug, Clone, Copy, Default)]
struct Set {
    tags: [u64; SET],
    buckets: [Bucket; SET],
}

/// Which buckets a request may charge: those of one client, behind one lock.
pub(super) struct OfOneClient<'a> {
    clients: &'a Clients,
    /// The client's hash and its lock, once it was asked for.
    held: Option<(u64, MutexGuard<'a, Shard>)>,
}

const SET: usize = 8;
/// Enough that cores seldom wait for each other.
const SHARDS_MAX: usize = 32;
/// Sets that a shard begins with.
const SETS_FIRST: usize = 4;

impl Clients {
    /// No buckets yet, and never more than `tracked_max`, or one set where that is less.
    pub(super) fn new(tracked_max: usize) -> Self {
        let shards = (tracked_max / 64).next_power_of_two().clamp(1, SHARDS_MAX);
        let shard = || Mutex::new(Shard::new(sets_max(tracked_max, shards)));
        Self { shards: (0..shards).map(|_| shard()).collect(), hasher: RandomState::new() }
    }

    /// Changes the bound; what is over it is dropped.
    pub(super) fn resize(&self, tracked_max: usize, at_ms: u64) {
        for shard in &self.shards {
            shard.lock().resize(sets_max(tracked_max, self.shards.len()), at_ms);
        }
    }

    /// How many buckets there are.
    pub(super) fn tracked(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().tracked).sum()
    }

    /// The buckets of whichever client is asked for first.
    pub(super) fn of_one_client(&self) -> OfOneClient<'_> {
        OfOneClient { clients: self, held: None }
    }

    fn shard_of(&self, hash: u64) -> &Mutex<Shard> {
        let shards = self.shards.len() as u64;
        let index = ((hash >> 32) * shards) >> 32;
        &self.shards[usize::try_from(index).unwrap_or_default()]
    }
}

impl Buckets for OfOneClient<'_> {
    fn bucket(&mut self, id: BucketId, at_ms: u64) -> &mut Bucket {
        let clients = self.clients;
        let (hash, shard) = self.held.get_or_insert_with(|| {
            let hash = clients.hasher.hash_one(id.client.bits());
            (hash, clients.shard_of(hash).lock())
        });
        let tag = (*hash ^ id.limit).wrapping_mul(MIXER).max(1);
        shard.bucket(tag, at_ms)
    }
}

/// An odd number whose bits look random: 2^64 over the golden ratio.
const MIXER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Shard {
    fn new(sets_max: usize) -> Self {
        Self { sets: Vec::new(), sets_max, tracked: 0 }
    }

    fn bucket(&mut self, tag: u64, at_ms: u64) -> &mut Bucket {
        let (set, place) = self.find(tag).unwrap_or_else(|| self.insert(tag, Bucket::default(), at_ms));
        &mut self.sets[set].buckets[place]
    }

    fn find(&self, tag: u64) -> Option<(usize, usize)> {
        if self.sets.is_empty() {
            return None;
        }
        self.homes(tag).into_iter().find_map(|home| Some((home, self.sets[home].place_of(tag)?)))
    }

    /// Where it stands now. It is not in the table yet.
    fn insert(&mut self, tag: u64, bucket: Bucket, at_ms: u64) -> (usize, usize) {
        loop {
            let home = (!self.sets.is_empty()).then(|| self.emptier_home(tag));
            if let Some((home, place)) = home.and_then(|home| Some((home, self.sets[home].place_of(0)?))) {
                self.tracked += 1;
                return self.write(home, place, tag, bucket);
            }
            if self.sets.len() >= self.sets_max {
                let (home, place) = self.least(tag, at_ms);
                return self.write(home, place, tag, bucket);
            }
            self.resettle((self.sets.len() * 2).max(SETS_FIRST).min(self.sets_max), at_ms);
        }
    }

    fn write(&mut self, home: usize, place: usize, tag: u64, bucket: Bucket) -> (usize, usize) {
        self.sets[home].tags[place] = tag;
        self.sets[home].buckets[place] = bucket;
        (home, place)
    }

    /// The bucket with which least is lost, of those that stand where `tag` may.
    fn least(&self, tag: u64, at_ms: u64) -> (usize, usize) {
        let places = self.homes(tag).into_iter().flat_map(|home| (0..SET).map(move |place| (home, place)));
        let weight = |(home, place): &(usize, usize)| self.sets[*home].buckets[*place].weight(at_ms);
        places.min_by_key(weight).unwrap_or_default()
    }

    fn emptier_home(&self, tag: u64) -> usize {
        let [one, other] = self.homes(tag);
        if self.sets[other].empty() > self.sets[one].empty() { other } else { one }
    }

    /// The two sets that it may stand in.
    fn homes(&self, tag: u64) -> [usize; 2] {
        let scale = |half: u64| usize::try_from((half * self.sets.len() as u64) >> 32).unwrap_or_default();
        [scale(tag & u64::from(u32::MAX)), scale(tag >> 32)]
    }

    fn resize(&mut self, sets_max: usize, at_ms: u64) {
        self.sets_max = sets_max;
        if self.sets.len() > sets_max {
            self.resettle(sets_max, at_ms);
        }
    }

    /// Moves everything into `count` sets.
    fn resettle(&mut self, count: usize, at_ms: u64) {
        let before = std::mem::replace(&mut self.sets, vec![Set::default(); count]);
        self.tracked = 0;
        for set in before {
            for (tag, bucket) in set.tags.into_iter().zip(set.buckets).filter(|(tag, _)| *tag != 0) {
                self.settle(tag, bucket, at_ms);
            }
        }
    }

    /// Like an insertion that can't grow the table. Of too many the one with which least is lost is dropped.
    fn settle(&mut self, tag: u64, bucket: Bucket, at_ms: u64) {
        let home = self.emptier_home(tag);
        if let Some(place) = self.sets[home].place_of(0) {
            self.tracked += 1;
            self.write(home, place, tag, bucket);
            return;
        }
        let (home, place) = self.least(tag, at_ms);
        if self.sets[home].buckets[place].weight(at_ms) < bucket.weight(at_ms) {
            self.write(home, place, tag, bucket);
        }
    }
}

impl Set {
    fn place_of(&self, tag: u64) -> Option<usize> {
        self.tags.iter().position(|held| *held == tag)
    }

    fn empty(&self) -> usize {
        self.tags.iter().filter(|tag| **tag == 0).count()
    }
}

fn sets_max(tracked_max: usize, shards: usize) -> usize {
    (tracked_max / shards / SET).max(1)
}

#[cfg(test)]
mod flood_tests;
#[cfg(test)]
mod tests;
