//! Which frame may go where.
//!
//! Cleaning writes before it lets anything go, so that a disk that the log itself has filled would stay full
//! for good. Therefore batches enter the next segment only when the file of yet another one is there: the
//! last segment belongs to the cleaning, whose first segment that goes is the file that was missing.

use std::{io, sync::Arc};

use super::Sealed;
use crate::format::{FRAME_HEADER_BYTES, FrameKind, HEADER_BYTES};

/// Every segment keeps room for its end frame.
const END_BYTES: u64 = FRAME_HEADER_BYTES as u64;
/// And for marks that let older segments go when there is no other room.
const MARKS_BYTES: u64 = 4 * FRAME_HEADER_BYTES as u64;
/// This part of a segment stays empty while there is a next one: the copies of its rows, in smaller frames
/// than those of the batches, have to fit into one segment too.
const COPIES_SHARE: u64 = 64;

/// Who needs room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Batches, and whatever else can fail on a full disk.
    Ordinary,
    /// Copies of rows that let a segment go when there is no other way to get one.
    Copies,
    /// A mark that lets segments go.
    Release,
}

impl super::Log {
    /// Whether the last segment that could be had is the one being written, or the one after it, and another
    /// one was tried for in vain: only the cleaning gets on then.
    pub(crate) fn is_starved(&self) -> bool {
        self.starved && self.lacks_file()
    }

    /// Whether the next segment is not ready, or the file of the one after it is not there.
    pub(super) fn lacks_file(&self) -> bool {
        self.next.is_none() || !self.has_reserve()
    }

    /// Files of segments to be had without room on the disk that are still missing.
    pub(super) fn files_missing(&self) -> u64 {
        u64::from(self.next.is_none()) + u64::from(!self.preparation_is_whole())
    }

    fn has_reserve(&self) -> bool {
        self.preparation_is_whole() || self.spares.has(self.segment_bytes)
    }

    /// Whether a batch of up to so many bytes has to wait for the end of a step.
    pub(crate) fn must_wait(&mut self, bytes_max: u64) -> bool {
        let ends = self.position + bytes_max > self.ordinary_end();
        // Once a step has failed everybody tries for himself, and is told how it fails.
        let serves = self.preparing || self.served && !self.starved;
        let waits = serves && (ends && self.lacks_file() || self.is_lent());
        self.awaited |= waits;
        waits
    }

    pub(super) fn make_room(&mut self, bytes: u64, need: Need, now_ms: u64) -> io::Result<()> {
        if need == Need::Ordinary && self.is_lent() {
            self.prepare_next()?;
        }
        // A frame larger than a segment makes its segment longer.
        if self.in_use && self.must_change(bytes, need)? {
            self.change_segment(need, now_ms)?;
        }
        if self.position == HEADER_BYTES as u64 {
            self.tell_secrets(now_ms)?;
        }
        Ok(())
    }

    /// Whether the frame goes into the next segment, which is ready then.
    fn must_change(&mut self, bytes: u64, need: Need) -> io::Result<bool> {
        let end = self.position + bytes;
        let last_end = self.segment_bytes - END_BYTES;
        match need {
            Need::Ordinary if end > self.ordinary_end() => self.prepare_both().map(|()| true),
            Need::Copies if end > self.ordinary_end() => match self.prepare_next() {
                Err(_) if end <= last_end - MARKS_BYTES => Ok(false),
                prepared => prepared.map(|()| true),
            },
            Need::Release if end > last_end => self.prepare_next().map(|()| true),
            _ => Ok(false),
        }
    }

    fn ordinary_end(&self) -> u64 {
        self.segment_bytes - self.segment_bytes / COPIES_SHARE - MARKS_BYTES - END_BYTES
    }

    /// Whether the cleaning has the current segment for itself, since there is no other.
    fn is_lent(&self) -> bool {
        self.lent && self.starved && self.next.is_none() && !self.has_reserve()
    }

    /// Makes the next segment at once.
    fn prepare_next(&mut self) -> io::Result<()> {
        while self.next.is_none() {
            self.step_now()?;
        }
        Ok(())
    }

    /// Makes the next segment, and the file of the one after it, at once.
    fn prepare_both(&mut self) -> io::Result<()> {
        while self.lacks_file() {
            match self.step_now() {
                // Nothing could be cleaned in a log of one segment.
                Err(_) if self.next.is_some() && self.sealed.is_empty() => return Ok(()),
                stepped => stepped?,
            }
        }
        Ok(())
    }

    fn change_segment(&mut self, need: Need, now_ms: u64) -> io::Result<()> {
        self.control.start();
        self.write_control(FrameKind::End, now_ms)?;
        let next = self.next.take().expect("whoever changes the segment has made it");
        let left = std::mem::replace(&mut self.current, next);
        self.sealed.push_back(Sealed { number: left.number, size_bytes: left.size_bytes });
        self.flushes.changed_segment(self.current.number, Arc::clone(&self.current.file));
        self.position = HEADER_BYTES as u64;
        self.in_use = false;
        self.awaited = false;
        self.lent = need != Need::Ordinary && !self.has_reserve();
        Ok(())
    }
}
