//! The thread that writes: commits one by one as they come, and the upkeep in between.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use thiserror::Error;
use tidegate_store::{BackendError, Change};
use tokio::sync::oneshot;

use crate::engine::{Engine, failed};

/// How often a quiet store looks whether there is something to do.
const TICK: Duration = Duration::from_millis(200);

/// The thread; ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Writer {
    sender: Option<Sender<Commit>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Commit {
    now_ms: u64,
    changes: Vec<Change>,
    answer: oneshot::Sender<Result<(), BackendError>>,
}

/// The thread is gone, which it is not while the store is open, unless it panicked.
#[derive(Debug, Error)]
#[error("the writing thread is gone")]
struct Gone;

impl Writer {
    pub(crate) fn start(engine: Arc<Engine>) -> io::Result<Self> {
        let (sender, receiver) = channel();
        let builder = std::thread::Builder::new().name("tidegate-log".to_owned());
        let thread = builder.spawn(move || run(&engine, &receiver))?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    pub(crate) async fn commit(&self, now_ms: u64, changes: Vec<Change>) -> Result<(), BackendError> {
        let gone = || failed("handing a batch to the writing thread")(Gone);
        let (answer, answered) = oneshot::channel();
        let sender = self.sender.as_ref().ok_or_else(gone)?;
        sender.send(Commit { now_ms, changes, answer }).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            // If it panicked, that has been reported by the panic itself.
            drop(thread.join());
        }
    }
}

fn run(engine: &Engine, receiver: &Receiver<Commit>) {
    let mut busy = true;
    loop {
        match next(receiver, busy) {
            Next::Commit(Commit { now_ms, changes, answer }) => {
                let committed = engine.commit(now_ms, &changes);
                let written_bytes = committed.as_ref().copied().unwrap_or(0);
                // Whoever asked may have gone; what is written is written.
                drop(answer.send(committed.map(drop)));
                drop(changes);
                busy = engine.step(written_bytes);
            }
            Next::Nothing => busy = engine.idle(),
            Next::Close => return engine.close(),
        }
    }
}

enum Next {
    Commit(Commit),
    Nothing,
    Close,
}

fn next(receiver: &Receiver<Commit>, busy: bool) -> Next {
    let received = if busy {
        receiver.try_recv().map_err(|error| match error {
            TryRecvError::Empty => RecvTimeoutError::Timeout,
            TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
        })
    } else {
        receiver.recv_timeout(TICK)
    };
    match received {
        Ok(commit) => Next::Commit(commit),
        Err(RecvTimeoutError::Timeout) => Next::Nothing,
        Err(RecvTimeoutError::Disconnected) => Next::Close,
    }
}
