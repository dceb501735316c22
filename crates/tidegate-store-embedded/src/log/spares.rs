//! Files of segments that are not needed any more, to be used again or removed.

use std::io;

use tracing::warn;

use crate::disk::Disk;

/// The spare files.
#[derive(Debug)]
pub(crate) struct Spares(Vec<Spare>);

/// A spare file.
#[derive(Debug)]
pub(crate) struct Spare {
    pub(super) name: String,
    pub(super) size_bytes: u64,
    /// Whether it failed when it was to be used, and waits to be removed.
    unfit: bool,
}

impl Spares {
    /// Of files with these names and sizes.
    pub(crate) fn new(files: Vec<(String, u64)>) -> Self {
        let spare = |(name, size_bytes)| Spare { name, size_bytes, unfit: false };
        Self(files.into_iter().map(spare).collect())
    }

    pub(crate) fn add(&mut self, name: String, size_bytes: u64) {
        self.0.push(Spare { name, size_bytes, unfit: false });
    }

    /// Only to be removed.
    pub(crate) fn add_unfit(&mut self, spare: Spare) {
        self.0.push(Spare { unfit: true, ..spare });
    }

    /// Whether there is a file of exactly this size.
    pub(crate) fn has(&self, size_bytes: u64) -> bool {
        self.0.iter().any(|spare| spare.is_fit(size_bytes))
    }

    /// A file of exactly this size.
    pub(crate) fn take(&mut self, size_bytes: u64) -> Option<Spare> {
        let at = self.0.iter().position(|spare| spare.is_fit(size_bytes))?;
        Some(self.0.swap_remove(at))
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().map(|spare| spare.size_bytes).sum()
    }

    /// Removes files that can't be segments of `size_bytes`, and others while all have more than `bytes_max`.
    pub(crate) fn trim(&mut self, disk: &dyn Disk, size_bytes: u64, bytes_max: u64) {
        let mut kept_bytes = 0;
        self.0.retain(|spare| {
            if spare.is_fit(size_bytes) && kept_bytes + size_bytes <= bytes_max {
                kept_bytes += size_bytes;
                return true;
            }
            match disk.remove(&spare.name) {
                Ok(()) => false,
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => {
                    let file = disk.describe(&spare.name);
                    warn!(file, %error, "a file that the store no longer needs can't be removed");
                    true
                }
            }
        });
    }
}

impl Spare {
    fn is_fit(&self, size_bytes: u64) -> bool {
        self.size_bytes == size_bytes && !self.unfit
    }
}
