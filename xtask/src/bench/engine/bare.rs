//! What the disk can do: writes and flushes with nothing around them.

use std::{fs::File, os::unix::fs::FileExt, path::Path, time::Duration};

use anyhow::{Context, Result};

use crate::clock;

/// A file whose blocks are there already, so that a flush writes data alone.
#[derive(Debug)]
pub(super) struct BareFile(File);

const FILE_BYTES: usize = 64 << 20;

impl BareFile {
    /// A file without a name in `folder`, written through and flushed.
    pub(super) fn prepare(folder: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(folder).context("making a file for bare writes")?;
        let zeros = vec![0; 1 << 20];
        for place in (0..FILE_BYTES).step_by(zeros.len()) {
            file.write_all_at(&zeros, place as u64).context("preallocating a file for bare writes")?;
        }
        file.sync_all().context("flushing a file for bare writes")?;
        Ok(Self(file))
    }

    /// Writes of `bytes` each, one after the other in the file, each flushed before the next.
    pub(super) fn writes_per_second(&self, bytes: f64, duration: Duration) -> Result<f64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to the file's size"
        )]
        let block = vec![0x55; bytes.clamp(1.0, FILE_BYTES as f64) as usize];
        let places = FILE_BYTES / block.len();
        let started = clock::now();
        let mut writes = 0_usize;
        while started.elapsed() < duration {
            let place = writes % places * block.len();
            self.0.write_all_at(&block, place as u64).context("a bare write")?;
            self.0.sync_data().context("flushing a bare write")?;
            writes += 1;
        }
        Ok(writes as f64 / started.elapsed().as_secs_f64())
    }
}
