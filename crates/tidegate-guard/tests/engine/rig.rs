//! A backend that can break a promise, so that a test shows that it would notice.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use tidegate_store::{
    Backend, BackendError, Change, Key, Loaded, MemoryBackend, NewState, Scope, Swept, Value,
};

/// Rows in memory, and what is wrong with them.
pub(crate) struct Rigged {
    inner: MemoryBackend,
    shared: bool,
    rig: Mutex<Rig>,
    writes: AtomicU64,
    loads: AtomicU64,
    absences: AtomicU64,
    /// The rows of families, which every admitted request writes.
    families: Mutex<BTreeSet<Key>>,
}

/// Which promise is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rig {
    /// None.
    Sound,
    /// No operation record is ever kept.
    ForgetsOperations,
    /// Receipts stay as they were given out.
    ForgetsRefunds,
    /// Every batch sees the store as it was at first: empty.
    ReadsNothing,
    /// Rows live 1 ms too long.
    ExpiresLate,
    /// Nothing can be loaded.
    Fails,
    /// Rows of this kind are of a version that nobody knows.
    Garbles(Kind),
    /// Rows of this kind lack their last byte.
    Cuts(Kind),
    /// Rows of this kind end in a byte that is neither text nor the end of a number.
    Smears(Kind),
}

/// What a row holds, as its first byte tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Operation = 0x01,
    Sliding = 0x11,
    Fixed = 0x21,
    Bucket = 0x31,
    Budget = 0x41,
    Receipt = 0x51,
    Record = 0x61,
    FamilyDay = 0x71,
    Quota = 0x81,
    Fence = 0x91,
}

impl Kind {
    fn is_of(self, value: &Value) -> bool {
        value.first() == Some(&(self as u8))
    }
}

impl Rigged {
    /// `shared`: it says that several instances see it.
    pub(crate) fn new(inner: MemoryBackend, rig: Rig, shared: bool) -> Self {
        Self {
            inner,
            shared,
            rig: Mutex::new(rig),
            writes: AtomicU64::new(0),
            loads: AtomicU64::new(0),
            absences: AtomicU64::new(0),
            families: Mutex::default(),
        }
    }

    pub(crate) fn rig(&self, rig: Rig) {
        *self.rig.lock() = rig;
    }

    /// How many rows were written, those of families aside.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::SeqCst)
    }

    /// How many batches were loaded.
    pub(crate) fn loads(&self) -> u64 {
        self.loads.load(Ordering::SeqCst)
    }

    /// How many batches found a row absent and left it so, which a store can't lock to keep it so.
    pub(crate) fn absences(&self) -> u64 {
        self.absences.load(Ordering::SeqCst)
    }

    /// How many families have a row.
    pub(crate) fn families(&self) -> u64 {
        self.families.lock().len() as u64
    }
}

impl Rig {
    fn keeps(self, change: &Change) -> bool {
        let NewState::Put(entry) = &change.state else { return true };
        match self {
            Self::ForgetsOperations => !Kind::Operation.is_of(&entry.value),
            Self::ForgetsRefunds => !(Kind::Receipt.is_of(&entry.value) && entry.value.get(1) == Some(&1)),
            _ => true,
        }
    }

    fn damage(self, value: &mut Value) {
        match self {
            Self::Garbles(kind) if kind.is_of(value) => value[0] = 0xee,
            Self::Cuts(kind) if kind.is_of(value) => drop(value.pop()),
            Self::Smears(kind) if kind.is_of(value) => {
                value.pop();
                value.push(0xff);
            }
            _ => {}
        }
    }
}

impl Backend for Rigged {
    /// The keys that had no row.
    type Batch = Vec<Key>;
    type Settled = <MemoryBackend as Backend>::Settled;

    fn shared(&self) -> bool {
        self.shared
    }

    async fn load(&self, keys: &[Key]) -> Result<Loaded<Vec<Key>>, BackendError> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        let rig = *self.rig.lock();
        if rig == Rig::Fails {
            return Err(BackendError { doing: "failing on purpose".to_owned(), cause: None });
        }
        let mut loaded = self.inner.load(keys).await?;
        for row in &mut loaded.rows {
            if rig == Rig::ReadsNothing {
                *row = None;
            }
            if let Some(entry) = row {
                entry.expires_at_ms += u64::from(rig == Rig::ExpiresLate);
                rig.damage(&mut entry.value);
            }
        }
        let Loaded { now_ms, rows, rows_held, batch: () } = loaded;
        let absent = keys.iter().zip(&rows).filter(|(_, row)| row.is_none()).map(|(key, _)| *key);
        Ok(Loaded { now_ms, rows_held, batch: absent.collect(), rows })
    }

    async fn commit(
        &self,
        absent: Vec<Key>,
        mut changes: Vec<Change>,
    ) -> Result<Self::Settled, BackendError> {
        let rig = *self.rig.lock();
        let relied_on = |key: &Key| changes.iter().all(|change| change.key != *key);
        self.absences.fetch_add(u64::from(absent.iter().any(relied_on)), Ordering::SeqCst);
        changes.retain(|change| rig.keeps(change));
        let is_family = |change: &&Change| matches!(&change.state, NewState::Put(entry) if Kind::FamilyDay.is_of(&entry.value));
        let families: Vec<Key> = changes.iter().filter(is_family).map(|change| change.key).collect();
        self.writes.fetch_add((changes.len() - families.len()) as u64, Ordering::SeqCst);
        self.families.lock().extend(families);
        self.inner.commit((), changes).await
    }

    async fn keys_in(&self, scope: Scope, keys_max: usize) -> Result<Vec<Key>, BackendError> {
        self.inner.keys_in(scope, keys_max).await
    }

    async fn sweep(&self, rows_max: usize) -> Result<Swept, BackendError> {
        self.inner.sweep(rows_max).await
    }

    async fn count(&self) -> Result<u64, BackendError> {
        self.inner.count().await
    }
}
