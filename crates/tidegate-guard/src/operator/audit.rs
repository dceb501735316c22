//! The audit: entries in a ring of rows, the newest of which a row of its own names.

use tidegate_core::admission::{AUDIT_LIFE_MS, AUDIT_ROWS_MAX, Action, AuditEntry, AuditHead, Axis};
use tidegate_protocol::{control, identity::Digest, name::Family};
use tidegate_store::{Key, LimitStore, View};

use super::Unreadable;
use crate::{
    Refusal,
    admission::{encoded, row},
    guard::unavailable,
};

/// What an entry will say; when, and under which number, is known when it is written.
#[derive(Debug, Clone)]
pub(super) struct Note {
    pub(super) action: Action,
    pub(super) family: Option<Family>,
    pub(super) axis: Option<Axis>,
    pub(super) identity: Option<Digest>,
    pub(super) key: Option<Digest>,
    pub(super) reason: Option<String>,
    pub(super) from: String,
}

impl Note {
    pub(super) fn of(action: Action, from: &str) -> Self {
        let from = from.chars().take(FROM_CHARS_MAX).collect();
        Self { action, family: None, axis: None, identity: None, key: None, reason: None, from }
    }

    fn entry(&self, number: u64, at_ms: u64) -> AuditEntry {
        AuditEntry {
            number,
            at_ms,
            action: self.action,
            family: self.family.map(|family| family.as_str().to_owned()),
            axis: self.axis,
            identity: self.identity.map(|digest| digest.as_str().to_owned()),
            key: self.key.map(|digest| digest.as_str().to_owned()),
            reason: self.reason.clone(),
            from: self.from.clone(),
        }
    }
}

/// An address has 45 characters at most.
const FROM_CHARS_MAX: usize = 45;

/// The rows that `count` entries from number `next` on are written to: the head and theirs.
pub(super) fn keys(next: u64, count: usize) -> Vec<Key> {
    if count == 0 {
        return Vec::new();
    }
    let entries = (next..).take(count).map(entry_key);
    std::iter::once(head_key()).chain(entries).collect()
}

/// Writes the notes from number `next` on. False: that number is taken, and nothing was written. `place` is
/// that of the head among the update's keys.
pub(super) fn write(
    notes: &[Note],
    next: u64,
    place: usize,
    view: &mut View<'_>,
) -> Result<bool, Unreadable> {
    if notes.is_empty() {
        return Ok(true);
    }
    if row(view, place, AuditHead::decode).map_err(|_| Unreadable)?.unwrap_or_default().next != next {
        return Ok(false);
    }
    let now_ms = view.now_ms();
    for (index, (number, note)) in (next..).zip(notes).enumerate() {
        let entry = note.entry(number, now_ms);
        view.put_kept(place + 1 + index, encoded(|value| entry.encode(value)), now_ms + AUDIT_LIFE_MS);
    }
    let head = AuditHead { next: next + notes.len() as u64 };
    view.put_lasting(place, encoded(|value| head.encode(value)));
    Ok(true)
}

/// The entries of a store.
#[derive(Clone, Copy)]
pub(super) struct Ring<'a>(pub(super) &'a dyn LimitStore);

impl Ring<'_> {
    /// The number of the next entry.
    pub(super) async fn next_number(self) -> Result<u64, Refusal> {
        let rows = self.0.read(vec![head_key()]).await.map_err(unavailable)?;
        let head = rows.first().and_then(Option::as_ref).map(|entry| AuditHead::decode(&entry.value));
        head.transpose().map(|head| head.unwrap_or_default().next).map_err(|_| Refusal::Unavailable)
    }

    /// The newest entries, at most `limit`, newest first.
    pub(super) async fn newest(self, limit: usize) -> Result<control::Audit, Refusal> {
        let next = self.next_number().await?;
        let oldest = next.saturating_sub((limit as u64).min(AUDIT_ROWS_MAX));
        let numbers: Vec<u64> = (oldest..next).rev().collect();
        let mut entries = Vec::with_capacity(numbers.len());
        for numbers in numbers.chunks(READ_ROWS) {
            let keys = numbers.iter().copied().map(entry_key).collect();
            let rows = self.0.read(keys).await.map_err(unavailable)?;
            let found = numbers.iter().zip(rows).filter_map(|(number, row)| {
                // One that was written over meanwhile, or has come to its end, is not there any more.
                let entry = AuditEntry::decode(&row?.value).ok()?;
                (entry.number == *number).then_some(entry)
            });
            entries.extend(found.map(answer));
        }
        Ok(control::Audit { entries })
    }
}

/// Rows that are read at once.
const READ_ROWS: usize = 128;

fn answer(entry: AuditEntry) -> control::AuditEntry {
    let digest = |text: Option<String>| text.and_then(|text| Digest::parse(&text).ok());
    control::AuditEntry {
        at_ms: entry.at_ms,
        action: entry.action,
        family: entry.family.and_then(|family| Family::parse(&family).ok()),
        axis: entry.axis,
        identity: digest(entry.identity),
        key: digest(entry.key),
        reason: entry.reason,
        from: entry.from,
    }
}

fn head_key() -> Key {
    Key::of(&[b"audit", b"head"])
}

fn entry_key(number: u64) -> Key {
    Key::of(&[b"audit", &(number % AUDIT_ROWS_MAX).to_le_bytes()])
}
