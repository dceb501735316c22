//! Why a store can't be opened.

use std::{fmt, io};

use thiserror::Error;

/// Why a store can't be opened. Nothing that was in it has been changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it open.
    #[error(
        "the store in {directory} is in use by {holder}; stop that process, or give each process its own directory"
    )]
    InUse {
        /// The directory.
        directory: String,
        /// What the other process wrote about itself.
        holder: String,
    },
    /// The log is not what was written.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// A file of a later version of the format.
    #[error(
        "{file} has version {version} of the format, which this program does not know; use a newer program"
    )]
    Version {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
    },
    /// The disk failed.
    #[error("{doing}")]
    Disk {
        /// What was being done.
        doing: String,
        /// What the disk answered.
        #[source]
        cause: io::Error,
    },
    /// 128 secrets were current within the longest life of a row.
    #[error("the store was opened under more than 128 secrets within 120 days; use one of those again")]
    TooManySecrets,
    /// An option is out of bounds.
    #[error("{option} is {value}; it must be {bounds}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What it was set to.
        value: u64,
        /// What it may be.
        bounds: &'static str,
    },
}

/// Where a log is damaged, and what can be done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{file} is damaged at byte {offset}: {what}. Nothing was changed. Restore the directory from a copy, or run \
     `tidegate store repair`: it {remedy}"
)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// The first byte of what can't be read.
    pub offset: u64,
    /// What is wrong there.
    pub what: DamageKind,
    /// What a repair would do.
    pub(crate) remedy: Remedy,
}

/// What is wrong with a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// A frame can't be read, and others follow that were written after it was known to be on the disk.
    Frame,
    /// A frame reads well and its records make no sense.
    Records,
    /// The segment's header can't be read.
    Header,
    /// The header belongs to another segment or to another store.
    Foreign,
    /// The segment's file is not there.
    Missing,
}

/// What a repair would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    Cut,
    RestoreHeader,
}

impl fmt::Display for DamageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frame => "a frame can't be read, and it had been on the disk safely",
            Self::Records => "a frame holds records that make no sense",
            Self::Header => "the header of the segment can't be read",
            Self::Foreign => "the header is another segment's or another store's",
            Self::Missing => "the segment's file is missing",
        })
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cut => "cuts the log there, loses the updates after it, and keeps a copy of what it cuts",
            Self::RestoreHeader => "restores the header from its second copy, and loses nothing",
        })
    }
}

/// An error of the disk, with what was being done.
pub(crate) fn disk_error(doing: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
    let doing = doing.into();
    |cause| OpenError::Disk { doing, cause }
}
