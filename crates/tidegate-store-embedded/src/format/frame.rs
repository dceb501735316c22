//! Frames: what one positioned write puts into a segment.

use crc32fast::Hasher;

use super::{StoreSeed, array};

/// Bytes of a frame before its payload.
pub(crate) const FRAME_HEADER_BYTES: usize = 48;
/// More than any batch needs; a length beyond it is not one of ours.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1 << 30;
/// Frames start at multiples of this, so that looking for one after a damage is quick.
const ALIGNMENT: usize = 8;

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// The changes of one batch.
    Batch,
    /// Live rows out of old segments that shall go.
    Copies,
    /// Which byte stands for which secret from here on.
    Secrets,
    /// Nothing but the header: tells the time and what is durable.
    Mark,
    /// The log goes on in the next segment.
    End,
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    pub(crate) payload_bytes: usize,
    /// Counts the frames of the store, from 1.
    pub(crate) lsn: u64,
    /// The store's clock.
    pub(crate) now_ms: u64,
    /// Every frame up to this one was flushed before this frame was written.
    pub(crate) durable_lsn: u64,
    /// Segments before this one hold nothing that is needed.
    pub(crate) oldest_segment: u32,
    payload_crc: u32,
}

/// Seals the frames of one segment: their checksums are good in this segment and place only, so that neither
/// what a recycled file held before nor bytes inside a value can pass for a frame.
#[derive(Debug, Clone)]
pub(crate) struct Seal(Hasher);

/// A frame that is being put together; keeps its memory from one frame to the next.
#[derive(Debug, Default)]
pub(crate) struct FrameBuffer(Vec<u8>);

/// The bytes that a frame takes up in a segment.
pub(crate) const fn frame_bytes(payload_bytes: usize) -> usize {
    (FRAME_HEADER_BYTES + payload_bytes).next_multiple_of(ALIGNMENT)
}

impl FrameKind {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Batch, Self::Copies, Self::Secrets, Self::Mark, Self::End]
            .into_iter()
            .find(|kind| kind.to_byte() == byte)
    }

    const fn to_byte(self) -> u8 {
        match self {
            Self::Batch => 1,
            Self::Copies => 2,
            Self::Secrets => 3,
            Self::Mark => 4,
            Self::End => 5,
        }
    }
}

impl Seal {
    pub(crate) fn new(seed: &StoreSeed, segment: u32) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(seed);
        hasher.update(&segment.to_le_bytes());
        Self(hasher)
    }

    fn of(&self, offset: u64, parts: [&[u8]; 2]) -> u32 {
        let mut hasher = self.0.clone();
        hasher.update(&offset.to_le_bytes());
        parts.into_iter().for_each(|part| hasher.update(part));
        hasher.finalize()
    }

    /// The header at `offset`, if a whole one of this segment and place stands there. Its payload may still
    /// be damaged or cut off; see [`Seal::payload`].
    pub(crate) fn header(&self, segment: &[u8], offset: usize) -> Option<FrameHeader> {
        let bytes = segment.get(offset..offset.checked_add(FRAME_HEADER_BYTES)?)?;
        let kind = FrameKind::from_byte(bytes[40])?;
        let payload_bytes = u32::from_le_bytes(array(bytes, 0)) as usize;
        let crc = u32::from_le_bytes(array(bytes, 4));
        if payload_bytes > PAYLOAD_BYTES_MAX || bytes[41..] != [0; 7] || crc != self.header_crc(offset, bytes)
        {
            return None;
        }
        Some(FrameHeader {
            kind,
            payload_bytes,
            lsn: u64::from_le_bytes(array(bytes, 8)),
            now_ms: u64::from_le_bytes(array(bytes, 16)),
            durable_lsn: u64::from_le_bytes(array(bytes, 24)),
            oldest_segment: u32::from_le_bytes(array(bytes, 32)),
            payload_crc: u32::from_le_bytes(array(bytes, 36)),
        })
    }

    /// The payload of the frame at `offset`, if it is whole and what was written.
    pub(crate) fn payload<'a>(
        &self,
        segment: &'a [u8],
        offset: usize,
        header: &FrameHeader,
    ) -> Option<&'a [u8]> {
        let payload = self.payload_unchecked(segment, offset, header)?;
        (self.of(offset as u64, [payload, &[]]) == header.payload_crc).then_some(payload)
    }

    /// The bytes where the payload should be.
    pub(crate) fn payload_unchecked<'a>(
        &self,
        segment: &'a [u8],
        offset: usize,
        header: &FrameHeader,
    ) -> Option<&'a [u8]> {
        let start = offset + FRAME_HEADER_BYTES;
        segment.get(start..start + header.payload_bytes)
    }

    fn header_crc(&self, offset: usize, bytes: &[u8]) -> u32 {
        self.of(offset as u64, [&bytes[..4], &bytes[8..FRAME_HEADER_BYTES]])
    }
}

