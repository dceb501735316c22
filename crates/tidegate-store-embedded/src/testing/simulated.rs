//! A disk in memory that tells what lasts from what is only cached.

use std::{collections::BTreeMap, io, sync::Arc};

use parking_lot::Mutex;

use super::Random;
use crate::disk::{Disk, DiskFile, Guard, LockError};

/// What is written whole or not at all.
const SECTOR_BYTES: usize = 512;

/// A directory in memory. Clones are the same directory.
///
/// What was written and not flushed is lost, kept, or kept in an earlier version, sector by sector, when the
/// power fails; so are names that were given and not flushed, one by one.
#[derive(Debug, Clone, Default)]
pub struct SimulatedDisk(Arc<Mutex<State>>);

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It does nothing.
    Io,
    /// There is no room; it does nothing.
    Full,
    /// A write does its first half; any other call does nothing.
    Short,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<u64, File>,
    names: BTreeMap<String, u64>,
    lasting_names: BTreeMap<String, u64>,
    pending: Vec<NameChange>,
    files_made: u64,
    calls: u64,
    failing: Vec<(u64, Fault)>,
    bytes_max: Option<u64>,
    syncs: u64,
    /// Whether flushes do nothing and say that they did.
    lies: bool,
    locked: bool,
    /// Handles of earlier processes are good for nothing.
    process: u64,
}

#[derive(Debug, Clone)]
enum NameChange {
    Make(String, u64),
    Move(String, String),
    Remove(String),
}

#[derive(Debug, Default, Clone)]
struct File {
    lasting: Vec<u8>,
    bytes: Vec<u8>,
    /// What was written to a sector since it was flushed, one version after the other.
    cached: BTreeMap<usize, Vec<Vec<u8>>>,
    /// What the system knows, if the process holds more.
    before_held: Option<Box<File>>,
}

#[derive(Debug)]
struct Handle {
    disk: SimulatedDisk,
    file: u64,
    process: u64,
}

#[derive(Debug)]
struct Locked(SimulatedDisk, u64);

impl Guard for Locked {}

impl Drop for Locked {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        if state.process == self.1 {
            state.locked = false;
        }
    }
}

impl SimulatedDisk {
    /// An empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The process ends here and now; the system goes on. Handles and locks of the process are gone, and what
    /// it held back until a flush, or had just begun to flush.
    pub fn kill(&self) {
        let mut state = self.0.lock();
        state.end_process();
        let begun = state.calls.is_multiple_of(2);
        state.files.values_mut().filter(|_| !begun).for_each(File::lose_held);
    }

    /// The power fails, and comes back. `random` decides what was on the disk by then.
    pub fn cut_power(&self, random: &mut Random) {
        let mut state = self.0.lock();
        state.end_process();
        let pending = std::mem::take(&mut state.pending);
        let mut names = std::mem::take(&mut state.lasting_names);
        for change in pending {
            if random.once_in(2) {
                change.apply(&mut names);
            }
        }
        state.files.values_mut().for_each(|file| file.cut_power(random));
        state.files.retain(|file, _| names.values().any(|named| named == file));
        state.names.clone_from(&names);
        state.lasting_names = names;
    }

    /// Lets a call fail: 0 is the next one.
    pub fn fail_call(&self, calls_ahead: u64, fault: Fault) {
        let mut state = self.0.lock();
        let call = state.calls + calls_ahead;
        state.failing.push((call, fault));
    }

    /// Bounds the bytes of all files; more are answered like a full disk.
    pub fn bound(&self, bytes_max: Option<u64>) {
        self.0.lock().bytes_max = bytes_max;
    }

    /// From now on flushes do nothing, and say that they did.
    pub fn lie(&self) {
        self.0.lock().lies = true;
    }

    /// How many calls there were that can fail.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.0.lock().calls
    }

    /// How many times a file or the directory was flushed.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.0.lock().syncs
    }

    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.lock().total_bytes()
    }

    /// The names of all files, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.lock().names.keys().cloned().collect()
    }

    /// What a file holds, if it is there.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.0.lock();
        state.names.get(name).map(|file| state.files[file].bytes.clone())
    }

    /// Puts a file there, as if it had been on the disk for long; `None` removes it.
    pub fn tamper(&self, name: &str, content: Option<Vec<u8>>) {
        let mut state = self.0.lock();
        let state = &mut *state;
        state.names.remove(name);
        state.lasting_names.remove(name);
        if let Some(bytes) = content {
            state.files_made += 1;
            state.names.insert(name.to_owned(), state.files_made);
            state.lasting_names.insert(name.to_owned(), state.files_made);
            let file = File { lasting: bytes.clone(), bytes, ..File::default() };
            state.files.insert(state.files_made, file);
        }
    }

    /// A copy of what is on the disk for everybody to read.
    #[must_use]
    pub fn copy(&self) -> Self {
        let copy = Self::new();
        for name in self.names() {
            copy.tamper(&name, self.content(&name));
        }
        copy
    }

    fn handle(&self, state: &State, file: u64) -> Arc<dyn DiskFile> {
        Arc::new(Handle { disk: self.clone(), file, process: state.process })
    }
}

impl State {
    fn end_process(&mut self) {
        self.process += 1;
        self.locked = false;
        self.failing.clear();
    }

    /// Counts a call; answers how it fails, if it does.
    fn call(&mut self) -> Option<Fault> {
        let call = self.calls;
        self.calls += 1;
        self.failing.iter().find(|(at, _)| *at == call).map(|&(_, fault)| fault)
    }

