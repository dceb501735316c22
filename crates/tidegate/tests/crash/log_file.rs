//! The embedded store's log as a file that a test may harm: see `docs/store-format.md`.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where the first frame of a segment starts.
const FIRST_FRAME_AT: usize = 512;
const FRAME_HEADER_BYTES: usize = 48;
const KIND_AT: usize = 40;
const BATCH: u8 = 1;

/// The only segment of a small store.
pub(crate) struct LogFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

/// A frame that holds changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) offset: usize,
    pub(crate) payload_bytes: usize,
}

impl Batch {
    /// A byte amid its payload.
    pub(crate) fn middle(self) -> usize {
        self.offset + FRAME_HEADER_BYTES + self.payload_bytes / 2
    }
}

impl LogFile {
    /// # Panics
    /// The directory has not exactly one segment.
    #[track_caller]
    pub(crate) fn in_directory(directory: &Path) -> Self {
        let entries = fs::read_dir(directory).expect("the data directory is there");
        let paths = entries.map(|entry| entry.expect("it can be listed").path());
        let segments: Vec<_> =
            paths.filter(|path| path.extension().is_some_and(|ext| ext == "log")).collect();
        let [path] = segments.as_slice() else { panic!("one segment: {segments:?}") };
        Self { path: path.clone(), bytes: fs::read(path).expect("it can be read") }
    }

    /// The frames that hold changes, in order.
    pub(crate) fn batches(&self) -> Vec<Batch> {
        let mut batches = Vec::new();
        let mut offset = FIRST_FRAME_AT;
        while let Some(header) = self.bytes.get(offset..offset + FRAME_HEADER_BYTES) {
            if header[KIND_AT] == 0 {
                break;
            }
            let length = header[..4].try_into().expect("four bytes");
            let payload_bytes = usize::try_from(u32::from_le_bytes(length)).expect("32 bits fit");
            if header[KIND_AT] == BATCH {
                batches.push(Batch { offset, payload_bytes });
            }
            offset += (FRAME_HEADER_BYTES + payload_bytes).next_multiple_of(8);
        }
        batches
    }

    /// Writes the file as it is now.
    pub(crate) fn save(&self) {
        fs::write(&self.path, &self.bytes).expect("it can be written");
    }
}
