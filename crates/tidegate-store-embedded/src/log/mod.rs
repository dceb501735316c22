//! The log as it is written: frames into the current segment, segments one after the other.

mod flushes;
mod prepare;
mod room;
mod spares;

use std::{collections::VecDeque, io, sync::Arc};

use crate::{
    Durability, Options, Upkeep,
    disk::{Disk, DiskFile},
    format::{
        FrameBuffer, FrameHeader, FrameKind, HEADER_BYTES, PAYLOAD_BYTES_MAX, Seal, Secrets, StoreSeed,
        TooManySecrets, frame_bytes, segment_name,
    },
};
pub(crate) use flushes::Flushes;
pub(crate) use prepare::{Preparation, Stepped, UNFINISHED, first_segment};
pub(crate) use room::Need;
use spares::{Spare, Spares, Surplus};

/// A buffer that grew beyond this is given back after its batch.
const BUFFER_BYTES_KEPT: usize = 4 * 1024 * 1024;

/// The log of an open store.
#[derive(Debug)]
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    seed: StoreSeed,
    segment_bytes: u64,
    /// Whether nobody is told of a frame before it is flushed.
    waits_for_flush: bool,
    secrets: Secrets,
    current: Segment,
    /// Where the next frame goes in the current segment.
    position: u64,
    /// Whether the current segment holds more than what every segment starts with.
    in_use: bool,
    /// The next segment, once it is ready.
    next: Option<Segment>,
    preparation: Option<Preparation>,
    /// Whether a step towards it is being done by somebody.
    preparing: bool,
    /// Whether somebody does the steps that are wanted without holding the log, so that nobody else has to.
    served: bool,
    /// Whether somebody waits for it.
    awaited: bool,
    /// Whether the last step failed, for want of room most likely.
    starved: bool,
    /// Whether the cleaning may have taken the last segment that could be had, and needs the rest of it.
    lent: bool,
    /// Segments that were left, oldest first.
    sealed: VecDeque<Sealed>,
    spares: Spares,
    /// The newest frame.
    lsn: u64,
    flushes: Arc<Flushes>,
    /// The newest durable mark that a frame of the log tells.
    told_durable_lsn: u64,
    /// The newest frame that is more than a mark.
    last_change_lsn: u64,
    last_now_ms: u64,
    oldest_segment: u32,
    /// The first frame that tells of `oldest_segment`.
    oldest_told_by_lsn: u64,
    frame: FrameBuffer,
    control: FrameBuffer,
    counts: LogCounts,
}

/// A segment that can be written.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) seal: Seal,
    pub(crate) size_bytes: u64,
}

/// A segment that was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sealed {
    pub(crate) number: u32,
    pub(crate) size_bytes: u64,
}

/// What was found when the store was opened.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) seed: StoreSeed,
    pub(crate) secrets: Secrets,
    pub(crate) sealed: VecDeque<Sealed>,
    pub(crate) current: Segment,
    pub(crate) position: u64,
    pub(crate) next: Option<Segment>,
    pub(crate) garbage: Vec<(String, u64)>,
    pub(crate) lsn: u64,
    pub(crate) told_durable_lsn: u64,
    pub(crate) last_now_ms: u64,
    pub(crate) oldest_segment: u32,
}

/// What the log has done since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LogCounts {
    pub(crate) frames: u64,
    pub(crate) written_bytes: u64,
    pub(crate) flushes: u64,
}

impl Log {
    pub(crate) fn new(disk: Arc<dyn Disk>, options: &Options, found: Found) -> Self {
        // The last process may have ended in the midst of a cleaning, which enters the third segment at the
        // earliest.
        let lent = found.next.is_none() && found.sealed.len() >= 2;
        let flushes = Flushes::new(found.current.number, Arc::clone(&found.current.file), found.lsn);
        Self {
            disk,
            seed: found.seed,
            segment_bytes: options.segment_bytes,
            waits_for_flush: options.durability == Durability::Fsync,
            secrets: found.secrets,
            in_use: found.position > HEADER_BYTES as u64,
            current: found.current,
            position: found.position,
            next: found.next,
            preparation: None,
            preparing: false,
            served: options.upkeep == Upkeep::Thread,
            awaited: false,
            starved: false,
            lent,
            sealed: found.sealed,
            spares: Spares::new(found.garbage),
            lsn: found.lsn,
            flushes: Arc::new(flushes),
            told_durable_lsn: found.told_durable_lsn,
            last_change_lsn: found.lsn,
            last_now_ms: found.last_now_ms,
            oldest_segment: found.oldest_segment,
            oldest_told_by_lsn: 0,
            frame: FrameBuffer::default(),
            control: FrameBuffer::default(),
            counts: LogCounts::default(),
        }
    }

