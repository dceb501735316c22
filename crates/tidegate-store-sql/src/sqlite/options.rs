//! How a SQLite file is opened.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tidegate_store::clock::{Clock, SystemClock};

/// How a SQLite file is opened.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// The file, on a disk of this machine: SQLite's locks do not hold on a network's.
    pub path: PathBuf,
    /// Which secret rows are named under; none is 0. Rows of another secret can't be read and do not count; they
    /// stay until they expire.
    pub secret_id: Option<u64>,
    /// The driver's deadline: the write lock is waited for no longer than three quarters of it.
    pub deadline: Duration,
    /// What "acknowledged" promises.
    pub durability: Durability,
    /// The process's clock. It is moved on to the last instant that the file knows of.
    pub clock: Arc<dyn Clock>,
}

/// What "acknowledged" promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// It is on the disk: survives a power loss (`synchronous = FULL`).
    #[default]
    Full,
    /// The system has it: survives the end of the process, however it comes (`synchronous = NORMAL`).
    Normal,
}

impl SqliteOptions {
    /// The file at `path`, with the defaults of everything else.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            secret_id: None,
            deadline: Duration::from_secs(2),
            durability: Durability::default(),
            clock: Arc::new(SystemClock::new()),
        }
    }

    /// How long the write lock is waited for: less than a caller waits, so that the answer says why.
    pub(super) fn lock_patience(&self) -> Duration {
        self.deadline * 3 / 4
    }

    /// How long any call may take: a little more than a caller waits.
    pub(super) fn call_patience(&self) -> Duration {
        self.deadline * 5 / 4
    }
}
