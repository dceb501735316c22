//! The next segment, made ready before it is needed: a file full of bytes that are on the disk already, so
//! that flushing a frame in it does not have to write about the file as well.

use std::{io, sync::Arc};

use super::{Log, Segment};
use crate::{
    disk::{Disk, DiskFile},
    format::{HEADER_BYTES, Seal, SegmentHeader, StoreSeed, segment_name},
};

/// A segment that is being made keeps this name until it is whole.
pub(crate) const UNFINISHED: &str = "next.tmp";
/// Written and flushed in one go: a few milliseconds, which is the longest that a commit waits for it.
const STEP_BYTES: usize = 256 * 1024;
/// A new segment is begun when this part of the current one is full, and so is ready long before the rest is.
const BEGIN_AT: (u64, u64) = (1, 4);

/// A segment that is being made from nothing.
#[derive(Debug)]
pub(crate) struct Preparation {
    file: Arc<dyn DiskFile>,
    ready_bytes: u64,
}

impl Log {
    /// Whether it is time to do a step of [`Log::prepare_next`].
    pub(crate) fn wants_next(&self) -> bool {
        self.next.is_none() && self.position * BEGIN_AT.1 >= self.segment_bytes * BEGIN_AT.0
    }

    /// Does one bounded step towards the next segment.
    ///
    /// # Errors
    /// The disk failed; the next call starts again.
    pub(crate) fn prepare_next(&mut self) -> io::Result<()> {
        let header = SegmentHeader { seed: self.seed, number: self.current.number + 1 };
        if self.preparation.is_none()
            && let Some(spare) = self.spares.take(self.segment_bytes)
        {
            let file = self.disk.open(&spare)?;
            self.next = Some(finish(&*self.disk, &spare, file, header, self.segment_bytes)?);
            return Ok(());
        }
        let preparation = match self.preparation.take() {
            Some(preparation) => preparation,
            None => Preparation { file: self.disk.create(UNFINISHED)?, ready_bytes: 0 },
        };
        let preparation = preparation.step(self.segment_bytes)?;
        if preparation.ready_bytes < self.segment_bytes {
            self.preparation = Some(preparation);
        } else {
            self.next = Some(finish(&*self.disk, UNFINISHED, preparation.file, header, self.segment_bytes)?);
        }
        Ok(())
    }
}

impl Preparation {
    pub(crate) fn bytes(&self) -> u64 {
        self.ready_bytes
    }

    fn step(mut self, segment_bytes: u64) -> io::Result<Self> {
        let left = usize::try_from(segment_bytes - self.ready_bytes).unwrap_or(usize::MAX);
        let bytes = left.min(STEP_BYTES);
        self.file.write_at(&vec![0; bytes], self.ready_bytes)?;
        self.file.sync_data()?;
        self.ready_bytes += bytes as u64;
        Ok(self)
    }
}

/// The first segment of a new store.
///
/// # Errors
/// The disk failed; there is no store.
pub(crate) fn first_segment(disk: &dyn Disk, seed: StoreSeed, segment_bytes: u64) -> io::Result<Segment> {
    let mut preparation = Preparation { file: disk.create(UNFINISHED)?, ready_bytes: 0 };
    while preparation.ready_bytes < segment_bytes {
        preparation = preparation.step(segment_bytes)?;
    }
    finish(disk, UNFINISHED, preparation.file, SegmentHeader { seed, number: 1 }, segment_bytes)
}

/// Gives a file its header and, when that is safe on the disk, its name.
fn finish(
    disk: &dyn Disk,
    name: &str,
    file: Arc<dyn DiskFile>,
    header: SegmentHeader,
    size_bytes: u64,
) -> io::Result<Segment> {
    const { assert!(HEADER_BYTES == 512) };
    file.write_at(&header.to_bytes(), 0)?;
    file.sync_data()?;
    disk.rename(name, &segment_name(header.number))?;
    disk.sync_directory()?;
    Ok(Segment { number: header.number, file, seal: Seal::new(&header.seed, header.number), size_bytes })
}