    /// Where the payload of the next frame goes, before [`Log::append`].
    pub(crate) fn payload(&mut self) -> &mut Vec<u8> {
        self.frame.start()
    }

    /// Writes the frame; answers the segment it is in.
    ///
    /// # Errors
    /// The disk failed, or has no room for this need: the frame is not part of the log, and the next one goes
    /// where it would have gone.
    pub(crate) fn append(&mut self, kind: FrameKind, need: Need, now_ms: u64) -> io::Result<u32> {
        let payload_bytes = self.frame.payload_bytes();
        if payload_bytes > PAYLOAD_BYTES_MAX {
            self.frame.shrink(BUFFER_BYTES_KEPT);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the batch has more than 1 GiB"));
        }
        self.make_room(frame_bytes(payload_bytes) as u64, need, now_ms)?;
        let mut frame = std::mem::take(&mut self.frame);
        let written = self.write(&mut frame, kind, now_ms);
        if payload_bytes > BUFFER_BYTES_KEPT {
            frame.shrink(BUFFER_BYTES_KEPT);
        }
        self.frame = frame;
        written?;
        self.in_use = true;
        Ok(self.current.number)
    }

    /// Writes a frame that only tells the time and what is durable.
    ///
    /// # Errors
    /// As for [`Log::append`].
    pub(crate) fn mark(&mut self, need: Need, now_ms: u64) -> io::Result<()> {
        self.frame.start();
        self.append(FrameKind::Mark, need, now_ms).map(drop)
    }

    /// What is to be flushed, for who does it.
    pub(crate) fn flushes(&self) -> &Arc<Flushes> {
        &self.flushes
    }

    /// The number of the newest frame.
    pub(crate) fn lsn(&self) -> u64 {
        self.lsn
    }

    /// Whether there are frames that are not known to be durable.
    pub(crate) fn has_unflushed(&self) -> bool {
        self.flushes.durable_lsn() < self.lsn
    }

    /// Whether a mark would tell what no frame of the log tells yet: that the last changes are durable.
    pub(crate) fn has_untold(&self) -> bool {
        self.told_durable_lsn < self.last_change_lsn && self.last_change_lsn <= self.flushes.durable_lsn()
    }

    /// Segments before `oldest_segment` are not needed once the next frame is durable.
    pub(crate) fn release(&mut self, oldest_segment: u32) {
        self.oldest_segment = oldest_segment;
        self.oldest_told_by_lsn = self.lsn + 1;
        self.flushes.set_releasing(self.is_releasing());
    }

    /// Whether segments wait to be let go until a frame that says so is durable.
    pub(crate) fn is_releasing(&self) -> bool {
        self.sealed.front().is_some_and(|segment| segment.number < self.oldest_segment)
    }

    /// Whether a frame has told that they are not needed.
    pub(crate) fn release_is_told(&self) -> bool {
        self.lsn >= self.oldest_told_by_lsn
    }

    /// Lets go of released segments, once that is durable; answers the spare files that are to be removed for all
    /// files to have `bytes_max`, but not those that will be needed at once, if no others can be had.
    pub(crate) fn collect(&mut self, bytes_max: u64) -> Surplus {
        if self.flushes.durable_lsn() >= self.oldest_told_by_lsn {
            while let Some(segment) = self.sealed.pop_front_if(|segment| segment.number < self.oldest_segment)
            {
                self.spares.add(segment_name(segment.number), segment.size_bytes);
            }
            self.flushes.set_releasing(false);
        }
        let others = self.disk_bytes() - self.spares.bytes();
        let needed = if self.is_starved() { self.files_missing() * self.segment_bytes } else { 0 };
        let kept_bytes_max = bytes_max.saturating_sub(others).max(needed);
        Surplus { disk: Arc::clone(&self.disk), spares: self.spares.trim(self.segment_bytes, kept_bytes_max) }
    }

