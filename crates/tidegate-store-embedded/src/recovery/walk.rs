//! Walks the segments of a store in order, and judges where the log ends: at its end, at a torn tail, or at
//! damage.
//!
//! A frame that can't be read ends the log if nothing follows it, or if every frame after it says that it was
//! never known to be flushed: then no promise was made about it, nor about those. Otherwise the log is damaged.

use std::{collections::BTreeMap, sync::Arc};

use super::scan::{Checksums, Frame, Later, Scan};
use crate::{
    disk::Disk,
    error::{Damage, DamageKind, OpenError, Remedy, disk_error},
    format::{
        FrameHeader, FrameKind, HEADER_BYTES, HeaderFault, Seal, Secrets, SegmentHeader, StoreSeed,
        segment_name, segment_number,
    },
    memory::GivenBack,
};

/// The files of a store that is there.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) seed: StoreSeed,
    /// Numbers and sizes.
    pub(crate) segments: BTreeMap<u32, u64>,
    /// The newest frame that can be found.
    pub(crate) newest: Option<FrameHeader>,
}

/// A segment with frames to replay.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) number: u32,
    pub(crate) bytes: GivenBack,
    pub(crate) frames: Vec<Frame>,
}

/// The log, as far as it is good.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    /// Where the walk began.
    pub(crate) start: u32,
    /// The segment that the log ends in, and where.
    pub(crate) tail: u32,
    pub(crate) tail_offset: usize,
    pub(crate) frames: u64,
    pub(crate) segments: u64,
    pub(crate) last: Option<FrameHeader>,
    /// Where the last frame is.
    pub(crate) last_at: Option<(u32, usize)>,
    pub(crate) secrets: Secrets,
    /// What follows the tail and was never promised.
    pub(crate) dropped: Option<Later>,
}

/// Why a walk ended before the log did.
#[derive(Debug)]
pub(crate) enum Stop {
    Error(OpenError),
    Broken(Box<Broken>),
}

/// Where a log is damaged, and what was read before.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) number: u32,
    pub(crate) offset: usize,
    pub(crate) what: DamageKind,
    pub(crate) before: Chain,
    pub(crate) later: Later,
}

impl Survey {
    /// What is in the directory; nothing if there is no store.
    pub(crate) fn of(disk: &dyn Disk) -> Result<Option<Self>, OpenError> {
        let names = disk.list().map_err(disk_error(format!("listing {}", disk.describe(""))))?;
        let mut segments = BTreeMap::new();
        for number in names.iter().filter_map(|name| segment_number(name)) {
            let name = segment_name(number);
            let size = disk.open(&name).and_then(|file| file.size_bytes());
            segments.insert(number, size.map_err(disk_error(format!("opening {}", disk.describe(&name))))?);
        }
        if segments.is_empty() {
            return Ok(None);
        }
        let seed = Self::find_seed(disk, &segments)?;
        let newest = Self::find_newest(disk, &segments, &seed)?;
        Ok(Some(Self { seed, segments, newest }))
    }

    /// The seed, out of any header that can be read.
    fn find_seed(disk: &dyn Disk, segments: &BTreeMap<u32, u64>) -> Result<StoreSeed, OpenError> {
        for &number in segments.keys().rev() {
            match SegmentHeader::parse(&read(disk, number, HEADER_BYTES as u64)?) {
                Ok(header) | Err(HeaderFault::OneCopy(header, _)) => return Ok(header.seed),
                Err(HeaderFault::Version(version)) => {
                    return Err(OpenError::Version { file: disk.describe(&segment_name(number)), version });
                }
                Err(HeaderFault::Unreadable) => {}
            }
        }
        let number = segments.keys().next().copied().unwrap_or_default();
        Err(damage(disk, number, 0, DamageKind::Header).into())
    }

    fn find_newest(
        disk: &dyn Disk,
        segments: &BTreeMap<u32, u64>,
        seed: &StoreSeed,
    ) -> Result<Option<FrameHeader>, OpenError> {
        for &number in segments.keys().rev() {
            let bytes = read(disk, number, u64::MAX)?;
            let mut found = Later::default();
            let seal = Seal::new(seed, number);
            let scan = Scan::of(&bytes, &seal, None, Checksums::default());
            found.look(&bytes, &seal, scan.end + 8, 0);
            let newest = found.last.or(scan.frames.last().map(|frame| frame.header));
            if newest.is_some() {
                return Ok(newest);
            }
        }
        Ok(None)
    }

