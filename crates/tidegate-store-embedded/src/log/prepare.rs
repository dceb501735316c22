//! The next segment, made ready before it is needed: a file full of bytes that are on the disk already, so
//! that flushing a frame in it does not have to write about the file as well. And the file of the one after
//! it: a spare one, or one that was made and has no name yet.

use std::{io, sync::Arc};

use super::{Log, Segment, spares::Spare};
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
    /// Nothing if it is the file of the segment after the next one.
    header: Option<SegmentHeader>,
    segment_bytes: u64,
    from: From,
}

/// What a segment is made from.
#[derive(Debug)]
enum From {
    Spare(Spare, SegmentHeader),
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
    /// It could not be made of this file, which is still there.
    Unfit(Spare, io::Error),
    Ready(Segment),
}

impl Log {
    /// The next step towards the next segment, if it is time for one. [`Log::end_step`] has to follow.
    pub(crate) fn begin_step(&mut self) -> Option<Step> {
        self.wants_next().then(|| self.step())
    }

    /// Whether it is time to do a step.
    pub(crate) fn wants_next(&self) -> bool {
        let full = self.position * BEGIN_AT.1 >= self.segment_bytes * BEGIN_AT.0;
        (full || self.awaited || self.starved || self.lent) && self.lacks_file() && !self.preparing
    }

    /// Takes what the step came to.
    ///
    /// # Errors
    /// The disk failed, and the next step tries again.
    pub(crate) fn end_step(&mut self, stepped: io::Result<Stepped>) -> io::Result<()> {
        self.preparing = false;
        self.starved = !matches!(stepped, Ok(Stepped::Begun(_) | Stepped::Ready(_)));
        match stepped? {
            Stepped::Begun(preparation) => self.preparation = Some(preparation),
            Stepped::Stuck(preparation, error) => {
                self.preparation = Some(preparation);
                return Err(error);
            }
            Stepped::Unfit(spare, error) => {
                self.spares.add_unfit(spare);
                return Err(error);
            }
            Stepped::Ready(segment) => {
                self.next = Some(segment);
                self.lent = false;
            }
        }
        Ok(())
    }

    pub(super) fn preparation_is_whole(&self) -> bool {
        self.preparation.as_ref().is_some_and(|preparation| preparation.ready_bytes >= self.segment_bytes)
    }

    /// Does a step at once.
    pub(super) fn step_now(&mut self) -> io::Result<()> {
        if self.preparing {
            return Err(io::Error::other("the next segment is being made elsewhere"));
        }
        let step = self.step();
        self.end_step(step.run())
    }

    fn step(&mut self) -> Step {
        self.preparing = true;
        let header = SegmentHeader { seed: self.seed, number: self.current.number + 1 };
        let header = self.next.is_none().then_some(header);
        // One that was begun may be stuck on a full disk, and then a spare one helps.
        let spare = header.filter(|_| !self.preparation_is_whole()).and_then(|header| {
            let spare = self.spares.take(self.segment_bytes)?;
            Some(From::Spare(spare, header))
        });
        let from = spare.unwrap_or_else(|| self.preparation.take().map_or(From::Nothing, From::Begun));
        Step { disk: Arc::clone(&self.disk), header, segment_bytes: self.segment_bytes, from }
    }
}

impl Step {
    /// Does it.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) fn run(self) -> io::Result<Stepped> {
        let disk = &*self.disk;
        let mut preparation = match self.from {
            From::Spare(spare, header) => return reuse(disk, spare, header),
            From::Nothing => Preparation { file: disk.create(UNFINISHED)?, ready_bytes: 0 },
            From::Begun(preparation) => preparation,
        };
        if let Err(error) = preparation.step(self.segment_bytes) {
            return Ok(Stepped::Stuck(preparation, error));
        }
        match self.header.filter(|_| preparation.ready_bytes >= self.segment_bytes) {
            Some(header) => finish(disk, UNFINISHED, preparation.file, header, self.segment_bytes)
                .map(Stepped::Ready)
                .map_err(Unfinished::into_error),
            None => Ok(Stepped::Begun(preparation)),
        }
    }
}

impl Preparation {
    pub(crate) fn bytes(&self) -> u64 {
        self.ready_bytes
    }

    fn step(&mut self, segment_bytes: u64) -> io::Result<()> {
        if self.ready_bytes >= segment_bytes {
            return Ok(());
        }
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
        .map_err(Unfinished::into_error)
}

/// Makes a segment of a spare file.
fn reuse(disk: &dyn Disk, spare: Spare, header: SegmentHeader) -> io::Result<Stepped> {
    let finished = match disk.open(&spare.name) {
        Ok(file) => finish(disk, &spare.name, file, header, spare.size_bytes),
        Err(error) => Err(Unfinished::Unnamed(error)),
    };
    match finished {
        Ok(segment) => Ok(Stepped::Ready(segment)),
        Err(Unfinished::Unnamed(error)) => Ok(Stepped::Unfit(spare, error)),
        Err(Unfinished::Named(error)) => Err(error),
    }
}

/// How a file did not become a segment.
#[derive(Debug)]
enum Unfinished {
    /// It has the name that it had.
    Unnamed(io::Error),
    /// It has the segment's name, perhaps not for good. The next try puts another file in its place.
    Named(io::Error),
}

impl Unfinished {
    fn into_error(self) -> io::Error {
        match self {
            Self::Unnamed(error) | Self::Named(error) => error,
        }
    }
}

/// Gives a file its header and, when that is safe on the disk, its name.
fn finish(
    disk: &dyn Disk,
    name: &str,
    file: Arc<dyn DiskFile>,
    header: SegmentHeader,
    size_bytes: u64,
) -> Result<Segment, Unfinished> {
    let written = file.write_at(&header.to_bytes(), 0).and_then(|()| file.sync_data());
    let named = written.and_then(|()| disk.rename(name, &segment_name(header.number)));
    named.map_err(Unfinished::Unnamed)?;
    disk.sync_directory().map_err(Unfinished::Named)?;
    Ok(Segment { number: header.number, file, seal: Seal::new(&header.seed, header.number), size_bytes })
}
