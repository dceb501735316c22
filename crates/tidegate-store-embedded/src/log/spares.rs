//! Files of segments that are not needed any more, to be used again or removed.

use std::{io, sync::Arc};

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

/// Spare files that nobody needs.
#[derive(Debug)]
pub(crate) struct Surplus {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) spares: Vec<Spare>,
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

    /// Takes out files that can't be segments of `size_bytes`, and others while all have more than `bytes_max`.
    pub(crate) fn trim(&mut self, size_bytes: u64, bytes_max: u64) -> Vec<Spare> {
        let mut kept_bytes = 0;
        let surplus = self.0.extract_if(.., |spare| {
            let kept = spare.is_fit(size_bytes) && kept_bytes + size_bytes <= bytes_max;
            kept_bytes += if kept { size_bytes } else { 0 };
            !kept
        });
        surplus.collect()
    }
}

impl Surplus {
    /// Removes the files; answers those that are still there.
    pub(crate) fn remove(self) -> Vec<Spare> {
        let is_left = |spare: &Spare| match self.disk.remove(&spare.name) {
            Ok(()) => false,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => {
                let file = self.disk.describe(&spare.name);
                warn!(file, %error, "a file that the store no longer needs can't be removed");
                true
            }
        };
        self.spares.into_iter().filter(is_left).collect()
    }
}

impl Spare {
    fn is_fit(&self, size_bytes: u64) -> bool {
        self.size_bytes == size_bytes && !self.unfit
    }
}