    /// The segment that the newest frame says the log begins with.
    pub(crate) fn start(&self) -> u32 {
        self.newest
            .map_or_else(|| self.segments.keys().next().copied().unwrap_or(1), |newest| newest.oldest_segment)
    }
}

impl Chain {
    pub(crate) fn lsn(&self) -> u64 {
        self.last.map_or(0, |last| last.lsn)
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.last.map_or(0, |last| last.now_ms)
    }

    pub(crate) fn durable_lsn(&self) -> u64 {
        self.last.map_or(0, |last| last.durable_lsn)
    }

    /// The segment that the log says it begins with.
    pub(crate) fn oldest_segment(&self) -> u32 {
        self.last.map_or(self.start, |last| last.oldest_segment)
    }

    fn starting_at(start: u32) -> Self {
        Self {
            start,
            tail: start,
            tail_offset: HEADER_BYTES,
            frames: 0,
            segments: 0,
            last: None,
            last_at: None,
            secrets: Secrets::default(),
            dropped: None,
        }
    }

    /// The number of the next frame, if that is known.
    fn next_lsn(&self) -> Option<u64> {
        match self.last {
            Some(last) => last.lsn.checked_add(1),
            None => (self.start == 1).then_some(1),
        }
    }

    fn broken(self, number: u32, offset: usize, what: DamageKind, later: Later) -> Stop {
        Stop::Broken(Box::new(Broken { number, offset, what, before: self, later }))
    }
}

impl Broken {
    pub(crate) fn damage(&self, disk: &dyn Disk) -> Damage {
        damage(disk, self.number, self.offset, self.what)
    }
}

impl Stop {
    /// Where else the log may begin, if no frame was read where it should: whoever said so may have been lost
    /// with those frames.
    pub(crate) fn earlier_start(&self, survey: &Survey) -> Option<u32> {
        let Self::Broken(broken) = self else { return None };
        let unread = broken.what == DamageKind::Frame && broken.before.last.is_none();
        let start = Some(broken.before.start).filter(|_| unread)?;
        start.checked_sub(1).filter(|earlier| survey.segments.contains_key(earlier))
    }

    pub(crate) fn into_error(self, disk: &dyn Disk) -> OpenError {
        match self {
            Self::Error(error) => error,
            Self::Broken(broken) => broken.damage(disk).into(),
        }
    }
}

impl From<OpenError> for Stop {
    fn from(error: OpenError) -> Self {
        Self::Error(error)
    }
}

/// Has the log walked from where it says itself that it begins. The newest frame that was found may not be a
/// part of it, and then the newest that is knows better; `act` is told where to start, and the last instant.
pub(crate) fn converge<T>(
    survey: &Survey,
    mut act: impl FnMut(u32, u64) -> Result<(Chain, T), Stop>,
) -> Result<(Chain, T), Stop> {
    let mut start = survey.start();
    let mut now_ms = survey.newest.map_or(0, |newest| newest.now_ms);
    let mut first_stop = None;
    // It begins further back each time, but in a log that was forged.
    for _ in 0..survey.segments.len() * 2 + 2 {
        match act(start, now_ms) {
            Ok((chain, done)) => {
                if chain.oldest_segment() == start && chain.now_ms() == now_ms {
                    return Ok((chain, done));
                }
                start = chain.oldest_segment();
                now_ms = chain.now_ms();
            }
            Err(stop) => match stop.earlier_start(survey) {
                Some(earlier) => {
                    start = earlier;
                    first_stop.get_or_insert(stop);
                }
                // What stops the walk further back than the log goes is of no interest.
                None => return Err(first_stop.unwrap_or(stop)),
            },
        }
    }
    let nowhere = || Chain::starting_at(start).broken(start, 0, DamageKind::Frame, Later::default());
    Err(first_stop.unwrap_or_else(nowhere))
}

