//! What is to be flushed, and what was, without the log's own lock: whoever flushes waits for nobody who writes.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;

use crate::disk::DiskFile;

/// Shared by the log and by who flushes it.
#[derive(Debug)]
pub(crate) struct Flushes {
    written: Mutex<Written>,
    durable_lsn: AtomicU64,
    count: AtomicU64,
    /// Whether segments wait to be let go until a frame that says so is durable.
    releasing: AtomicBool,
}

#[derive(Debug)]
struct Written {
    /// Segments that were left and not flushed since.
    left: Vec<(u32, Arc<dyn DiskFile>)>,
    current: (u32, Arc<dyn DiskFile>),
    /// The newest frame.
    lsn: u64,
}

/// A flush to do.
#[derive(Debug)]
pub(crate) struct Flush {
    files: Vec<Arc<dyn DiskFile>>,
    left_up_to: u32,
    lsn: u64,
}

impl Flushes {
    /// Everything up to the frame `lsn` is durable.
    pub(super) fn new(segment: u32, file: Arc<dyn DiskFile>, lsn: u64) -> Self {
        Self {
            written: Mutex::new(Written { left: Vec::new(), current: (segment, file), lsn }),
            durable_lsn: AtomicU64::new(lsn),
            count: AtomicU64::new(0),
            releasing: AtomicBool::new(false),
        }
    }

    /// The frame `lsn` was written.
    pub(super) fn wrote(&self, lsn: u64) {
        self.written.lock().lsn = lsn;
    }

    /// The next frames go into another segment.
    pub(super) fn changed_segment(&self, segment: u32, file: Arc<dyn DiskFile>) {
        let mut written = self.written.lock();
        let left = std::mem::replace(&mut written.current, (segment, file));
        written.left.push(left);
    }

    pub(super) fn set_releasing(&self, releasing: bool) {
        self.releasing.store(releasing, Ordering::Release);
    }

    /// Whether segments may be let go after a flush.
    pub(crate) fn is_releasing(&self) -> bool {
        self.releasing.load(Ordering::Acquire)
    }

    /// The newest frame that is known to be on the disk.
    pub(super) fn durable_lsn(&self) -> u64 {
        self.durable_lsn.load(Ordering::Acquire)
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// What has to be flushed for all frames so far to be durable.
    pub(crate) fn begin(&self) -> Flush {
        let written = self.written.lock();
        let left = written.left.iter().map(|(_, file)| file);
        Flush {
            files: left.chain([&written.current.1]).cloned().collect(),
            left_up_to: written.current.0,
            lsn: written.lsn,
        }
    }

    /// Notes that a flush was done.
    pub(crate) fn done(&self, flush: &Flush) {
        self.written.lock().left.retain(|&(segment, _)| segment >= flush.left_up_to);
        self.durable_lsn.fetch_max(flush.lsn, Ordering::Release);
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Flush {
    /// The newest frame that it makes durable.
    pub(crate) fn lsn(&self) -> u64 {
        self.lsn
    }

    /// Flushes.
    ///
    /// # Errors
    /// The log can't be trusted any more: what the system dropped is not known.
    pub(crate) fn run(&self) -> io::Result<()> {
        self.files.iter().try_for_each(|file| file.sync_data())
    }
}
