//! Opens a store that is there, or makes a new one.

mod build;
mod repair;
mod scan;
mod walk;

use std::io;

use tidegate_store::clock::Clock;
use tracing::{info, warn};

pub(crate) use build::build;
pub use repair::{Repair, RepairStep, Verification, repair, repair_disk, verify, verify_disk};
pub(crate) use scan::Checksums;
use walk::{Chain, Survey, converge, damage, walk};

use crate::{
    disk::{Disk, Guard, LockError},
    error::{DamageKind, OpenError, disk_error},
    format::{HEADER_BYTES, Seal, Secrets, SegmentHeader, segment_name},
    log::{Found, Sealed, Segment, UNFINISHED, first_segment},
    rows::Rows,
};

/// What a store holds.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) rows: Rows,
    pub(crate) found: Found,
}

/// Reads the log, makes it fit to go on with, and moves `clock` on to its last instant.
pub(crate) fn recover(
    disk: &dyn Disk,
    clock: &dyn Clock,
    segment_bytes: u64,
    checksums: Checksums,
) -> Result<Recovered, OpenError> {
    remove_unfinished(disk)?;
    let Some(survey) = Survey::of(disk)? else { return begin(disk, segment_bytes) };
    let (chain, rows) = read(disk, &survey, clock, checksums)?;
    if let Some(dropped) = &chain.dropped {
        warn!(
            file = disk.describe(&segment_name(chain.tail)),
            offset = chain.tail_offset,
            frames = dropped.frames,
            "a frame at the end of the log can't be read; it was never known to be on the disk, and it was cut \
             off with the frames that follow it"
        );
        cut(disk, &survey, &chain)?;
    }
    let found = prepare(disk, &survey, &chain)?;
    info!(segments = chain.segments, frames = chain.frames, rows = rows.count(), "log read");
    Ok(Recovered { rows, found })
}

/// Walks the log and builds the rows, beginning where the log itself says, however it ends.
fn read(
    disk: &dyn Disk,
    survey: &Survey,
    clock: &dyn Clock,
    checksums: Checksums,
) -> Result<(Chain, Rows), OpenError> {
    let (chain, rows) = converge(survey, |start, now_ms| {
        build(now_ms.max(clock.now_ms()), |visit| walk(disk, survey, start, checksums, visit))
    })
    .map_err(|stop| stop.into_error(disk))?;
    let rows = rows.map_err(|place| damage(disk, place.segment, place.offset, DamageKind::Records))?;
    clock.advance_to(chain.now_ms());
    Ok((chain, rows))
}

/// Keeps other processes out of the store until the answer is dropped.
pub(crate) fn lock(disk: &dyn Disk) -> Result<Box<dyn Guard>, OpenError> {
    disk.lock().map_err(|error| match error {
        LockError::Held(holder) => OpenError::InUse { directory: disk.describe(""), holder },
        LockError::Failed(cause) => disk_error(format!("locking {}", disk.describe("")))(cause),
    })
}

fn begin(disk: &dyn Disk, segment_bytes: u64) -> Result<Recovered, OpenError> {
    let mut seed = [0; 16];
    getrandom::fill(&mut seed)
        .map_err(|error| disk_error("drawing the store's seed")(io::Error::other(error.to_string())))?;
    let doing = || format!("making the first segment in {}", disk.describe(""));
    let current = first_segment(disk, seed, segment_bytes).map_err(disk_error(doing()))?;
    let found = Found {
        seed,
        secrets: Secrets::default(),
        sealed: [].into(),
        current,
        position: HEADER_BYTES as u64,
        next: None,
        garbage: Vec::new(),
        lsn: 0,
        told_durable_lsn: 0,
        last_now_ms: 0,
        oldest_segment: 1,
    };
    Ok(Recovered { rows: Rows::new(), found })
}

fn remove_unfinished(disk: &dyn Disk) -> Result<(), OpenError> {
    match disk.remove(UNFINISHED) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(disk_error(format!("removing {}", disk.describe(UNFINISHED)))(error))
        }
        _ => Ok(()),
    }
}

