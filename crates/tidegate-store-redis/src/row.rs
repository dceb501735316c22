//! A row's bytes: the version that it was written with, when it expires, and its value.

use thiserror::Error;
use tidegate_store::Entry;

/// Eight bytes that no two batches have in common: a row with the same version is the same row.
pub(crate) type Version = [u8; VERSION_BYTES];

/// Of no row.
pub(crate) const NO_VERSION: Version = [0; VERSION_BYTES];

/// Eight bytes that nobody else has.
pub(crate) fn unique() -> Version {
    let mut bytes = Version::default();
    getrandom::fill(&mut bytes).expect("the system has random numbers once it has started");
    bytes
}

/// A row as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) version: Version,
    pub(crate) entry: Entry,
}

/// Bytes under the name of a row that are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "a row has {bytes} bytes, which is too few to be one: something else writes under the store's prefix"
)]
pub(crate) struct BrokenRow {
    bytes: usize,
}

const VERSION_BYTES: usize = 8;
#[cfg(test)]
const HEAD_BYTES: usize = VERSION_BYTES + 8;

impl Row {
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, BrokenRow> {
        let broken = BrokenRow { bytes: bytes.len() };
        let (version, rest) = bytes.split_first_chunk().ok_or(broken)?;
        let (expires_at_ms, value) = rest.split_first_chunk().ok_or(broken)?;
        let entry = Entry { value: value.into(), expires_at_ms: u64::from_be_bytes(*expires_at_ms) };
        Ok(Self { version: *version, entry })
    }
}

/// Makes `bytes` those of `entry` as a batch of this version writes it.
pub(crate) fn encode(bytes: &mut Vec<u8>, version: Version, entry: &Entry) {
    bytes.clear();
    bytes.extend_from_slice(&version);
    bytes.extend_from_slice(&entry.expires_at_ms.to_be_bytes());
    bytes.extend_from_slice(&entry.value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidegate_store::LASTING_MS;

    use super::*;

    #[test]
    fn bytes_that_are_no_row() {
        for bytes in 0..HEAD_BYTES {
            assert_eq!(Row::decode(&vec![b'a'; bytes]), Err(BrokenRow { bytes }));
        }
        assert!(Row::decode(&[b'a'; HEAD_BYTES]).is_ok(), "an empty value is one");
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            version: Version,
            value in prop::collection::vec(any::<u8>(), 0..100),
            expires_at_ms in 0..=LASTING_MS,
        ) {
            let entry = Entry { value: value.as_slice().into(), expires_at_ms };
            let mut bytes = b"of another row".to_vec();
            encode(&mut bytes, version, &entry);
            prop_assert_eq!(Row::decode(&bytes), Ok(Row { version, entry }));
        }
    }
}
