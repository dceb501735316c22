//! The access log of an app, in memory: what a replay needs of the last minutes.
//!
//! Records stand in segments. A segment holds each text once, in one run of bytes; when the log is full, the
//! oldest segment goes and its memory is used again. So records, bytes and minutes are bounded, and a request
//! that says what others have said costs no allocation.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, RandomState},
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
};

use hashbrown::{HashTable, hash_table::Entry};
use tidegate_core::{address::Address, defense::Facts, path::Normal};

use super::counters::Kind;

/// The log of an app.
pub(super) struct Log {
    sealed: VecDeque<Arc<Segment>>,
    open: Segment,
    /// The texts of the open segment.
    known: HashTable<Text>,
    hasher: RandomState,
    /// A segment whose memory can be used again.
    spare: Option<Segment>,
    bounds: LogBounds,
}

/// How large a log may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LogBounds {
    pub(super) entries: usize,
    pub(super) span_ms: u64,
}

/// Consecutive records, and their texts.
#[derive(Default)]
pub(super) struct Segment {
    /// The number of its first record.
    first: u64,
    records: Vec<Record>,
    texts: Vec<u8>,
}

struct Record {
    at_ms: u64,
    client: [u8; 16],
    method: Text,
    path: Text,
    user_agent: Text,
    /// What the app answered; 0 as long as it hasn't.
    status: AtomicU16,
    /// The place of its kind in a tally.
    kind: u8,
}

/// Where a text stands in its segment: its length in two bytes, then its bytes.
#[derive(Debug, Clone, Copy)]
struct Text(u32);

/// A record, read.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogEntry<'a> {
    pub(super) facts: Facts<'a>,
    pub(super) kind: Kind,
    pub(super) status: Option<u16>,
}

/// Records of a segment: a page that is cheap to drop as a whole.
const SEGMENT_RECORDS_MAX: usize = 4096;
/// Segments of a log that is small: so much of it goes at once.
const SEGMENTS_MIN: usize = 16;
/// Bytes of text that a record may have on average. Clients that always say something new make the log cover
/// less time.
const TEXT_BYTES: usize = 64;
/// Longer than any method is.
const METHOD_BYTES_MAX: usize = 32;

impl Log {
    pub(super) fn new(bounds: LogBounds) -> Self {
        Self {
            sealed: VecDeque::new(),
            open: Segment::default(),
            known: HashTable::new(),
            hasher: RandomState::new(),
            spare: None,
            bounds,
        }
    }

    /// Changes the bounds; what is over them goes with the next record.
    pub(super) fn set_bounds(&mut self, bounds: LogBounds) {
        self.bounds = bounds;
    }

    /// Appends a request; tells its number.
    pub(super) fn push(&mut self, facts: &Facts<'_>, kind: Kind, status: u16) -> u64 {
        self.make_room(facts.at_ms);
        if self.bounds.entries == 0 {
            return 0;
        }
        let method = &facts.method.as_bytes()[..facts.method.len().min(METHOD_BYTES_MAX)];
        let last = self.open.records.last().map(|last| (last.method, last.path, last.user_agent));
        let record = Record {
            at_ms: facts.at_ms,
            client: bytes_of(facts.client),
            method: self.text(method, last.map(|last| last.0)),
            path: self.text(facts.path.as_bytes(), last.map(|last| last.1)),
            user_agent: self.text(facts.seen_user_agent(), last.map(|last| last.2)),
            status: AtomicU16::new(status),
            kind: u8::try_from(kind.place()).unwrap_or_default(),
        };
        self.open.records.push(record);
        self.open.first + self.open.records.len() as u64 - 1
    }

    /// Notes what the app answered to a request, if the log still holds it.
    pub(super) fn finish(&self, number: u64, status: u16) {
        let segment = match self.sealed.partition_point(|segment| segment.first <= number) {
            _ if number >= self.open.first => Some(&self.open),
            after => after.checked_sub(1).map(|index| &*self.sealed[index]),
        };
        let record = segment.and_then(|segment| {
            let index = usize::try_from(number.checked_sub(segment.first)?).ok()?;
            segment.records.get(index)
        });
        if let Some(record) = record {
            record.status.store(status, Ordering::Relaxed);
        }
    }

