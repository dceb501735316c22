//! What the engine needs of a disk: one directory of files. A few methods, so that a simulated disk can fail,
//! tear and forget in every way that a real one may.

use std::{fmt, io, sync::Arc};

#[cfg(target_os = "linux")]
mod direct;
mod real;

pub use real::RealDisk;

/// A directory that belongs to one store.
pub trait Disk: fmt::Debug + Send + Sync + 'static {
    /// Where a file of this name is, for people.
    fn describe(&self, name: &str) -> String;

    /// Keeps other processes out until the answer is dropped.
    ///
    /// # Errors
    /// [`LockError::Held`]: another process has it. Otherwise: it can't be told.
    fn lock(&self) -> Result<Box<dyn Guard>, LockError>;

    /// The names of all files.
    ///
    /// # Errors
    /// The directory can't be read.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens a file to read and write.
    ///
    /// # Errors
    /// It is not there, or can't be opened.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Makes an empty file, in place of any other of this name.
    ///
    /// # Errors
    /// It can't be made; one may be there or not.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name, in place of any other file of that name.
    ///
    /// # Errors
    /// Both names are as they were.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// It is still there.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all creations, renamings and removals so far last.
    ///
    /// # Errors
    /// Any of them may not last.
    fn sync_directory(&self) -> io::Result<()>;
}

/// A file of a [`Disk`].
pub trait DiskFile: fmt::Debug + Send + Sync {
    /// The first `bytes_max` bytes of the file, or all if it has fewer.
    ///
    /// # Errors
    /// They can't be read.
    fn read(&self, bytes_max: u64) -> io::Result<Vec<u8>>;

    /// Bytes of the file.
    ///
    /// # Errors
    /// It can't be told.
    fn size_bytes(&self) -> io::Result<u64>;

    /// Writes all of `bytes` at `offset`; a file that ends before grows.
    ///
    /// # Errors
    /// Any part may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// As [`DiskFile::write_at`], but nobody relies on the bytes before [`DiskFile::sync_data`] has answered: until
    /// then they may stay in this process's memory, and be lost with it. Only one caller at a time.
    ///
    /// # Errors
    /// Any part may have been written, of these bytes or of earlier ones that were not flushed.
    fn write_until_sync(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)
    }

    /// Makes all that was written so far, and the file's size, last.
    ///
    /// # Errors
    /// Any part of it may never last, whatever a later call answers.
    fn sync_data(&self) -> io::Result<()>;
}

/// Holds a lock until it is dropped.
pub trait Guard: fmt::Debug + Send + Sync {}

/// Why a directory can't be locked.
#[derive(Debug)]
pub enum LockError {
    /// Another process has it; what it wrote about itself, if anything.
    Held(String),
    /// The lock can't be taken.
    Failed(io::Error),
}
