//! How a store is opened.

use std::{path::PathBuf, sync::Arc};

use tidegate_store::clock::{Clock, SystemClock};

use crate::{OpenError, disk::Disk};

/// The default size of a segment: large enough that changing segments costs nothing, small enough that a
/// store that is hardly used takes little.
const SEGMENT_BYTES: u64 = 16 * 1024 * 1024;
/// A header, and room for a few frames.
const SEGMENT_BYTES_MIN: u64 = 4096;
/// A segment is read into memory whole when a store is opened.
const SEGMENT_BYTES_MAX: u64 = 1 << 30;

/// What "acknowledged" promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// It is on the disk: survives a power loss.
    #[default]
    Fsync,
    /// The system has it: survives the end of the process, however it comes. It reaches the disk about a
    /// second later.
    Process,
    /// It is in memory only; no file is touched.
    None,
}

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory, which belongs to this store alone; made if it is not there.
    pub path: PathBuf,
    /// What "acknowledged" promises.
    pub durability: Durability,
    /// The size of a segment of the log. The log takes up at most three times the bytes of the live rows and
    /// seven segments. The last segment that a full disk has room for is kept for cleaning; a disk with room
    /// for fewer than four may stay full until all rows of a segment have expired.
    pub segment_bytes: u64,
    /// Which secret rows are named under. Rows of another secret can't be read and do not count; they stay
    /// until they expire.
    pub secret_id: Option<u64>,
    /// The store's clock. It is moved on to the last instant that the log knows of.
    pub clock: Arc<dyn Clock>,
    /// Another disk than `path`.
    pub disk: Option<Arc<dyn Disk>>,
    /// Who does the work that no caller waits for.
    pub upkeep: Upkeep,
}

/// Who does the work that no caller waits for: cleaning the log, preparing segments, flushing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Upkeep {
    /// A thread of its own.
    #[default]
    Thread,
    /// The caller of [`crate::EmbeddedBackend::tick`], and every commit, inline: for tests, where every call
    /// of the disk shall come in the same order each time.
    Caller,
}

impl Options {
    /// A store in the directory at `path`, with the defaults of everything else.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            durability: Durability::default(),
            segment_bytes: SEGMENT_BYTES,
            secret_id: None,
            clock: Arc::new(SystemClock::new()),
            disk: None,
            upkeep: Upkeep::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), OpenError> {
        if (SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes) {
            return Ok(());
        }
        Err(OpenError::Option {
            option: "segment_bytes",
            value: self.segment_bytes,
            bounds: "4096 bytes to 1 GiB",
        })
    }
}
