//! The work that no caller waits for: the next segment is made ready, the log is cleaned, what is durable is told,
//! and what is not needed is let go. Each step holds a lock for a millisecond or so.

use std::{io, sync::atomic::Ordering};

use parking_lot::Mutex;
use tracing::warn;

use super::{CONTROL_BYTES_MAX, Engine, Writer};
use crate::{
    Durability,
    cleaner::Cleaner,
    log::{Need, Stepped},
    rows::Rows,
};

/// Rows that are sorted by what is due at a time, while others wait: some 0.3 ms, if none is in a cache.
const ADVANCE_STEPS: usize = 256;
/// How long the disk may lag behind under [`Durability::Process`].
const FLUSH_EVERY_MS: u64 = 1000;

impl Engine {
    /// One step of the upkeep that writes; answers whether there is more to do at once.
    pub(crate) fn step(&self, written_bytes: u64) -> bool {
        let Some(writer) = self.writer.as_ref().filter(|_| self.failure.get().is_none()) else {
            return false;
        };
        let step = writer.lock().log.begin_step();
        // Without the lock: it may take long, and others may write meanwhile.
        let prepared = step.map(|step| step.run());
        let live_bytes = self.rows.lock().live_bytes();
        let (more, releasing) = {
            let mut writer = writer.lock();
            let more = self.clean(&mut writer, prepared, live_bytes, written_bytes);
            (more, writer.log.is_starved() && writer.log.is_releasing())
        };
        self.let_go(writer);
        releasing && self.settle(self.clock.now_ms(), 0) || more
    }

    /// The part of a step that needs the writer.
    fn clean(
        &self,
        writer: &mut Writer,
        prepared: Option<io::Result<Stepped>>,
        live_bytes: u64,
        written_bytes: u64,
    ) -> bool {
        let prepared = prepared.map_or(Ok(()), |stepped| writer.log.end_step(stepped));
        self.prepared.notify_all();
        // On a full disk nothing is prepared until the cleaning has let something go.
        let stuck = prepared.is_err();
        let starved = writer.log.is_starved();
        let stepped = writer.step(&self.rows, live_bytes, self.clock.now_ms(), written_bytes);
        let more = match stepped {
            Ok(more) => more && (!stuck || writer.cleaner.wants_step(&writer.log, live_bytes)),
            // The next step knows that it has to do with what room there is.
            Err(_) => writer.log.is_starved() && !starved,
        };
        writer.note(&prepared.and(stepped));
        more
    }

    /// Lets go of what is not needed any more; of the files without the lock, since removing one may take long.
    fn let_go(&self, writer: &Mutex<Writer>) {
        let live_bytes = self.rows.lock().live_bytes();
        let surplus = {
            let mut writer = writer.lock();
            let bytes_max = Cleaner::disk_bytes_max(&writer.log, live_bytes);
            writer.log.collect(bytes_max)
        };
        let left = surplus.remove();
        if !left.is_empty() {
            writer.lock().log.keep(left);
        }
    }

    /// The upkeep of a quiet moment; answers whether there is more to do at once.
    pub(crate) fn idle(&self) -> bool {
        let now_ms = self.clock.now_ms();
        let sorted = self.rows.lock().advance(now_ms, ADVANCE_STEPS);
        let more = self.step(0);
        if !more && self.threaded {
            if self.tell(now_ms, FLUSH_EVERY_MS) {
                self.unsettled.want_flush();
            }
        } else if !more {
            self.settle(now_ms, FLUSH_EVERY_MS);
        }
        more || !sorted
    }

    /// Leaves a log that says that all of it is on the disk.
    pub(crate) fn close(&self) {
        let now_ms = self.clock.now_ms();
        self.settle(now_ms, 0);
        self.settle(now_ms, 0);
    }

    /// Flushes what has waited long enough; answers whether segments were let go.
    fn settle(&self, now_ms: u64, flush_every_ms: u64) -> bool {
        let Some(writer) = self.writer.as_ref().filter(|_| self.tell(now_ms, flush_every_ms)) else {
            return false;
        };
        let releasing = writer.lock().log.is_releasing();
        self.flush();
        self.let_go(writer);
        releasing && !writer.lock().log.is_releasing()
    }

    /// Tells the log what no frame tells yet, if enough time has passed; answers whether it wants a flush.
    fn tell(&self, now_ms: u64, flush_every_ms: u64) -> bool {
        let Some(writer) = self.writer.as_ref().filter(|_| self.failure.get().is_none()) else {
            return false;
        };
        let mut writer = writer.lock();
        let due = self.durability == Durability::Fsync
            || now_ms.saturating_sub(writer.flushed_at_ms) >= flush_every_ms
            || writer.log.is_releasing();
        if !due || writer.log.must_wait(CONTROL_BYTES_MAX) {
            return false;
        }
        writer.flushed_at_ms = now_ms;
        let told = writer.tell(now_ms, self.swept.swap(false, Ordering::Relaxed));
        if told.is_err() {
            writer.note(&told);
        }
        writer.log.has_unflushed()
    }
}

impl Writer {
    fn step(
        &mut self,
        rows: &Mutex<Rows>,
        live_bytes: u64,
        now_ms: u64,
        written_bytes: u64,
    ) -> io::Result<bool> {
        let wants = self.cleaner.wants_step(&self.log, live_bytes);
        if wants && !self.log.must_wait(Cleaner::step_bytes_max(written_bytes)) {
            self.cleaner.step(&mut self.log, rows, now_ms, written_bytes)?;
        }
        Ok(self.wants_step(live_bytes))
    }

    /// Whether there is something for the upkeep to do at once.
    pub(super) fn wants_step(&self, live_bytes: u64) -> bool {
        self.log.wants_next() || self.cleaner.wants_step(&self.log, live_bytes)
    }

    /// Writes a mark if there is something to tell: what is durable, what is not needed, what time it is.
    fn tell(&mut self, now_ms: u64, swept: bool) -> io::Result<()> {
        let time = swept && now_ms > self.log.last_now_ms();
        let release = self.log.is_releasing() && !self.log.release_is_told();
        if time || release || self.log.has_untold() {
            self.log.mark(if release { Need::Release } else { Need::Ordinary }, now_ms)?;
        }
        Ok(())
    }

    /// Logs that the upkeep fails, once, and that it works again.
    fn note<T>(&mut self, stepped: &io::Result<T>) {
        match stepped {
            Err(error) if !self.failing => {
                warn!(%error, "the upkeep of the log fails; the log grows until it works again");
            }
            Ok(_) if self.failing => warn!("the upkeep of the log works again"),
            _ => {}
        }
        self.failing = stepped.is_err();
    }
}
