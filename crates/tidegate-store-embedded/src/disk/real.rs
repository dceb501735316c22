//! A directory of the file system.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

#[cfg(target_os = "linux")]
use super::direct::DirectWriter;
use super::{Disk, DiskFile, Guard, LockError};

/// The file that a process holds locked while it has the store open. It stays there.
const LOCK_FILE: &str = "LOCK";
/// Nobody else has any business with the rows.
const OWNER_ONLY: u32 = 0o600;

/// A directory of the file system, made if it is not there.
#[derive(Debug)]
pub struct RealDisk {
    directory: PathBuf,
    /// Whether what may wait for a flush goes past the page cache, where the file system can do that.
    directly: bool,
}

#[derive(Debug)]
struct RealFile {
    file: File,
    /// Whether the page cache may have what was not flushed.
    cached: AtomicBool,
    direct: Option<DirectWriter>,
}

/// Elsewhere everything goes through the page cache.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
enum DirectWriter {}

#[cfg(not(target_os = "linux"))]
impl DirectWriter {
    fn open(_: &Path) -> Option<Self> {
        None
    }

    fn hold(&self, _: &[u8], _: u64, _: &File) -> io::Result<()> {
        match *self {}
    }

    fn write(&self, _: &File) -> io::Result<()> {
        match *self {}
    }
}

#[derive(Debug)]
struct RealGuard {
    _file: File,
}

impl Guard for RealGuard {}

impl RealDisk {
    /// The directory at `path`.
    ///
    /// # Errors
    /// It is not there and can't be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        if !path.is_dir() {
            std::fs::create_dir_all(path)?;
            // The directory's own name must last too.
            if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                File::open(parent)?.sync_all()?;
            }
        }
        Ok(Self { directory: path.to_owned(), directly: false })
    }

    /// Writes past the page cache what may wait for a flush.
    #[must_use]
    pub fn writing_directly(self) -> Self {
        Self { directly: true, ..self }
    }

    /// The directory at `path`, which must be there.
    ///
    /// # Errors
    /// It is not.
    pub fn existing(path: &Path) -> io::Result<Self> {
        if path.is_dir() {
            Ok(Self { directory: path.to_owned(), directly: false })
        } else {
            Err(io::Error::new(io::ErrorKind::NotFound, "there is no such directory"))
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn file(&self, file: File, name: &str) -> Arc<dyn DiskFile> {
        let direct = if self.directly { DirectWriter::open(&self.at(name)) } else { None };
        Arc::new(RealFile { file, cached: AtomicBool::new(true), direct })
    }
}

impl Disk for RealDisk {
    fn describe(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }

    fn lock(&self) -> Result<Box<dyn Guard>, LockError> {
        let path = self.at(LOCK_FILE);
        let options = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(OWNER_ONLY)
            .open(path);
        let mut file = options.map_err(LockError::Failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Who holds it is told if it can be read; that it is held is what matters.
                drop(file.take(64).read_to_string(&mut holder));
                return Err(LockError::Held(holder.trim().to_owned()));
            }
            Err(TryLockError::Error(error)) => return Err(LockError::Failed(error)),
        }
        // For people only: a full disk shall not keep a store from opening.
        drop(file.set_len(0).and_then(|()| writeln!(file, "process {}", std::process::id())));
        Ok(Box::new(RealGuard { _file: file }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let names =
            std::fs::read_dir(&self.directory)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).open(self.at(name))?;
        Ok(self.file(file, name))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(OWNER_ONLY)
            .open(self.at(name))?;
        Ok(self.file(file, name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.at(from), self.at(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.at(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }
}

impl DiskFile for RealFile {
    fn read(&self, bytes_max: u64) -> io::Result<Vec<u8>> {
        let size_bytes = usize::try_from(self.size_bytes()?.min(bytes_max)).map_err(io::Error::other)?;
        let mut bytes = vec![0; size_bytes];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.cached.store(true, Ordering::Relaxed);
        self.file.write_all_at(bytes, offset)
    }

    fn write_until_sync(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match &self.direct {
            Some(direct) => direct.hold(bytes, offset, &self.file),
            None => self.write_at(bytes, offset),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        if let Some(direct) = &self.direct {
            direct.write(&self.file)?;
            if !self.cached.swap(false, Ordering::Relaxed) {
                return Ok(());
            }
        }
        self.file.sync_data()
    }
}