/// Removes what follows the end of the log, so that it can't be taken for a part of it later.
fn cut(disk: &dyn Disk, survey: &Survey, chain: &Chain) -> Result<(), OpenError> {
    let doing =
        || format!("cutting {} at byte {}", disk.describe(&segment_name(chain.tail)), chain.tail_offset);
    let later: Vec<u32> = survey.segments.range(chain.tail + 1..).map(|(&number, _)| number).collect();
    for number in later.into_iter().rev() {
        let removed = disk.remove(&segment_name(number)).and_then(|()| disk.sync_directory());
        removed.map_err(disk_error(doing()))?;
    }
    clear_tail(disk, chain).map_err(disk_error(doing()))
}

/// Writes zeros from the end of the log to the end of its file.
fn clear_tail(disk: &dyn Disk, chain: &Chain) -> io::Result<()> {
    let file = disk.open(&segment_name(chain.tail))?;
    let size_bytes = usize::try_from(file.size_bytes()?).map_err(io::Error::other)?;
    file.write_at(&vec![0; size_bytes.saturating_sub(chain.tail_offset)], chain.tail_offset as u64)?;
    file.sync_data()
}

/// Makes sure that what was read is on the disk, and sorts the files.
fn prepare(disk: &dyn Disk, survey: &Survey, chain: &Chain) -> Result<Found, OpenError> {
    let open = |number: u32| {
        let name = segment_name(number);
        let file = disk.open(&name).map_err(disk_error(format!("opening {}", disk.describe(&name))))?;
        let size_bytes = survey.segments.get(&number).copied().unwrap_or_default();
        Ok::<_, OpenError>(Segment { number, file, seal: Seal::new(&survey.seed, number), size_bytes })
    };
    // The last process may have ended between a renaming and making it last.
    disk.sync_directory().map_err(disk_error(format!("flushing {}", disk.describe(""))))?;
    make_durable(disk, survey, chain)?;
    let (start, tail) = (chain.start, chain.tail);
    let mut next = None;
    if chain.dropped.is_none() {
        for &number in survey.segments.range(tail + 1..).map(|(number, _)| number) {
            if number == tail + 1 && is_ready(disk, survey, number)? {
                next = Some(open(number)?);
            } else {
                // It holds nothing, and its name will be needed.
                let name = segment_name(number);
                disk.remove(&name).map_err(disk_error(format!("removing {}", disk.describe(&name))))?;
            }
        }
    }
    let garbage = survey.segments.range(..start);
    let sealed = survey.segments.range(start..tail);
    Ok(Found {
        seed: survey.seed,
        secrets: chain.secrets.clone(),
        sealed: sealed.map(|(&number, &size_bytes)| Sealed { number, size_bytes }).collect(),
        current: open(tail)?,
        position: chain.tail_offset as u64,
        next,
        garbage: garbage.map(|(&number, &size_bytes)| (segment_name(number), size_bytes)).collect(),
        lsn: chain.lsn(),
        told_durable_lsn: chain.durable_lsn(),
        last_now_ms: chain.now_ms(),
        oldest_segment: chain.oldest_segment(),
    })
}

/// Writes what is not known to be on the disk once more, and flushes it. Once more, since a system that
/// failed to write a page may believe that it did.
fn make_durable(disk: &dyn Disk, survey: &Survey, chain: &Chain) -> Result<(), OpenError> {
    let mut number = chain.tail;
    loop {
        let name = segment_name(number);
        let rewrite = || {
            let file = disk.open(&name)?;
            let bytes = file.read(u64::MAX)?;
            let seal = Seal::new(&survey.seed, number);
            let scan = scan::Scan::of(&bytes, &seal, None, Checksums::default());
            let unsure = scan.frames.iter().find(|frame| frame.header.lsn > chain.durable_lsn());
            if let Some(frame) = unsure {
                file.write_at(&bytes[frame.offset..scan.end], frame.offset as u64)?;
                file.sync_data()?;
            }
            Ok(scan.frames.first().is_none_or(|frame| frame.header.lsn > chain.durable_lsn() + 1))
        };
        let before_too = rewrite().map_err(disk_error(format!("flushing {}", disk.describe(&name))))?;
        if number == chain.start || !before_too {
            return Ok(());
        }
        number -= 1;
    }
}

/// Whether a segment can be written from its start.
fn is_ready(disk: &dyn Disk, survey: &Survey, number: u32) -> Result<bool, OpenError> {
    let header = SegmentHeader::parse(&walk::read(disk, number, HEADER_BYTES as u64)?);
    Ok(header == Ok(SegmentHeader { seed: survey.seed, number }))
}
