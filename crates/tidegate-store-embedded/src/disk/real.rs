//! A directory of the file system.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Disk, DiskFile, Guard, LockError};

/// The file that a process holds locked while it has the store open. It stays there.
const LOCK_FILE: &str = "LOCK";
/// Nobody else has any business with the rows.
const OWNER_ONLY: u32 = 0o600;

/// A directory of the file system, made if it is not there.
#[derive(Debug)]
pub struct RealDisk {
    directory: PathBuf,
}

#[derive(Debug)]
struct RealFile(File);

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
        Ok(Self { directory: path.to_owned() })
    }

    /// The directory at `path`, which must be there.
    ///
    /// # Errors
    /// It is not.
    pub fn existing(path: &Path) -> io::Result<Self> {
        if path.is_dir() {
            Ok(Self { directory: path.to_owned() })
        } else {
            Err(io::Error::new(io::ErrorKind::NotFound, "there is no such directory"))
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.join(name)
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
        Ok(Arc::new(RealFile(file)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(OWNER_ONLY)
            .open(self.at(name))?;
        Ok(Arc::new(RealFile(file)))
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
        self.0.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
