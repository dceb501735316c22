//! The end of a file that is written past the page cache: whole blocks, flushed by the write itself. That is one
//! call instead of two, and the system copies nothing and looks for no dirty pages: about two thirds of the time and
//! half of the CPU of a write and a flush.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

use parking_lot::Mutex;
use rustix::fs::OFlags;

/// What a direct write begins and ends at, in the file and in memory. Disks have blocks of this size or smaller.
const BLOCK: usize = 4096;
/// More is not held in memory.
const HELD_BYTES_MAX: usize = 1024 * 1024;

/// Writes the end of one file.
#[derive(Debug)]
pub(super) struct DirectWriter {
    file: File,
    /// Taken before `tail` where both are.
    writing: Mutex<Blocks>,
    tail: Mutex<Tail>,
}

/// What the file holds from the last block on that is not full, and what is held back of it.
#[derive(Debug, Default)]
struct Tail {
    blocks: Blocks,
    /// Where in the file the blocks begin.
    start: u64,
    bytes: usize,
    /// Whether any of it is not in the file yet.
    held: bool,
    /// What the file had when its end was last looked for. Beyond, a write in whole blocks would leave it too long.
    file_bytes: u64,
}

impl DirectWriter {
    /// Opens the file at `path` once more; nothing if the file system has no such writes.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let flags = OFlags::DIRECT | OFlags::DSYNC;
        let file = OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(path);
        Some(Self { file: file.ok()?, writing: Mutex::default(), tail: Mutex::default() })
    }

    /// Holds bytes that follow what was written before until they are flushed, or are too many.
    ///
    /// # Errors
    /// Others could not be written, or what stands before them could not be read.
    pub(super) fn hold(&self, bytes: &[u8], offset: u64, file: &File) -> io::Result<()> {
        if self.tail.lock().end() != offset {
            self.write(file)?;
            self.tail.lock().look_for_end(file, offset)?;
        }
        let held = self.tail.lock().hold(bytes);
        if held > HELD_BYTES_MAX { self.write(file) } else { Ok(()) }
    }

    /// Writes what is held, so that it lasts. More may be held meanwhile.
    ///
    /// # Errors
    /// Any part may have been written.
    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        // Of two writes at once, the older one could put back the block that both have a part of.
        let mut writing = self.writing.lock();
        let Some((start, bytes, file_bytes)) = self.tail.lock().give(&mut writing) else { return Ok(()) };
        let blocks = writing.padded(bytes);
        if start + blocks.len() as u64 <= file_bytes {
            match self.file.write_all_at(blocks, start) {
                // The disk's blocks are larger, or the file system has changed its mind: nothing was written.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                written => return written,
            }
        }
        file.write_all_at(blocks.get(..bytes).unwrap_or(blocks), start)?;
        file.sync_data()
    }
}

impl Tail {
    fn end(&self) -> u64 {
        self.start + self.bytes as u64
    }

    /// Takes over from what the file holds before `offset`.
    fn look_for_end(&mut self, file: &File, offset: u64) -> io::Result<()> {
        self.file_bytes = file.metadata()?.len();
        self.bytes = usize::try_from(offset % BLOCK as u64).map_err(io::Error::other)?;
        self.start = offset - self.bytes as u64;
        file.read_exact_at(self.blocks.first(self.bytes), self.start)
    }

    /// Answers how many bytes there are by now.
    fn hold(&mut self, bytes: &[u8]) -> usize {
        let end = self.bytes + bytes.len();
        if let Some(place) = self.blocks.first(end).get_mut(self.bytes..) {
            place.copy_from_slice(bytes);
        }
        self.bytes = end;
        self.held = true;
        end
    }

    /// Gives everything away to be written, and keeps the part of a block that will be written again: where it
    /// goes, its bytes, and the file's.
    fn give(&mut self, to: &mut Blocks) -> Option<(u64, usize, u64)> {
        if !std::mem::take(&mut self.held) {
            return None;
        }
        std::mem::swap(&mut self.blocks, to);
        let given = (self.start, self.bytes, self.file_bytes);
        let part = self.bytes % BLOCK;
        self.blocks.first(part).copy_from_slice(&to.first(self.bytes)[self.bytes - part..]);
        self.start = self.end() - part as u64;
        self.bytes = part;
        Some(given)
    }
}

/// Memory that begins at a multiple of a block.
#[derive(Debug, Default)]
struct Blocks(Vec<u8>);

impl Blocks {
    /// The first `bytes`; more memory if there is not enough. What was there stays there.
    fn first(&mut self, bytes: usize) -> &mut [u8] {
        if self.0.len() < bytes.next_multiple_of(BLOCK) + BLOCK {
            let mut larger = vec![0; bytes.next_multiple_of(BLOCK) * 2 + BLOCK];
            let (from, to) = (skipped(&self.0), skipped(&larger));
            let kept = self.0.get(from..).unwrap_or_default();
            let kept = kept.get(..kept.len() / BLOCK * BLOCK).unwrap_or_default();
            larger[to..to + kept.len()].copy_from_slice(kept);
            self.0 = larger;
        }
        let from = skipped(&self.0);
        &mut self.0[from..from + bytes]
    }

