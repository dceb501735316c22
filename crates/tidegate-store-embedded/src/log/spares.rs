//! Files of segments that are not needed any more, to be used again or removed.

use tracing::warn;

use crate::disk::Disk;

/// The spare files: name and size.
#[derive(Debug)]
pub(crate) struct Spares(Vec<(String, u64)>);

impl Spares {
    pub(crate) fn new(files: Vec<(String, u64)>) -> Self {
        Self(files)
    }

    pub(crate) fn add(&mut self, name: String, size_bytes: u64) {
        self.0.push((name, size_bytes));
    }

    /// A file of exactly this size.
    pub(crate) fn take(&mut self, size_bytes: u64) -> Option<String> {
        let at = self.0.iter().position(|&(_, bytes)| bytes == size_bytes)?;
        Some(self.0.swap_remove(at).0)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Removes files of another size than `size_bytes`, and others while all have more than `bytes_max`.
    pub(crate) fn trim(&mut self, disk: &dyn Disk, size_bytes: u64, bytes_max: u64) {
        let mut kept_bytes = 0;
        self.0.retain(|(name, bytes)| {
            if *bytes == size_bytes && kept_bytes + bytes <= bytes_max {
                kept_bytes += bytes;
                return true;
            }
            match disk.remove(name) {
                Ok(()) => false,
                Err(error) => {
                    warn!(file = disk.describe(name), %error, "a file that the store no longer needs can't be removed");
                    true
                }
            }
        });
    }
}