    /// Takes back files that could not be removed.
    pub(crate) fn keep(&mut self, left: Vec<Spare>) {
        left.into_iter().for_each(|spare| self.spares.add_unfit(spare));
    }

    /// The segments that were left, oldest first, without those that are released.
    pub(crate) fn sealed(&self) -> impl ExactSizeIterator<Item = Sealed> {
        let released = self.sealed.partition_point(|segment| segment.number < self.oldest_segment);
        self.sealed.iter().skip(released).copied()
    }

    /// Bytes of the segments that hold what is needed.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.position + self.sealed().map(|segment| segment.size_bytes).sum::<u64>()
    }

    /// Bytes of all files.
    pub(crate) fn disk_bytes(&self) -> u64 {
        let sealed: u64 = self.sealed.iter().map(|segment| segment.size_bytes).sum();
        let next = self.next.as_ref().map_or(0, |segment| segment.size_bytes);
        let preparation = self.preparation.as_ref().map_or(0, Preparation::bytes);
        self.current.size_bytes + sealed + next + preparation + self.spares.bytes()
    }

    pub(crate) fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    pub(crate) fn segments(&self) -> usize {
        self.sealed.len() + 1
    }

    pub(crate) fn last_now_ms(&self) -> u64 {
        self.last_now_ms
    }

    pub(crate) fn counts(&self) -> LogCounts {
        LogCounts { flushes: self.flushes.count(), ..self.counts }
    }

    /// Makes `secret_id` the secret of new rows; answers its tag, and whether the log has to be told.
    pub(crate) fn use_secret(
        &mut self,
        secret_id: Option<u64>,
        now_ms: u64,
    ) -> Result<(u8, bool), TooManySecrets> {
        let latest = self.secrets.latest();
        if let Some(tag) = latest.filter(|&tag| self.secrets.id_of(tag) == Some(secret_id)) {
            return Ok((tag, false));
        }
        if let Some(tag) = latest {
            self.secrets.was_current(tag, self.last_now_ms);
        }
        Ok((self.secrets.current(secret_id, now_ms)?, true))
    }

    /// Every segment starts with what the tags in its records stand for, since older segments go.
    pub(crate) fn tell_secrets(&mut self, now_ms: u64) -> io::Result<()> {
        let secrets = &self.secrets;
        secrets.encode(self.control.start());
        self.write_control(FrameKind::Secrets, now_ms)
    }

    fn write_control(&mut self, kind: FrameKind, now_ms: u64) -> io::Result<()> {
        let mut frame = std::mem::take(&mut self.control);
        let written = self.write(&mut frame, kind, now_ms);
        self.control = frame;
        written
    }

    fn write(&mut self, frame: &mut FrameBuffer, kind: FrameKind, now_ms: u64) -> io::Result<()> {
        let now_ms = now_ms.max(self.last_now_ms);
        let durable_lsn = self.flushes.durable_lsn();
        let header = FrameHeader::new(kind, self.lsn + 1, now_ms, durable_lsn, self.oldest_segment);
        let bytes = frame.finish(&self.current.seal, self.position, &header);
        if self.waits_for_flush {
            self.current.file.write_until_sync(bytes, self.position)?;
        } else {
            self.current.file.write_at(bytes, self.position)?;
        }
        self.position += bytes.len() as u64;
        self.current.size_bytes = self.current.size_bytes.max(self.position);
        self.lsn += 1;
        self.flushes.wrote(self.lsn);
        if kind != FrameKind::Mark {
            self.last_change_lsn = self.lsn;
        }
        self.last_now_ms = now_ms;
        self.told_durable_lsn = durable_lsn;
        self.counts.frames += 1;
        self.counts.written_bytes += bytes.len() as u64;
        Ok(())
    }
}