    /// The first `bytes`, and zeros up to the end of a block.
    fn padded(&mut self, bytes: usize) -> &[u8] {
        let blocks = self.first(bytes.next_multiple_of(BLOCK));
        blocks[bytes..].fill(0);
        blocks
    }
}

/// How many bytes of the memory lie before the first multiple of a block.
fn skipped(memory: &[u8]) -> usize {
    memory.as_ptr().addr().wrapping_neg() % BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    const FILE_BYTES: usize = 64 * 1024;

    struct Written {
        file: File,
        direct: DirectWriter,
        /// What it should hold once everything is written.
        model: Vec<u8>,
        _folder: tempfile::TempDir,
    }

    impl Written {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("there is room for a folder");
            let path = folder.path().join("file");
            let model = vec![7; FILE_BYTES];
            std::fs::write(&path, &model).expect("there is room for a file");
            let file = OpenOptions::new().read(true).write(true).open(&path).expect("it is there");
            let direct =
                DirectWriter::open(&path).expect("the file system of temporary files has direct writes");
            Self { file, direct, model, _folder: folder }
        }

        /// Holds `bytes` bytes at `offset`; answers where they end. The rest of the last block becomes zeros.
        fn hold(&mut self, byte: u8, bytes: usize, offset: usize) -> usize {
            let end = offset + bytes;
            self.direct.hold(&vec![byte; bytes], offset as u64, &self.file).expect("the disk works");
            let block_end = end.next_multiple_of(BLOCK);
            let padded = if block_end <= FILE_BYTES { block_end } else { end };
            self.model.resize(self.model.len().max(padded), 0);
            self.model[offset..end].fill(byte);
            self.model[end..padded].fill(0);
            end
        }

        fn check(&self, doing: &str) {
            self.direct.write(&self.file).expect("the disk works");
            let bytes =
                usize::try_from(self.file.metadata().expect("it is there").len()).expect("it is small");
            let mut found = vec![0; bytes];
            self.file.read_exact_at(&mut found, 0).expect("the disk works");
            let difference = found.iter().zip(&self.model).position(|(found, right)| found != right);
            assert_eq!((difference, found.len()), (None, self.model.len()), "{doing}");
        }
    }

    #[test]
    fn what_was_held_is_in_the_file_once_it_is_written() {
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let mut written = Written::new();
            // Up to beyond the file's end, where it grows by the bytes that were held and no more.
            let mut offset = 512;
            while offset < FILE_BYTES + 2 * BLOCK {
                let bytes_max = if random.once_in(2) { 9000 } else { 300 };
                let bytes = 1 + usize::try_from(random.below(bytes_max)).unwrap();
                let byte = u8::try_from(random.below(256)).unwrap();
                offset = written.hold(byte, bytes, offset);
                if random.once_in(3) {
                    written.check(&format!("seed {seed}, up to {offset}"));
                }
            }
            written.check(&format!("seed {seed}, at the end"));
        }
    }

    #[test]
    fn writing_goes_on_from_any_place() {
        let mut written = Written::new();
        for (number, offset) in [(1, 512), (2, 20_000), (3, 20_000), (4, 4096), (5, FILE_BYTES - 100)] {
            written.hold(number, 1000, offset);
            if number % 2 == 0 {
                written.check(&format!("step {number}"));
            }
        }
        written.check("the end");
    }

    #[test]
    fn no_more_is_held_than_may_be() {
        let mut written = Written::new();
        let mut offset = 512;
        for _ in 0..HELD_BYTES_MAX / 100_000 * 3 {
            offset = written.hold(1, 100_000, offset);
            assert!(written.direct.tail.lock().bytes <= HELD_BYTES_MAX);
        }
        written.check("the end");
    }

    #[test]
    fn one_holds_while_another_writes() {
        let mut written = Written::new();
        let done = std::sync::atomic::AtomicBool::new(false);
        let (direct, file) = (&written.direct, &written.file);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Acquire) {
                    direct.write(file).expect("the disk works");
                }
            });
            for piece in 0..600_u64 {
                direct
                    .hold(&[u8::try_from(piece % 251).unwrap(); 100], 512 + 100 * piece, file)
                    .expect("as above");
            }
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        for piece in 0..600_usize {
            written.model[512 + 100 * piece..][..100].fill(u8::try_from(piece % 251).unwrap());
        }
        written.model[512 + 60_000..(512 + 60_000_usize).next_multiple_of(BLOCK)].fill(0);
        written.check("the end");
    }
}