    /// What it holds now, oldest first. Later requests don't change it.
    pub(super) fn snapshot(&self) -> Vec<Arc<Segment>> {
        self.sealed.iter().cloned().chain([Arc::new(self.open.copy())]).collect()
    }

    fn make_room(&mut self, now_ms: u64) {
        let records_max = (self.bounds.entries / SEGMENTS_MIN).clamp(1, SEGMENT_RECORDS_MAX);
        let texts_max = records_max * TEXT_BYTES;
        if self.open.records.len() >= records_max || self.open.texts.len() >= texts_max {
            self.seal();
        }
        let oldest_ms = now_ms.saturating_sub(self.bounds.span_ms);
        while let Some(first) = self.sealed.front() {
            let full = (self.sealed.len() + 1) * records_max > self.bounds.entries;
            let old = first.records.last().is_none_or(|record| record.at_ms < oldest_ms);
            if !full && !old {
                break;
            }
            self.spare = self.sealed.pop_front().and_then(Arc::into_inner).or_else(|| self.spare.take());
        }
    }

    fn seal(&mut self) {
        let mut next = self.spare.take().unwrap_or_default();
        next.records.clear();
        next.texts.clear();
        next.first = self.open.first + self.open.records.len() as u64;
        self.known.clear();
        self.sealed.push_back(Arc::new(std::mem::replace(&mut self.open, next)));
    }

    /// Where the text stands in the open segment. Often it is what the last record said, too: then no hash is needed.
    fn text(&mut self, text: &[u8], last: Option<Text>) -> Text {
        let texts = &mut self.open.texts;
        if let Some(last) = last.filter(|last| text_at(texts, *last) == text) {
            return last;
        }
        let hash = self.hasher.hash_one(text);
        let same = |at: &Text| text_at(texts, *at) == text;
        let entry = self.known.entry(hash, same, |at| self.hasher.hash_one(text_at(texts, *at)));
        match entry {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let at = Text(u32::try_from(texts.len()).unwrap_or(u32::MAX));
                place.insert(at);
                let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
                texts.extend(length.to_le_bytes());
                texts.extend(&text[..usize::from(length)]);
                at
            }
        }
    }
}

impl Segment {
    /// Its records, in order.
    pub(super) fn entries(&self) -> impl DoubleEndedIterator<Item = LogEntry<'_>> + ExactSizeIterator {
        self.records.iter().map(|record| {
            let status = record.status.load(Ordering::Relaxed);
            let facts = Facts {
                client: Address::from(IpAddr::V6(Ipv6Addr::from(record.client))),
                method: std::str::from_utf8(text_at(&self.texts, record.method)).unwrap_or_default(),
                path: Normal::recorded(text_at(&self.texts, record.path)),
                user_agent: text_at(&self.texts, record.user_agent),
                at_ms: record.at_ms,
            };
            LogEntry { facts, kind: Kind::at(record.kind.into()), status: (status > 0).then_some(status) }
        })
    }

    fn copy(&self) -> Self {
        let records = self.records.iter().map(|record| Record {
            status: AtomicU16::new(record.status.load(Ordering::Relaxed)),
            ..*record
        });
        Self { first: self.first, records: records.collect(), texts: self.texts.clone() }
    }
}

fn text_at(texts: &[u8], Text(at): Text) -> &[u8] {
    let from = texts.get(at as usize..).unwrap_or_default();
    let Some((length, rest)) = from.split_first_chunk::<2>() else { return &[] };
    rest.get(..u16::from_le_bytes(*length).into()).unwrap_or_default()
}

/// An IPv4 address in its mapped form: no canonical address has that.
fn bytes_of(client: Address) -> [u8; 16] {
    match client.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

#[cfg(test)]
mod tests;
