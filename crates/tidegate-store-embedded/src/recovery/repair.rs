//! Looks at a log without changing it, and makes one that is damaged fit to be opened.

use std::{io, path::Path, sync::Arc};

use super::{
    lock,
    scan::Checksums,
    walk::{Broken, Chain, Loaded, Stop, Survey, converge, read, walk},
};
use crate::{
    disk::{Disk, RealDisk},
    error::{Damage, DamageKind, OpenError, disk_error},
    format::{FrameBuffer, FrameHeader, FrameKind, Records, Seal, SegmentHeader, segment_name},
};

/// What a log is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// Segments that can be read.
    pub segments: u64,
    /// Frames that can be read.
    pub frames: u64,
    /// The last instant of the store's clock that the log knows, in ms since the epoch.
    pub now_ms: u64,
    /// Frames after the end of the log that were never promised; opening the store cuts them off.
    pub unpromised_frames: u64,
    /// The first damage, if there is any: the store can't be opened.
    pub damage: Option<Damage>,
}

/// What a repair did, step by step; empty if there was nothing to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repair {
    /// The steps.
    pub steps: Vec<RepairStep>,
}

/// A step of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepairStep {
    /// A segment's header was written anew. Nothing was lost.
    HeaderRestored {
        /// The segment's file.
        file: String,
    },
    /// The log was cut.
    Cut {
        /// The segment's file.
        file: String,
        /// Where.
        offset: u64,
        /// Readable frames after it, which are lost. The damaged ones are not counted.
        frames_lost: u64,
        /// Where copies of what was cut are.
        kept: Vec<String>,
    },
    /// The oldest segments are missing, and the log begins after them now: rows that were written last in
    /// them are lost.
    StartMoved {
        /// The segment's file that the log begins with.
        file: String,
    },
}

/// Reads the log of the store in the directory at `path`, and changes nothing.
///
/// # Errors
/// [`OpenError::InUse`], or the disk failed. Damage is an answer.
pub fn verify(path: &Path) -> Result<Verification, OpenError> {
    verify_disk(&existing(path)?)
}

/// [`verify`] on any disk.
///
/// # Errors
/// As for [`verify`].
pub fn verify_disk(disk: &dyn Disk) -> Result<Verification, OpenError> {
    let _guard = lock(disk)?;
    let Some(survey) = Survey::of(disk)? else { return Err(no_store(disk)) };
    let (chain, broken) = match inspect(disk, &survey, None) {
        Ok(chain) => (chain, None),
        Err(Stop::Broken(broken)) => (broken.before.clone(), Some(broken)),
        Err(Stop::Error(error)) => return Err(error),
    };
    Ok(Verification {
        segments: chain.segments,
        frames: chain.frames,
        now_ms: chain.now_ms(),
        unpromised_frames: chain.dropped.map_or(0, |dropped| dropped.frames),
        damage: broken.map(|broken| broken.damage(disk)),
    })
}

/// Makes the store in the directory at `path` fit to be opened: restores headers, and cuts the log at the
/// first frame that can't be read. Copies of what is cut are kept beside it.
///
/// # Errors
/// [`OpenError::InUse`], or the disk failed, or no header of any segment can be read.
pub fn repair(path: &Path) -> Result<Repair, OpenError> {
    repair_disk(&existing(path)?)
}

/// [`repair`] on any disk.
///
/// # Errors
/// As for [`repair`].
pub fn repair_disk(disk: &dyn Disk) -> Result<Repair, OpenError> {
    let _guard = lock(disk)?;
    let mut repair = Repair::default();
    let mut moved_start = None;
    loop {
        let Some(survey) = Survey::of(disk)? else { return Err(no_store(disk)) };
        let broken = match inspect(disk, &survey, moved_start) {
            Ok(chain) => {
                if let Some(start) = moved_start {
                    mark(disk, &survey, &chain, (chain.tail, chain.tail_offset), chain.lsn() + 1)?;
                    let file = disk.describe(&segment_name(start));
                    repair.steps.push(RepairStep::StartMoved { file });
                }
                return Ok(repair);
            }
            Err(Stop::Broken(broken)) => broken,
            Err(Stop::Error(error)) => return Err(error),
        };
        let start = broken.before.start;
        let next = survey.segments.range(start.saturating_add(1)..).next();
        match (broken.what, next) {
            (DamageKind::Header, _) => repair.steps.push(restore_header(disk, &survey, broken.number)?),
            (DamageKind::Foreign, _) => {
                keep_segment(disk, broken.number)?;
            }
            (DamageKind::Missing, Some((&next, _))) if broken.number == start => moved_start = Some(next),
            (DamageKind::Missing, None) if broken.number == start => {
                return Err(broken.damage(disk).into());
            }
            _ => repair.steps.push(cut(disk, &survey, &broken)?),
        }
    }
}

fn existing(path: &Path) -> Result<RealDisk, OpenError> {
    RealDisk::existing(path).map_err(disk_error(format!("opening {}", path.display())))
}

fn no_store(disk: &dyn Disk) -> OpenError {
    disk_error(format!("opening {}", disk.describe("")))(io::Error::new(
        io::ErrorKind::NotFound,
        "there is no store",
    ))
}

