//! The next segment, made ready before it is needed: a file full of bytes that are on the disk already, so
//! that flushing a frame in it does not have to write about the file as well.

use std::{io, sync::Arc};

use super::{Log, Segment};
use crate::{
    disk::{Disk, DiskFile},
    format::{Seal, SegmentHeader, StoreSeed, segment_name},
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

/// One bounded step towards the next segment, to be done perhaps without holding the log.
#[derive(Debug)]
pub(crate) struct Step {
    disk: Arc<dyn Disk>,
    header: SegmentHeader,
    segment_bytes: u64,
    from: From,
}

/// What a segment is made from.
#[derive(Debug)]
enum From {
    Spare(String),
    Nothing,
    Begun(Preparation),
}

/// What a step came to.
#[derive(Debug)]
pub(crate) enum Stepped {
    Begun(Preparation),
    /// The disk failed. The next step does the same once more, and not all that was done before it: on a full
    /// disk every commit tries.
    Stuck(Preparation, io::Error),
    Ready(Segment),
}

impl Log {
    /// The next step towards the next segment, if it is time for one. [`Log::end_step`] has to follow.
    pub(crate) fn begin_step(&mut self) -> Option<Step> {
        self.wants_next().then(|| self.step())
    }

    /// Whether it is time to do a step.
    pub(crate) fn wants_next(&self) -> bool {
        let time = self.position * BEGIN_AT.1 >= self.segment_bytes * BEGIN_AT.0;
        time && self.next.is_none() && !self.preparing
    }

    /// Takes what the step came to.
    ///
    /// # Errors
    /// The disk failed, and the next step tries again.
    pub(crate) fn end_step(&mut self, stepped: io::Result<Stepped>) -> io::Result<()> {
        self.preparing = false;
        match stepped? {
            Stepped::Begun(preparation) => self.preparation = Some(preparation),
            Stepped::Stuck(preparation, error) => {
                self.preparation = Some(preparation);
                return Err(error);
            }
            Stepped::Ready(segment) => self.next = Some(segment),
        }
        Ok(())
    }

    /// Whether a batch of up to so many bytes has to wait for the end of a step.
    pub(crate) fn must_wait(&self, bytes_max: u64) -> bool {
        self.preparing && self.next.is_none() && self.position + bytes_max > self.segment_bytes
    }

    /// Makes the next segment at once.
    pub(super) fn prepare_now(&mut self) -> io::Result<()> {
        if self.preparing {
            return Err(io::Error::other("the next segment is being made elsewhere"));
        }
        while self.next.is_none() {
            let step = self.step();
            self.end_step(step.run())?;
        }
        Ok(())
    }

    fn step(&mut self) -> Step {
        self.preparing = true;
        let from = match self.preparation.take() {
            Some(preparation) => From::Begun(preparation),
            None => self.spares.take(self.segment_bytes).map_or(From::Nothing, From::Spare),
        };
        let header = SegmentHeader { seed: self.seed, number: self.current.number + 1 };
        Step { disk: Arc::clone(&self.disk), header, segment_bytes: self.segment_bytes, from }
    }
}

impl Step {
    /// Does it.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) fn run(self) -> io::Result<Stepped> {
        let mut preparation = match self.from {
            From::Spare(name) => {
                let file = self.disk.open(&name)?;
                return finish(&*self.disk, &name, file, self.header, self.segment_bytes).map(Stepped::Ready);
            }
            From::Nothing => Preparation { file: self.disk.create(UNFINISHED)?, ready_bytes: 0 },
            From::Begun(preparation) => preparation,
        };
        if let Err(error) = preparation.step(self.segment_bytes) {
            return Ok(Stepped::Stuck(preparation, error));
        }
        if preparation.ready_bytes < self.segment_bytes {
            return Ok(Stepped::Begun(preparation));
        }
        finish(&*self.disk, UNFINISHED, preparation.file, self.header, self.segment_bytes).map(Stepped::Ready)
    }
}

impl Preparation {
    pub(crate) fn bytes(&self) -> u64 {
        self.ready_bytes
    }

    fn step(&mut self, segment_bytes: u64) -> io::Result<()> {
        let left = usize::try_from(segment_bytes - self.ready_bytes).unwrap_or(usize::MAX);
        let bytes = left.min(STEP_BYTES);
        self.file.write_at(&vec![0; bytes], self.ready_bytes)?;
        self.file.sync_data()?;
        self.ready_bytes += bytes as u64;
        Ok(())
    }
}

/// The first segment of a new store.
///
/// # Errors
/// The disk failed; there is no store.
pub(crate) fn first_segment(disk: &dyn Disk, seed: StoreSeed, segment_bytes: u64) -> io::Result<Segment> {
    let mut preparation = Preparation { file: disk.create(UNFINISHED)?, ready_bytes: 0 };
    while preparation.ready_bytes < segment_bytes {
        preparation.step(segment_bytes)?;
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
    file.write_at(&header.to_bytes(), 0)?;
    file.sync_data()?;
    disk.rename(name, &segment_name(header.number))?;
    disk.sync_directory()?;
    Ok(Segment { number: header.number, file, seal: Seal::new(&header.seed, header.number), size_bytes })
}
