//! The threads of an open store: one flushes what batches wait for, one answers them, one does the upkeep.
//!
//! Waking those who wait takes system calls that the disk would wait for, so whoever flushes goes on with the next one.

use std::{io, sync::Arc, thread::JoinHandle, time::Duration};

use parking_lot::{Condvar, Mutex};

use crate::engine::Engine;

/// How often a quiet store looks whether there is something to do.
const TICK: Duration = Duration::from_millis(200);

/// The threads; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct Threads {
    engine: Arc<Engine>,
    threads: Vec<JoinHandle<()>>,
}

/// Wakes the upkeep before its time.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    state: Mutex<Ringing>,
    rung: Condvar,
}

#[derive(Debug, Default)]
struct Ringing {
    rings: bool,
    closed: bool,
}

impl Threads {
    pub(crate) fn start(engine: Arc<Engine>) -> io::Result<Self> {
        let mut threads = Self { engine, threads: Vec::new() };
        threads.spawn("tidegate-flush", flush)?;
        threads.spawn("tidegate-answer", answer)?;
        threads.spawn("tidegate-log", keep_up)?;
        Ok(threads)
    }

    fn spawn(&mut self, name: &str, work: fn(&Engine)) -> io::Result<()> {
        let engine = Arc::clone(&self.engine);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&engine))?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.engine.unsettled().close();
        self.engine.bell().close();
        for thread in self.threads.drain(..) {
            // If it panicked, that has been reported by the panic itself.
            drop(thread.join());
            // The first was the one that flushes.
            self.engine.unsettled().end();
        }
    }
}

impl Bell {
    /// There is something to do.
    pub(crate) fn ring(&self) {
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.rings, true) {
            self.rung.notify_one();
        }
    }

    /// The store closes.
    fn close(&self) {
        self.state.lock().closed = true;
        self.rung.notify_one();
    }

    /// Waits for a ring, or for the time to look by oneself; false: the store closes.
    fn wait(&self, time: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.rings && !state.closed && !time.is_zero() {
            self.rung.wait_for(&mut state, time);
        }
        state.rings = false;
        !state.closed
    }
}

fn flush(engine: &Engine) {
    while engine.unsettled().wait_for_work() {
        engine.flush();
    }
}

fn answer(engine: &Engine) {
    while engine.unsettled().answer_next() {}
}

fn keep_up(engine: &Engine) {
    let mut busy = true;
    while engine.bell().wait(if busy { Duration::ZERO } else { TICK }) {
        busy = engine.idle();
    }
}
