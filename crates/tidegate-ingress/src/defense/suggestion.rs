//! A rate for each client that would not have bothered the recent ones.

use std::{collections::HashMap, sync::Arc};

use tidegate_core::defense::ClientKey;

use super::{counters::Kind, log::Segment};

/// Peaks are measured over 10 s, so that loading one page is not taken for a rate.
const SPAN_MS: u64 = 10_000;
/// Of all clients, the share whose peak the suggestion leaves room for. What is above may be the abuse.
const USUAL_PERCENT: usize = 95;
/// Requests from which on it makes sense to suggest something.
const REQUESTS_MIN: u64 = 20;

/// Requests in the span that is going on, and in the busiest one.
#[derive(Default)]
struct Peak {
    span: u64,
    count: u64,
    most: u64,
}

/// Twice the peak of all but the busiest twentieth of clients, or of all but the busiest one where they are few,
/// in requests a second. None: there are too few requests to tell, or one client makes nearly all of them and is likely a proxy.
pub(super) fn suggested_rps(log: &[Arc<Segment>], since_ms: u64, ipv6_prefix: u8) -> Option<u64> {
    let mut peaks: HashMap<ClientKey, (u64, Peak)> = HashMap::new();
    let mut requests = 0;
    let entries = log.iter().flat_map(|segment| segment.entries());
    for entry in entries.filter(|entry| entry.kind != Kind::Firewall && entry.facts.at_ms >= since_ms) {
        let (all, peak) = peaks.entry(ClientKey::of(entry.facts.client, ipv6_prefix)).or_default();
        *all += 1;
        requests += 1;
        peak.count_at(entry.facts.at_ms / SPAN_MS);
    }
    let busiest = peaks.values().map(|(all, _)| *all).max().unwrap_or_default();
    if requests < REQUESTS_MIN || (busiest * 100 > requests * 90) {
        return None;
    }
    let mut peaks: Vec<u64> = peaks.into_values().map(|(_, peak)| peak.most).collect();
    peaks.sort_unstable();
    // Of two nobody knows which one is usual.
    let last = peaks.len() - if peaks.len() > 2 { 2 } else { 1 };
    let usual = peaks[(peaks.len() * USUAL_PERCENT / 100).min(last)];
    Some((usual * 2).div_ceil(SPAN_MS / 1000).max(1))
}

impl Peak {
    fn count_at(&mut self, span: u64) {
        if span != self.span {
            (self.span, self.count) = (span, 0);
        }
        self.count += 1;
        self.most = self.most.max(self.count);
    }
}

#[cfg(test)]
mod tests;