impl FrameBuffer {
    /// Forgets the last frame; answers where the payload goes.
    pub(crate) fn start(&mut self) -> &mut Vec<u8> {
        self.0.clear();
        self.0.resize(FRAME_HEADER_BYTES, 0);
        &mut self.0
    }

    pub(crate) fn payload_bytes(&self) -> usize {
        self.0.len() - FRAME_HEADER_BYTES
    }

    /// Gives back memory that one large batch took.
    pub(crate) fn shrink(&mut self, bytes_max: usize) {
        self.0.clear();
        self.0.shrink_to(bytes_max);
    }

    /// The whole frame, as it goes to `offset`.
    pub(crate) fn finish(&mut self, seal: &Seal, offset: u64, header: &FrameHeader) -> &[u8] {
        let payload_bytes = u32::try_from(self.payload_bytes()).expect("bounded by PAYLOAD_BYTES_MAX");
        self.0.resize(frame_bytes(self.payload_bytes()), 0);
        let (head, rest) = self.0.split_at_mut(FRAME_HEADER_BYTES);
        let payload_crc = seal.of(offset, [&rest[..payload_bytes as usize], &[]]);
        head[..4].copy_from_slice(&payload_bytes.to_le_bytes());
        head[8..16].copy_from_slice(&header.lsn.to_le_bytes());
        head[16..24].copy_from_slice(&header.now_ms.to_le_bytes());
        head[24..32].copy_from_slice(&header.durable_lsn.to_le_bytes());
        head[32..36].copy_from_slice(&header.oldest_segment.to_le_bytes());
        head[36..40].copy_from_slice(&payload_crc.to_le_bytes());
        head[40] = header.kind.to_byte();
        let crc = seal.of(offset, [&head[..4], &head[8..]]);
        head[4..8].copy_from_slice(&crc.to_le_bytes());
        &self.0
    }
}

impl FrameHeader {
    /// A header whose checksum [`FrameBuffer::finish`] fills in.
    pub(crate) fn new(kind: FrameKind, lsn: u64, now_ms: u64, durable_lsn: u64, oldest_segment: u32) -> Self {
        Self { kind, payload_bytes: 0, lsn, now_ms, durable_lsn, oldest_segment, payload_crc: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_good_in_its_own_segment_and_place_only() {
        let seal = Seal::new(&[7; 16], 3);
        let mut buffer = FrameBuffer::default();
        buffer.start().extend(b"some payload");
        let mut segment = vec![0; 64];
        segment.extend(buffer.finish(&seal, 64, &FrameHeader::new(FrameKind::Batch, 9, 1000, 8, 2)));
        let header = seal.header(&segment, 64).expect("just written");
        assert_eq!((header.lsn, header.now_ms, header.durable_lsn, header.oldest_segment), (9, 1000, 8, 2));
        assert_eq!(seal.payload(&segment, 64, &header), Some(&b"some payload"[..]));

        assert_eq!(Seal::new(&[7; 16], 4).header(&segment, 64), None, "another segment");
        assert_eq!(Seal::new(&[8; 16], 3).header(&segment, 64), None, "another store");
        let moved = [&[0; 72][..], &segment[64..]].concat();
        assert_eq!(seal.header(&moved, 72), None, "another place");
        for bit in 64 * 8..(64 + FRAME_HEADER_BYTES + 12) * 8 {
            let mut flipped = segment.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let whole = seal
                .header(&flipped, 64)
                .and_then(|header| seal.payload(&flipped, 64, &header).map(<[u8]>::len));
            assert_eq!(whole, None, "bit {bit}");
        }
    }
}