/// Walks the log, from `start` on if that is given, and reads every record.
fn inspect(disk: &dyn Disk, survey: &Survey, start: Option<u32>) -> Result<Chain, Stop> {
    let read = |start, _| {
        let mut no_sense = None;
        let chain = walk(disk, survey, start, Checksums::default(), |segment| {
            let bad = first_without_sense(&segment).map(|offset| (segment.number, offset));
            no_sense = no_sense.take().or(bad);
        })?;
        Ok((chain, no_sense))
    };
    let (chain, no_sense) = start.map_or_else(|| converge(survey, read), |start| read(start, 0))?;
    let Some((number, offset)) = no_sense else { return Ok(chain) };
    let before = before(disk, survey, chain.start, (number, offset))?;
    let later = chain.dropped.unwrap_or_default();
    Err(Stop::Broken(Box::new(Broken { number, offset, what: DamageKind::Records, before, later })))
}

fn first_without_sense(segment: &Arc<Loaded>) -> Option<usize> {
    let with_rows = |kind| matches!(kind, FrameKind::Batch | FrameKind::Copies);
    let frames = segment.frames.iter().filter(|frame| with_rows(frame.header.kind));
    let mut bad = frames.filter(|frame| {
        Records::new(&segment.bytes.0[frame.payload()], frame.header.now_ms).any(|record| record.is_err())
    });
    bad.next().map(|frame| frame.offset)
}

/// The log as far as the frame at this place.
fn before(disk: &dyn Disk, survey: &Survey, start: u32, place: (u32, usize)) -> Result<Chain, Stop> {
    let mut last = None;
    let mut chain = walk(disk, survey, start, Checksums::default(), |segment| {
        let frames = segment.frames.iter().map(|frame| ((segment.number, frame.offset), frame.header));
        last = frames.take_while(|&(at, _)| at < place).last().or(last);
    })?;
    chain.last_at = last.map(|(at, _)| at);
    chain.last = last.map(|(_, header)| header);
    Ok(chain)
}

fn restore_header(disk: &dyn Disk, survey: &Survey, number: u32) -> Result<RepairStep, OpenError> {
    let name = segment_name(number);
    let header = SegmentHeader { seed: survey.seed, number };
    let written = disk.open(&name).and_then(|file| {
        file.write_at(&header.to_bytes(), 0)?;
        file.sync_data()
    });
    written.map_err(disk_error(format!("writing the header of {}", disk.describe(&name))))?;
    Ok(RepairStep::HeaderRestored { file: disk.describe(&name) })
}

fn cut(disk: &dyn Disk, survey: &Survey, broken: &Broken) -> Result<RepairStep, OpenError> {
    // Where a segment is missing, the end frame that leads to it goes.
    let (number, offset) = match broken.before.last_at {
        Some(place) if broken.what == DamageKind::Missing => place,
        _ => (broken.number, broken.offset),
    };
    let lsn = match broken.before.last {
        Some(last) if broken.what == DamageKind::Missing => last.lsn,
        Some(last) => last.lsn + 1,
        None => broken.later.first_lsn.unwrap_or(1),
    };
    let mut kept = vec![keep_tail(disk, number, offset)?];
    let later: Vec<u32> = survey.segments.range(number + 1..).map(|(&number, _)| number).collect();
    for number in later.into_iter().rev() {
        kept.push(keep_segment(disk, number)?);
    }
    mark(disk, survey, &broken.before, (number, offset), lsn)?;
    Ok(RepairStep::Cut {
        file: disk.describe(&segment_name(number)),
        offset: offset as u64,
        frames_lost: broken.later.frames,
        kept,
    })
}

/// Copies what follows `offset` to a file of its own.
fn keep_tail(disk: &dyn Disk, number: u32, offset: usize) -> Result<String, OpenError> {
    let name = segment_name(number);
    let copy = format!("{name}.cut-{offset}");
    let bytes = read(disk, number, u64::MAX)?;
    let written = disk.create(&copy).and_then(|file| {
        file.write_at(bytes.get(offset..).unwrap_or_default(), 0)?;
        file.sync_data()?;
        disk.sync_directory()
    });
    written.map_err(disk_error(format!("copying the end of {}", disk.describe(&name))))?;
    Ok(disk.describe(&copy))
}

/// Puts a whole segment aside.
fn keep_segment(disk: &dyn Disk, number: u32) -> Result<String, OpenError> {
    let name = segment_name(number);
    let aside = format!("{name}.cut");
    let renamed = disk.rename(&name, &aside).and_then(|()| disk.sync_directory());
    renamed.map_err(disk_error(format!("putting {} aside", disk.describe(&name))))?;
    Ok(disk.describe(&aside))
}

/// Ends the log at this place: nothing but zeros behind a mark that says where the log begins.
fn mark(
    disk: &dyn Disk,
    survey: &Survey,
    chain: &Chain,
    (number, offset): (u32, usize),
    lsn: u64,
) -> Result<(), OpenError> {
    let now_ms = survey.newest.map_or(0, |newest| newest.now_ms).max(chain.now_ms());
    let header = FrameHeader::new(FrameKind::Mark, lsn, now_ms, lsn - 1, chain.start);
    let mut frame = FrameBuffer::default();
    frame.start();
    let frame = frame.finish(&Seal::new(&survey.seed, number), offset as u64, &header).to_vec();
    let written = disk.open(&segment_name(number)).and_then(|file| {
        let size_bytes = usize::try_from(file.size_bytes()?).map_err(io::Error::other)?;
        let mut bytes = frame;
        bytes.resize(bytes.len().max(size_bytes.saturating_sub(offset)), 0);
        file.write_at(&bytes, offset as u64)?;
        file.sync_data()
    });
    written.map_err(disk_error(format!("cutting {} at byte {offset}", disk.describe(&segment_name(number)))))
}