    fn call_or_error(&mut self) -> io::Result<()> {
        self.call().map_or(Ok(()), |fault| Err(fault.error()))
    }

    fn total_bytes(&self) -> u64 {
        self.names.values().map(|file| self.files[file].bytes.len() as u64).sum()
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending.push(change);
    }
}

impl Fault {
    fn error(self) -> io::Error {
        let kind = if self == Self::Full { io::ErrorKind::StorageFull } else { io::ErrorKind::Other };
        io::Error::new(kind, "the simulated disk was told to fail")
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Self::Make(name, file) => drop(names.insert(name.clone(), *file)),
            Self::Move(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Self::Remove(name) => drop(names.remove(name)),
        }
    }
}

impl File {
    fn hold(&mut self) {
        if self.before_held.is_none() {
            self.before_held = Some(Box::new(self.clone()));
        }
    }

    fn lose_held(&mut self) {
        if let Some(before) = self.before_held.take() {
            *self = *before;
        }
    }

    fn write(&mut self, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset..end].copy_from_slice(bytes);
        for sector in offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
            let start = sector * SECTOR_BYTES;
            let version = self.bytes[start..self.bytes.len().min(start + SECTOR_BYTES)].to_vec();
            self.cached.entry(sector).or_default().push(version);
        }
    }

    fn sync(&mut self) {
        self.before_held = None;
        for (sector, mut versions) in std::mem::take(&mut self.cached) {
            if let Some(version) = versions.pop() {
                self.last(sector, &version);
            }
        }
    }

    fn last(&mut self, sector: usize, version: &[u8]) {
        let start = sector * SECTOR_BYTES;
        if self.lasting.len() < start + version.len() {
            self.lasting.resize(start + version.len(), 0);
        }
        self.lasting[start..start + version.len()].copy_from_slice(version);
    }

    fn cut_power(&mut self, random: &mut Random) {
        self.before_held = None;
        for (sector, versions) in std::mem::take(&mut self.cached) {
            let kept = random.below(versions.len() as u64 + 1);
            if let Some(version) = usize::try_from(kept).ok().and_then(|kept| versions.get(kept)) {
                self.last(sector, version);
            }
        }
        self.bytes.clone_from(&self.lasting);
    }
}

impl Disk for SimulatedDisk {
    fn describe(&self, name: &str) -> String {
        format!("simulated/{name}")
    }

    fn lock(&self) -> Result<Box<dyn Guard>, LockError> {
        let mut state = self.0.lock();
        if state.locked {
            return Err(LockError::Held("process 1".to_owned()));
        }
        state.locked = true;
        Ok(Box::new(Locked(self.clone(), state.process)))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.0.lock();
        state.call_or_error()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.0.lock();
        state.call_or_error()?;
        let file = *state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(self.handle(&state, file))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.0.lock();
        state.call_or_error()?;
        state.files_made += 1;
        let file = state.files_made;
        state.files.insert(file, File::default());
        state.change_name(NameChange::Make(name.to_owned(), file));
        Ok(self.handle(&state, file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.call_or_error()?;
        if !state.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change_name(NameChange::Move(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.call_or_error()?;
        if !state.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change_name(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.call_or_error()?;
        state.syncs += 1;
        if !state.lies {
            state.pending.clear();
            state.lasting_names = state.names.clone();
        }
        Ok(())
    }
}

impl Handle {
    /// The state and the file, unless the process of this handle is gone.
    fn with<T>(&self, act: impl FnOnce(&mut State, u64) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.disk.0.lock();
        if state.process != self.process || !state.files.contains_key(&self.file) {
            return Err(io::Error::other("the process of this handle has ended"));
        }
        act(&mut state, self.file)
    }
}

impl DiskFile for Handle {
    fn read(&self, bytes_max: u64) -> io::Result<Vec<u8>> {
        self.with(|state, file| {
            state.call_or_error()?;
            let bytes = &state.files[&file].bytes;
            Ok(bytes[..bytes.len().min(usize::try_from(bytes_max).unwrap_or(usize::MAX))].to_vec())
        })
    }

    fn size_bytes(&self) -> io::Result<u64> {
        self.with(|state, file| Ok(state.files[&file].bytes.len() as u64))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.with(|state, file| {
            let fault = state.call();
            let offset = usize::try_from(offset).map_err(io::Error::other)?;
            let growth = (offset + bytes.len()).saturating_sub(state.files[&file].bytes.len()) as u64;
            let full = growth > 0
                && state.bytes_max.is_some_and(|bytes_max| state.total_bytes() + growth > bytes_max);
            let fault = fault.or(full.then_some(Fault::Full));
            let written = match fault {
                None => bytes,
                Some(Fault::Short) => &bytes[..bytes.len() / 2],
                Some(Fault::Io | Fault::Full) => &[],
            };
            if let Some(file) = state.files.get_mut(&file).filter(|_| !written.is_empty()) {
                file.write(written, offset);
            }
            fault.map_or(Ok(()), |fault| Err(fault.error()))
        })
    }

    fn write_until_sync(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.with(|state, file| {
            state.files.get_mut(&file).into_iter().for_each(File::hold);
            Ok(())
        })?;
        self.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.with(|state, file| {
            let fault = state.call();
            state.syncs += 1;
            let lies = state.lies;
            let Some(file) = state.files.get_mut(&file).filter(|_| !lies) else { return Ok(()) };
            match fault {
                None => file.sync(),
                // The system drops what it could not write, and takes it for written.
                Some(_) => {
                    file.cached.clear();
                    file.before_held = None;
                }
            }
            fault.map_or(Ok(()), |fault| Err(fault.error()))
        })
    }
}
