//! Which byte in a record stands for which secret.

use std::collections::BTreeMap;

use tidegate_store::LIFE_MS_MAX;

use super::array;

/// Tags are 7 bits wide in a record.
const TAGS_MAX: u8 = 128;
/// Tag, whether there is a secret, its id, when it was last current.
const ENTRY_BYTES: usize = 1 + 1 + 8 + 8;

/// The secrets that live rows may have been written under.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Secrets(BTreeMap<u8, Known>);

/// More secrets than there are tags, all of them in use within the longest life of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManySecrets;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    id: Option<u64>,
    current_at_ms: u64,
}

impl Secrets {
    /// The tag of the secret `id`, which is current from `now_ms` on; a new tag if it is new. A tag is given
    /// to another secret only when every row that was written under it has expired.
    pub(crate) fn current(&mut self, id: Option<u64>, now_ms: u64) -> Result<u8, TooManySecrets> {
        let known = self.0.iter().find(|(_, known)| known.id == id).map(|(&tag, _)| tag);
        let tag = known.or_else(|| self.free_tag(now_ms)).ok_or(TooManySecrets)?;
        self.0.insert(tag, Known { id, current_at_ms: now_ms });
        Ok(tag)
    }

    /// Notes that the secret with this tag was still current at `now_ms`.
    pub(crate) fn was_current(&mut self, tag: u8, now_ms: u64) {
        if let Some(known) = self.0.get_mut(&tag) {
            known.current_at_ms = known.current_at_ms.max(now_ms);
        }
    }

    /// The secret that a tag stands for.
    pub(crate) fn id_of(&self, tag: u8) -> Option<Option<u64>> {
        self.0.get(&tag).map(|known| known.id)
    }

    /// The tag that was made current last.
    pub(crate) fn latest(&self) -> Option<u8> {
        self.0.iter().max_by_key(|(_, known)| known.current_at_ms).map(|(&tag, _)| tag)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        for (&tag, known) in &self.0 {
            out.extend([tag, u8::from(known.id.is_some())]);
            out.extend(known.id.unwrap_or_default().to_le_bytes());
            out.extend(known.current_at_ms.to_le_bytes());
        }
    }

    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let (entries, rest) = payload.as_chunks::<ENTRY_BYTES>();
        if !rest.is_empty() || entries.iter().any(|entry| entry[0] >= TAGS_MAX || entry[1] > 1) {
            return None;
        }
        let known = |entry: &[u8; ENTRY_BYTES]| Known {
            id: (entry[1] == 1).then(|| u64::from_le_bytes(array(entry, 2))),
            current_at_ms: u64::from_le_bytes(array(entry, 10)),
        };
        Some(Self(entries.iter().map(|entry| (entry[0], known(entry))).collect()))
    }

    fn free_tag(&self, now_ms: u64) -> Option<u8> {
        let unused = (0..TAGS_MAX).find(|tag| !self.0.contains_key(tag));
        let outlived = |known: &Known| known.current_at_ms.saturating_add(LIFE_MS_MAX) < now_ms;
        unused.or_else(|| self.0.iter().find(|(_, known)| outlived(known)).map(|(&tag, _)| tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_stay_until_their_rows_have_expired() {
        let mut secrets = Secrets::default();
        assert_eq!(secrets.current(None, 1), Ok(0));
        assert_eq!(secrets.current(Some(9), 2), Ok(1));
        assert_eq!(secrets.current(None, 3), Ok(0));
        assert_eq!(secrets.latest(), Some(0));
        for id in 100..226 {
            secrets.current(Some(id), 4).expect("126 tags are left");
        }
        assert_eq!(secrets.current(Some(1000), 5), Err(TooManySecrets));
        assert_eq!(secrets.current(Some(1000), 3 + LIFE_MS_MAX), Ok(1), "9 was current last at 2");

        let mut bytes = Vec::new();
        secrets.encode(&mut bytes);
        assert_eq!(Secrets::decode(&bytes), Some(secrets));
        assert_eq!(Secrets::decode(&bytes[1..]), None);
    }
}
