//! The bytes of one row in memory.

use tidegate_store::Key;

use crate::format::array;

/// Bytes before the value.
pub(crate) const SLOT_HEADER_BYTES: usize = 47;
/// No slot.
pub(crate) const NONE: u32 = u32::MAX;
/// Expiries are kept in 48 bits, which end in the year 10889.
pub(crate) const EXPIRES_AT_MS_MAX: u64 = (1 << 48) - 1;
/// The tag of a slot that holds no row.
const FREE: u8 = 0xff;

const KEY: usize = 0;
const EXPIRES_AT_MS: usize = 24;
const TAG: usize = 30;
const VALUE_BYTES: usize = 31;
const BUCKET: usize = 33;
const SEGMENT: usize = 35;
const NEXT: usize = 39;
const PREVIOUS: usize = 43;

/// A slot to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot<'a>(pub(crate) &'a [u8]);

/// A slot to write.
#[derive(Debug)]
pub(crate) struct SlotMut<'a>(pub(crate) &'a mut [u8]);

/// What identifies a row: its key, and the tag of the secret it was written under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) key: Key,
    pub(crate) tag: u8,
}

impl<'a> Slot<'a> {
    pub(crate) fn is_free(self) -> bool {
        self.0[TAG] == FREE
    }

    pub(crate) fn holds(self, name: &Name) -> bool {
        self.0[KEY..KEY + Key::BYTES] == *name.key.as_bytes() && self.0[TAG] == name.tag
    }

    pub(crate) fn name(self) -> Name {
        Name { key: Key::from_bytes(array(self.0, KEY)), tag: self.0[TAG] }
    }

    pub(crate) fn hash_bits(self) -> u64 {
        Key::from_bytes(array(self.0, KEY)).hash_bits()
    }

    pub(crate) fn expires_at_ms(self) -> u64 {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.0[EXPIRES_AT_MS..EXPIRES_AT_MS + 6]);
        u64::from_le_bytes(bytes)
    }

    pub(crate) fn value_bytes(self) -> usize {
        usize::from(u16::from_le_bytes(array(self.0, VALUE_BYTES)))
    }

    pub(crate) fn value(self) -> &'a [u8] {
        &self.0[SLOT_HEADER_BYTES..SLOT_HEADER_BYTES + self.value_bytes()]
    }

    /// In which bucket of the wheel the row is filed.
    pub(crate) fn bucket(self) -> u16 {
        u16::from_le_bytes(array(self.0, BUCKET))
    }

    /// The segment of the log that holds the row's newest record.
    pub(crate) fn segment(self) -> u32 {
        u32::from_le_bytes(array(self.0, SEGMENT))
    }

    /// The next slot of the bucket, or of the page's free ones.
    pub(crate) fn next(self) -> u32 {
        u32::from_le_bytes(array(self.0, NEXT))
    }

    pub(crate) fn previous(self) -> u32 {
        u32::from_le_bytes(array(self.0, PREVIOUS))
    }
}

impl SlotMut<'_> {
    pub(crate) fn free(&mut self) {
        self.0[TAG] = FREE;
    }

    pub(crate) fn set_name(&mut self, name: &Name) {
        self.0[KEY..KEY + Key::BYTES].copy_from_slice(name.key.as_bytes());
        self.0[TAG] = name.tag;
    }

    /// `value` fits, since the slot was chosen for it.
    pub(crate) fn set_row(&mut self, expires_at_ms: u64, value: &[u8], segment: u32) {
        let value_bytes = u16::try_from(value.len()).expect("values are bounded by VALUE_BYTES_MAX");
        self.0[EXPIRES_AT_MS..EXPIRES_AT_MS + 6].copy_from_slice(&expires_at_ms.to_le_bytes()[..6]);
        self.put(VALUE_BYTES, value_bytes.to_le_bytes());
        self.set_segment(segment);
        self.0[SLOT_HEADER_BYTES..SLOT_HEADER_BYTES + value.len()].copy_from_slice(value);
    }

    pub(crate) fn set_bucket(&mut self, bucket: u16) {
        self.put(BUCKET, bucket.to_le_bytes());
    }

    pub(crate) fn set_segment(&mut self, segment: u32) {
        self.put(SEGMENT, segment.to_le_bytes());
    }

    pub(crate) fn set_next(&mut self, next: u32) {
        self.put(NEXT, next.to_le_bytes());
    }

    pub(crate) fn set_previous(&mut self, previous: u32) {
        self.put(PREVIOUS, previous.to_le_bytes());
    }

    fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        self.0[at..at + N].copy_from_slice(&bytes);
    }
}