/// Walks from segment `start` on; hands every segment to `visit`, as far as it is good.
pub(crate) fn walk(
    disk: &dyn Disk,
    survey: &Survey,
    start: u32,
    checksums: Checksums,
    mut visit: impl FnMut(Arc<Loaded>),
) -> Result<Chain, Stop> {
    let mut chain = Chain::starting_at(start);
    for number in start.. {
        chain.tail = number;
        chain.tail_offset = HEADER_BYTES;
        if !survey.segments.contains_key(&number) {
            let later = later_segments(disk, survey, number, 0)?;
            return Err(chain.broken(number, 0, DamageKind::Missing, later));
        }
        let bytes = read(disk, number, u64::MAX)?;
        if let Err(what) = check_header(disk, survey, number, &bytes)? {
            let later = later_segments(disk, survey, number, 0)?;
            return Err(chain.broken(number, 0, what, later));
        }
        let seal = Seal::new(&survey.seed, number);
        let scan = Scan::of(&bytes, &seal, chain.next_lsn(), checksums);
        if let Err(offset) = chain.take(number, &scan, &bytes) {
            return Err(chain.broken(number, offset, DamageKind::Records, Later::default()));
        }
        let lsn_min = chain.next_lsn().unwrap_or(0);
        let mut later = Later::default();
        if !scan.sealed {
            later.look(&bytes, &seal, scan.end + 8, lsn_min);
        }
        visit(Arc::new(Loaded { number, bytes: GivenBack(bytes), frames: scan.frames }));
        if !scan.sealed {
            later = later.and(later_segments(disk, survey, number, lsn_min)?);
            return judge(chain, later, lsn_min);
        }
    }
    Err(chain.broken(u32::MAX, 0, DamageKind::Missing, Later::default()))
}

/// Reads the first bytes of a segment.
pub(crate) fn read(disk: &dyn Disk, number: u32, bytes_max: u64) -> Result<Vec<u8>, OpenError> {
    let name = segment_name(number);
    let bytes = disk.open(&name).and_then(|file| file.read(bytes_max));
    bytes.map_err(disk_error(format!("reading {}", disk.describe(&name))))
}

/// The damage at this place, and what a repair would do about it.
pub(crate) fn damage(disk: &dyn Disk, number: u32, offset: usize, what: DamageKind) -> Damage {
    let remedy = if what == DamageKind::Header { Remedy::RestoreHeader } else { Remedy::Cut };
    Damage { file: disk.describe(&segment_name(number)), offset: offset as u64, what, remedy }
}

fn judge(mut chain: Chain, later: Later, lsn_min: u64) -> Result<Chain, Stop> {
    // A store whose first segment is gone has had frames.
    let lost_all = chain.last.is_none() && chain.start > 1;
    if lost_all || later.frames > 0 && later.durable_lsn >= lsn_min {
        let (number, offset) = (chain.tail, chain.tail_offset);
        return Err(chain.broken(number, offset, DamageKind::Frame, later));
    }
    chain.dropped = (later.frames > 0).then_some(later);
    Ok(chain)
}

fn later_segments(disk: &dyn Disk, survey: &Survey, after: u32, lsn_min: u64) -> Result<Later, OpenError> {
    let mut later = Later::default();
    for (&number, _) in survey.segments.range(after.saturating_add(1)..) {
        let bytes = read(disk, number, u64::MAX)?;
        later.look(&bytes, &Seal::new(&survey.seed, number), HEADER_BYTES, lsn_min);
    }
    Ok(later)
}

fn check_header(
    disk: &dyn Disk,
    survey: &Survey,
    number: u32,
    bytes: &[u8],
) -> Result<Result<(), DamageKind>, OpenError> {
    match SegmentHeader::parse(bytes) {
        Ok(header) if header == (SegmentHeader { seed: survey.seed, number }) => Ok(Ok(())),
        Ok(_) => Ok(Err(DamageKind::Foreign)),
        Err(HeaderFault::OneCopy(..) | HeaderFault::Unreadable) => Ok(Err(DamageKind::Header)),
        Err(HeaderFault::Version(version)) => {
            Err(OpenError::Version { file: disk.describe(&segment_name(number)), version })
        }
    }
}

impl Chain {
    /// Adds a segment's frames; an error is the place of a frame that makes no sense.
    fn take(&mut self, number: u32, scan: &Scan, bytes: &[u8]) -> Result<(), usize> {
        for frame in scan.frames.iter().filter(|frame| frame.header.kind == FrameKind::Secrets) {
            self.secrets = Secrets::decode(&bytes[frame.payload()]).ok_or(frame.offset)?;
        }
        if let Some(frame) = scan.frames.last() {
            self.last = Some(frame.header);
            self.last_at = Some((number, frame.offset));
        }
        self.tail_offset = scan.end;
        self.frames += scan.frames.len() as u64;
        self.segments += 1;
        Ok(())
    }
}

impl Later {
    fn and(self, other: Self) -> Self {
        let newer = |one: Option<FrameHeader>, two: Option<FrameHeader>| {
            [one, two].into_iter().flatten().max_by_key(|header| header.lsn)
        };
        Self {
            frames: self.frames + other.frames,
            durable_lsn: self.durable_lsn.max(other.durable_lsn),
            first_lsn: [self.first_lsn, other.first_lsn].into_iter().flatten().min(),
            last: newer(self.last, other.last),
        }
    }
}
