//! The rows and the log together: what is written goes to the log first and then to the rows. Who reads it may
//! be answered once it is as durable as it shall be.

mod upkeep;

use std::{
    error::Error as StdError,
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use thiserror::Error;
use tidegate_store::{
    BackendError, Change, Entry, Key, NewState, Scope, Swept, VALUE_BYTES_MAX, Value, clock::Clock,
};
use tracing::error;

use crate::{
    Durability, OpenError, Options, RealDisk, Stats, Upkeep,
    cleaner::Cleaner,
    disk::{Disk, Guard},
    error::disk_error,
    format::{FrameKind, encode_delete, encode_put, record_bytes},
    log::{Flushes, Log, Need},
    recovery::{Checksums, lock, recover},
    rows::{FETCHED_AT_ONCE, Name, OutOfSlots, Place, Rows},
    settled::{Settled, Unsettled},
    threads::Bell,
};

/// Rows that are sorted by what is due in a step of a sweep: about a millisecond, and no more than removing those
/// that it finds takes.
const ADVANCE_STEPS_A_SWEEP: usize = 1024;
/// The same with every load, so that a busy store needs no other time for it.
const ADVANCE_STEPS_A_LOAD: usize = 128;
/// Slots that are looked at in one step of a walk: some 50 µs.
const WALK_SLOTS: usize = 4096;
/// Who waits for the next segment looks by itself whether the store has stopped.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// What a record's two lengths take up at most.
const VARINTS_BYTES_MAX: u64 = 20;
/// More than a frame's header, an end frame, and a frame of all secrets take up.
const CONTROL_BYTES_MAX: u64 = 4096;

/// An open store.
#[derive(Debug)]
pub(crate) struct Engine {
    durability: Durability,
    clock: Arc<dyn Clock>,
    /// Stands for the current secret.
    tag: u8,
    /// Taken after `writer` where both are.
    rows: Mutex<Rows>,
    /// Nothing without durability.
    writer: Option<Mutex<Writer>>,
    /// The same.
    flushes: Option<Arc<Flushes>>,
    /// Told of every step towards the next segment.
    prepared: Condvar,
    /// The newest frame that is a batch.
    batch_lsn: AtomicU64,
    unsettled: Unsettled,
    /// Held by who flushes: of two flushes at once only one would be told of a failure.
    flushing: Mutex<()>,
    /// Whether threads do the upkeep and the flushes, and answer those who wait for them.
    threaded: bool,
    /// Wakes the upkeep.
    bell: Bell,
    /// Set once a flush has failed: from then on nothing is answered.
    failure: OnceLock<Arc<Failure>>,
    /// Whether rows were removed at an instant that the log does not know yet.
    swept: AtomicBool,
    /// Given up after everything else.
    _guard: Option<Box<dyn Guard>>,
}

#[derive(Debug)]
struct Writer {
    log: Log,
    cleaner: Cleaner,
    flushed_at_ms: u64,
    /// Whether the upkeep failed the last time.
    failing: bool,
}

/// What ended the store.
#[derive(Debug, Error)]
#[error("the store has stopped after a failure, and has to be opened again: {doing}")]
pub(crate) struct Failure {
    doing: &'static str,
    #[source]
    cause: Option<io::Error>,
}

/// A value larger than a store keeps.
#[derive(Debug, Error)]
#[error("a value has {0} bytes; at most {VALUE_BYTES_MAX} are kept")]
struct ValueTooLarge(usize);

impl Engine {
    pub(crate) fn open(options: &Options, checksums: Checksums) -> Result<Self, OpenError> {
        options.check()?;
        let disk = match &options.disk {
            Some(disk) => Arc::clone(disk),
            None => open_directory(options)?,
        };
        // Without durability, too: two processes would count each for itself, and one may be durable.
        let guard = lock(&*disk)?;
        if options.durability == Durability::None {
            return Ok(Self::new(options, 0, Rows::new(), None, Some(guard)));
        }
        let recovered = recover(&*disk, &*options.clock, options.segment_bytes, checksums)?;
        let mut log = Log::new(disk, options, recovered.found);
        let now_ms = options.clock.now_ms();
        let (tag, new) = log.use_secret(options.secret_id, now_ms).map_err(|_| OpenError::TooManySecrets)?;
        if new {
            let told = log.tell_secrets(now_ms).and_then(|()| {
                let flush = log.flushes().begin();
                flush.run().map(|()| log.flushes().done(&flush))
            });
            told.map_err(disk_error("telling the log of the current secret"))?;
        }
        let writer = Writer { log, cleaner: Cleaner::default(), flushed_at_ms: now_ms, failing: false };
        Ok(Self::new(options, tag, recovered.rows, Some(Mutex::new(writer)), Some(guard)))
    }

    fn new(
        options: &Options,
        tag: u8,
        rows: Rows,
        writer: Option<Mutex<Writer>>,
        guard: Option<Box<dyn Guard>>,
    ) -> Self {
        let (lsn, flushes) = writer.as_ref().map_or((0, None), |writer| {
            let log = &writer.lock().log;
            (log.lsn(), Some(Arc::clone(log.flushes())))
        });
        Self {
            durability: options.durability,
            clock: Arc::clone(&options.clock),
            tag,
            rows: Mutex::new(rows),
            writer,
            flushes,
            prepared: Condvar::new(),
            batch_lsn: AtomicU64::new(lsn),
            unsettled: Unsettled::new(lsn),
            flushing: Mutex::new(()),
            threaded: options.upkeep == Upkeep::Thread,
            bell: Bell::default(),
            failure: OnceLock::new(),
            swept: AtomicBool::new(false),
            _guard: guard,
        }
    }

    /// The clock, the live rows of `keys`, and how many rows there are.
    pub(crate) fn load(&self, keys: &[Key]) -> Result<(u64, Vec<Option<Entry>>, u64), BackendError> {
        self.check()?;
        let now_ms = self.clock.now_ms();
        let mut rows = self.rows.lock();
        rows.advance(now_ms, ADVANCE_STEPS_A_LOAD);
        let find = |key: &Key| {
            let row = rows.find(&self.name(*key)).filter(|row| row.expires_at_ms() > now_ms)?;
            Some(Entry { value: Value::from_slice(row.value()), expires_at_ms: row.expires_at_ms() })
        };
        let mut entries = Vec::with_capacity(keys.len());
        for keys in keys.chunks(FETCHED_AT_ONCE) {
            rows.fetch(keys.iter().map(|key| self.name(*key)));
            entries.extend(keys.iter().map(find));
        }
        Ok((now_ms, entries, rows.count_of_tag(self.tag)))
    }

    /// Writes all `changes` or none; answers how many bytes went to the log, and what the answers wait for.
    pub(crate) fn commit(&self, now_ms: u64, changes: &[Change]) -> Result<(u64, Settled), BackendError> {
        self.check()?;
        check_sizes(changes)?;
        let written_bytes = match &self.writer {
            Some(writer) if !changes.is_empty() => self.write(writer, now_ms, changes)?,
            _ => {
                self.apply(changes, 0)?;
                0
            }
        };
        Ok((written_bytes, self.settled()?))
    }

    fn write(&self, writer: &Mutex<Writer>, now_ms: u64, changes: &[Change]) -> Result<u64, BackendError> {
        let mut writer = writer.lock();
        let bytes_max = bytes_max(changes);
        while writer.log.must_wait(bytes_max) {
            self.bell.ring();
            self.prepared.wait_for(&mut writer, LOOK_AGAIN);
            // Nothing is prepared any more once the store has stopped.
            self.check()?;
        }
        let log = &mut writer.log;
        let payload = log.payload();
        for change in changes {
            match &change.state {
                NewState::Put(entry) => {
                    encode_put(payload, now_ms, &change.key, self.tag, entry.expires_at_ms, &entry.value);
                }
                NewState::Deleted => encode_delete(payload, &change.key, self.tag),
            }
        }
        let written_bytes = payload.len() as u64;
        let segment = log
            .append(FrameKind::Batch, Need::Ordinary, now_ms)
            .map_err(failed("writing a batch to the log"))?;
        // Before anybody can read the rows, and so knows what to wait for.
        self.batch_lsn.store(log.lsn(), Ordering::Release);
        // Still under the lock: the cleaning must not write, after the batch, what a row held before it.
        let live_bytes = self.apply(changes, segment)?;
        if writer.wants_step(live_bytes) {
            drop(writer);
            self.bell.ring();
        }
        Ok(written_bytes)
    }

    /// What answers wait for that tell of any batch so far.
    fn settled(&self) -> Result<Settled, BackendError> {
        if self.durability != Durability::Fsync {
            return Ok(Settled::NOW);
        }
        self.unsettled.settle(&self.batch_lsn, || self.check())
    }

    /// Flushes what was written by now. Others write meanwhile, and are not covered by it.
    pub(crate) fn flush(&self) {
        let Some(flushes) = &self.flushes else { return };
        let flush = {
            let _alone = self.flushing.lock();
            if self.failure.get().is_some() {
                return;
            }
            let flush = flushes.begin();
            if let Err(cause) = flush.run() {
                drop(self.stop("flushing the log", Some(cause)));
                return;
            }
            flushes.done(&flush);
            flush
        };
        self.unsettled.flushed(flush.lsn());
        if !self.threaded {
            self.unsettled.answer();
        }
        if flushes.is_releasing() {
            self.bell.ring();
        }
    }

    /// Looks for what has expired, in some steps, and removes up to `rows_max` rows.
    pub(crate) fn sweep(&self, rows_max: usize) -> Result<Swept, BackendError> {
        self.check()?;
        let mut rows = self.rows.lock();
        let now_ms = self.clock.now_ms();
        let sorted = rows.advance(now_ms, ADVANCE_STEPS_A_SWEEP);
        let removed = rows.remove_expired(now_ms, rows_max);
        if removed > 0 {
            self.swept.store(true, Ordering::Relaxed);
        }
        Ok(Swept { removed, complete: sorted && removed < rows_max })
    }

    /// The keys of up to `keys_max` live rows of `scope`; fewer if there are no more.
    pub(crate) fn keys_in(&self, scope: Scope, keys_max: usize) -> Result<Vec<Key>, BackendError> {
        self.check()?;
        let now_ms = self.clock.now_ms();
        let mut keys = Vec::new();
        let mut place = Some(Place::default());
        while let Some(from) = place.filter(|_| keys.len() < keys_max) {
            // Given up each time around, so that nobody waits for more than one step.
            place = self.rows.lock().walk(from, WALK_SLOTS, |_, slot| {
                let name = slot.name();
                if name.tag == self.tag && slot.expires_at_ms() > now_ms && scope.holds(&name.key) {
                    keys.push(name.key);
                }
                keys.len() < keys_max
            });
        }
        Ok(keys)
    }

    /// The rows of the current secret.
    pub(crate) fn count(&self) -> Result<u64, BackendError> {
        self.check()?;
        Ok(self.rows.lock().count_of_tag(self.tag))
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut stats = {
            let rows = self.rows.lock();
            Stats {
                rows: rows.count(),
                rows_of_secret: rows.count_of_tag(self.tag),
                live_bytes: rows.live_bytes(),
                memory_bytes: rows.memory_bytes(),
                ..Stats::default()
            }
        };
        if let Some(writer) = &self.writer {
            let writer = writer.lock();
            let counts = writer.log.counts();
            stats.log_bytes = writer.log.used_bytes();
            stats.disk_bytes = writer.log.disk_bytes();
            stats.segments = writer.log.segments() as u64;
            stats.frames = counts.frames;
            stats.written_bytes = counts.written_bytes;
            stats.flushes = counts.flushes;
            stats.copied_bytes = writer.cleaner.copied_bytes();
        }
        stats
    }

    /// Answers the bytes of all rows then.
    fn apply(&self, changes: &[Change], segment: u32) -> Result<u64, BackendError> {
        let mut rows = self.rows.lock();
        for change in changes {
            let name = self.name(change.key);
            match &change.state {
                NewState::Put(entry) => {
                    let put = rows.put(&name, entry.expires_at_ms, &entry.value, segment);
                    put.map_err(|OutOfSlots| self.stop("finding memory for a row", None))?;
                }
                NewState::Deleted => rows.remove(&name),
            }
        }
        Ok(rows.live_bytes())
    }

    pub(crate) fn unsettled(&self) -> &Unsettled {
        &self.unsettled
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    fn name(&self, key: Key) -> Name {
        Name { key, tag: self.tag }
    }

    fn check(&self) -> Result<(), BackendError> {
        self.failure.get().map_or(Ok(()), |failure| Err(stopped(failure)))
    }

    /// Answers nothing from here on.
    fn stop(&self, doing: &'static str, cause: Option<io::Error>) -> BackendError {
        let failure = self.failure.get_or_init(|| {
            error!(doing, ?cause, "the store has stopped; it has to be opened again");
            Arc::new(Failure { doing, cause })
        });
        self.unsettled.fail(|| stopped(failure));
        stopped(failure)
    }
}

fn open_directory(options: &Options) -> Result<Arc<dyn Disk>, OpenError> {
    let disk = RealDisk::create(&options.path);
    let disk = disk.map_err(disk_error(format!("making the directory {}", options.path.display())))?;
    Ok(if options.durability == Durability::Fsync {
        Arc::new(disk.writing_directly())
    } else {
        Arc::new(disk)
    })
}

/// More than the changes take up in the log.
fn bytes_max(changes: &[Change]) -> u64 {
    let of_one = |change: &Change| match &change.state {
        NewState::Put(entry) => record_bytes(entry.value.len()) + VARINTS_BYTES_MAX,
        NewState::Deleted => record_bytes(0),
    };
    changes.iter().map(of_one).sum::<u64>() + CONTROL_BYTES_MAX
}

fn check_sizes(changes: &[Change]) -> Result<(), BackendError> {
    let bytes = changes.iter().map(|change| match &change.state {
        NewState::Put(entry) => entry.value.len(),
        NewState::Deleted => 0,
    });
    match bytes.max() {
        Some(bytes) if bytes > VALUE_BYTES_MAX => Err(failed("checking a batch")(ValueTooLarge(bytes))),
        _ => Ok(()),
    }
}

fn stopped(failure: &Arc<Failure>) -> BackendError {
    failed("using a store that has stopped")(Arc::clone(failure))
}

/// A backend's error, with what was being done.
pub(crate) fn failed<E: StdError + Send + Sync + 'static>(doing: &str) -> impl FnOnce(E) -> BackendError {
    let doing = doing.to_owned();
    |cause| BackendError { doing, cause: Some(Box::new(cause)) }
}
