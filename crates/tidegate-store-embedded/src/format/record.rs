//! Records: the rows in a frame's payload.

use tidegate_store::{Key, VALUE_BYTES_MAX};

use super::{array, varint};

/// A row as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) key: Key,
    /// Stands for the secret that the row was written under.
    pub(crate) tag: u8,
    /// Its expiry and value; nothing if the row was removed.
    pub(crate) put: Option<(u64, &'a [u8])>,
}

/// A payload that is what was written, going by its checksum, and yet not a list of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The records of a payload, in order. Ends at the first that is malformed.
#[derive(Debug, Clone)]
pub(crate) struct Records<'a> {
    rest: &'a [u8],
    now_ms: u64,
}

/// What a row takes up in the log, about; for judging how much of the log is live.
pub(crate) const fn record_bytes(value_bytes: usize) -> u64 {
    (1 + Key::BYTES + 5 + 2 + value_bytes) as u64
}

pub(crate) fn encode_put(
    out: &mut Vec<u8>,
    now_ms: u64,
    key: &Key,
    tag: u8,
    expires_at_ms: u64,
    value: &[u8],
) {
    out.push(tag << 1 | 1);
    out.extend_from_slice(key.as_bytes());
    varint::put(out, varint::zigzag_from(now_ms, expires_at_ms));
    varint::put(out, value.len() as u64);
    out.extend_from_slice(value);
}

pub(crate) fn encode_delete(out: &mut Vec<u8>, key: &Key, tag: u8) {
    out.push(tag << 1);
    out.extend_from_slice(key.as_bytes());
}

impl<'a> Records<'a> {
    /// The records of a frame that was written at `now_ms`.
    pub(crate) fn new(payload: &'a [u8], now_ms: u64) -> Self {
        Self { rest: payload, now_ms }
    }

    fn record(&mut self) -> Option<Record<'a>> {
        let (head, rest) = self.rest.split_at_checked(1 + Key::BYTES)?;
        self.rest = rest;
        let (tag, key) = (head[0] >> 1, Key::from_bytes(array(head, 1)));
        if head[0] & 1 == 0 {
            return Some(Record { key, tag, put: None });
        }
        let expires_at_ms = varint::unzigzag_from(self.now_ms, varint::take(&mut self.rest)?);
        let value_bytes = usize::try_from(varint::take(&mut self.rest)?).ok()?;
        if value_bytes > VALUE_BYTES_MAX {
            return None;
        }
        let (value, rest) = self.rest.split_at_checked(value_bytes)?;
        self.rest = rest;
        Some(Record { key, tag, put: Some((expires_at_ms, value)) })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let record = self.record().ok_or(Malformed);
        if record.is_err() {
            self.rest = &[];
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trips(
            now_ms in 0_u64..1 << 48,
            rows in prop::collection::vec((any::<[u8; 24]>(), 0_u8..128, prop::option::of((0_u64..1 << 48, prop::collection::vec(any::<u8>(), 0..200)))), 0..20),
        ) {
            let mut payload = Vec::new();
            for (key, tag, put) in &rows {
                match put {
                    Some((expires_at_ms, value)) => {
                        encode_put(&mut payload, now_ms, &Key::from_bytes(*key), *tag, *expires_at_ms, value);
                    }
                    None => encode_delete(&mut payload, &Key::from_bytes(*key), *tag),
                }
            }
            let read: Vec<_> = Records::new(&payload, now_ms).collect::<Result<_, _>>().expect("just written");
            let expected: Vec<_> = rows
                .iter()
                .map(|(key, tag, put)| Record {
                    key: Key::from_bytes(*key),
                    tag: *tag,
                    put: put.as_ref().map(|(expires_at_ms, value)| (*expires_at_ms, value.as_slice())),
                })
                .collect();
            prop_assert_eq!(read, expected);
        }

        #[test]
        fn any_bytes_end(payload: Vec<u8>) {
            prop_assert!(Records::new(&payload, 5).count() <= payload.len());
        }
    }
}
