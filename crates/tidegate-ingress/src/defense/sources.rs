//! Where the last requests came from, to notice a proxy that hides the clients' addresses.

use std::{collections::HashSet, net::IpAddr};

use super::app::Origin;

/// A sample of the last requests, in a ring.
#[derive(Default)]
pub(super) struct Sources {
    ring: Vec<Sample>,
    next: usize,
}

#[derive(Clone, Copy)]
struct Sample {
    at_ms: u64,
    peer: IpAddr,
    forwarded: bool,
    trusted: bool,
}

/// Requests that are looked at.
const SAMPLES: usize = 64;
/// Fewer say nothing.
const SAMPLES_MIN: usize = 20;
/// Proxies that stand in front of one instance; more peers are visitors.
const PEERS_MAX: usize = 4;
/// What is older is not about now: a quarter of an hour.
const RECENT_MS: u64 = 900_000;

impl Sources {
    pub(super) fn note(&mut self, origin: Origin, at_ms: u64) {
        let Origin { peer, forwarded, trusted } = origin;
        let sample = Sample { at_ms, peer: peer.ip(), forwarded, trusted };
        match self.ring.get_mut(self.next) {
            Some(place) => *place = sample,
            None => self.ring.push(sample),
        }
        self.next = (self.next + 1) % SAMPLES;
    }

    /// Whether few peers, none of them trusted, bring nearly all requests with a forwarded header.
    pub(super) fn hide_clients(&self, now_ms: u64) -> bool {
        let recent: Vec<_> = self.ring.iter().filter(|sample| sample.at_ms + RECENT_MS > now_ms).collect();
        let forwarded = recent.iter().filter(|sample| sample.forwarded).count();
        let peers: HashSet<_> = recent.iter().map(|sample| sample.peer).collect();
        recent.len() >= SAMPLES_MIN
            && forwarded * 2 > recent.len()
            && peers.len() <= PEERS_MAX
            && recent.iter().all(|sample| !sample.trusted)
    }
}

#[cfg(test)]
mod tests;
