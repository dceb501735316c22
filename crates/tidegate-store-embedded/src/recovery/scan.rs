//! What one segment holds.

use std::ops::Range;

use crate::format::{FRAME_HEADER_BYTES, FrameHeader, FrameKind, HEADER_BYTES, Seal, frame_bytes};

/// A frame that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) header: FrameHeader,
    pub(crate) offset: usize,
}

/// The frames from a segment's start on, without a gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scan {
    pub(crate) frames: Vec<Frame>,
    /// The first byte after them.
    pub(crate) end: usize,
    /// Whether the last of them says that the log goes on in the next segment.
    pub(crate) sealed: bool,
}

/// Frames that were written after one that can't be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Later {
    pub(crate) frames: u64,
    /// The newest frame that one of them knows to have been flushed.
    pub(crate) durable_lsn: u64,
    pub(crate) first_lsn: Option<u64>,
    pub(crate) last: Option<FrameHeader>,
}

impl Frame {
    /// Where its payload is in the segment.
    pub(crate) fn payload(&self) -> Range<usize> {
        let start = self.offset + FRAME_HEADER_BYTES;
        start..start + self.header.payload_bytes
    }
}

impl Scan {
    /// Reads the frames of `segment`, of which the first is the `first_lsn`-th if that is known.
    pub(crate) fn of(segment: &[u8], seal: &Seal, first_lsn: Option<u64>, checksums: Checksums) -> Self {
        let mut scan = Self { frames: Vec::new(), end: HEADER_BYTES, sealed: false };
        let mut expected = first_lsn;
        while !scan.sealed {
            let offset = scan.end;
            let Some(header) = seal.header(segment, offset) else { break };
            let whole = match checksums {
                Checksums::Checked => seal.payload(segment, offset, &header),
                #[cfg(test)]
                Checksums::Believed => seal.payload_unchecked(segment, offset, &header),
            };
            if whole.is_none() || expected.is_some_and(|lsn| lsn != header.lsn) {
                break;
            }
            scan.frames.push(Frame { header, offset });
            scan.end = offset + frame_bytes(header.payload_bytes);
            scan.sealed = header.kind == FrameKind::End;
            expected = header.lsn.checked_add(1);
        }
        scan
    }
}

/// Whether the checksum of a payload decides; anything else is for showing that the tests would notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Checksums {
    #[default]
    Checked,
    #[cfg(test)]
    Believed,
}

impl Later {
    /// Looks for headers of frames from `lsn_min` on in `segment`, at `from` and after it. Only headers are
    /// judged: one that is whole shows that something was written there.
    pub(crate) fn look(&mut self, segment: &[u8], seal: &Seal, from: usize, lsn_min: u64) {
        let mut offset = from;
        while offset + FRAME_HEADER_BYTES <= segment.len() {
            let header = seal.header(segment, offset).filter(|header| header.lsn >= lsn_min);
            if let Some(header) = header {
                self.frames += 1;
                self.durable_lsn = self.durable_lsn.max(header.durable_lsn);
                self.first_lsn = Some(self.first_lsn.unwrap_or(header.lsn).min(header.lsn));
                self.last = self.last.filter(|last| last.lsn > header.lsn).or(Some(header));
            }
            offset += 8;
        }
    }
}
