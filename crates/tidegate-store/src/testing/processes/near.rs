//! The end that holds a store: does what the other end asks, and lets it decide on the rows of its updates.

use std::{
    collections::HashMap,
    io,
    os::unix::net::UnixStream,
    sync::{Arc, mpsc},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::wire::{Answer, Ask, Say, Write, receive, send};
use crate::{Entry, Job, Keys, LimitStore, View, testing::Harness};

/// A store, and what can be done to it from outside.
#[derive(Clone)]
pub(super) struct Near {
    pub(super) store: Arc<dyn LimitStore>,
    pub(super) harness: Arc<dyn Harness>,
}

/// What the calls of this end share with the thread that listens to the other one.
struct Line {
    socket: Mutex<UnixStream>,
    /// Who waits for a decision, by their calls.
    deciding: Mutex<HashMap<u64, mpsc::Sender<Vec<Write>>>>,
}

/// How long an update waits for the other end's decision.
const PATIENCE: Duration = Duration::from_secs(60);

impl Near {
    /// Serves until the other end has been closed. On a runtime of several threads: an update that waits for
    /// its decision holds one of them.
    pub(super) async fn serve(self, socket: UnixStream) -> io::Result<()> {
        let line = Arc::new(Line { socket: Mutex::new(socket.try_clone()?), deciding: Mutex::default() });
        line.say(0, &Say::Answer(Ok((u64::from(self.store.shared()), Vec::new()))))?;
        let runtime = Handle::current();
        let listening = tokio::task::spawn_blocking(move || {
            while let Ok((call, ask)) = receive(&socket) {
                match ask {
                    Ask::Decide(writes) => line.decided(call, writes),
                    ask => {
                        let (near, line) = (self.clone(), Arc::clone(&line));
                        runtime.spawn(async move {
                            let answer = near.answer(call, ask, &line).await;
                            // Nobody hears it if the other end has been closed.
                            let _ = line.say(call, &Say::Answer(answer));
                        });
                    }
                }
            }
            line.deciding.lock().clear();
        });
        listening.await.map_err(io::Error::other)
    }

    async fn answer(&self, call: u64, ask: Ask, line: &Arc<Line>) -> Answer {
        let store = &self.store;
        match ask {
            Ask::Run { keys: all, watched } => {
                let (many, watched) = (all.len(), usize::try_from(watched).unwrap_or(all.len()));
                let job = Asking { call, keys: many, line: Arc::clone(line) };
                store.run(Keys { all, watched }, Box::new(job)).await.map(|_| (0, Vec::new()))
            }
            Ask::Read(keys) => store.read(keys).await.map(|rows| (0, rows)),
            Ask::Forget(scope) => store.forget(scope).await.map(|rows| (rows, Vec::new())),
            Ask::Sweep => store.sweep().await.map(|rows| (rows, Vec::new())),
            Ask::Disturb(disturbance) => Ok((u64::from(self.harness.disturb(disturbance)), Vec::new())),
            // No call, but a part of one.
            Ask::Decide(_) => Ok((0, Vec::new())),
        }
    }
}

impl Line {
    fn say(&self, call: u64, say: &Say) -> io::Result<()> {
        send(&*self.socket.lock(), call, say)
    }

    fn decided(&self, call: u64, writes: Vec<Write>) {
        if let Some(update) = self.deciding.lock().remove(&call) {
            // It waits, or has been given up.
            let _ = update.send(writes);
        }
    }

    /// What the other end decides on `rows`.
    fn decide(&self, call: u64, now_ms: u64, rows: Vec<Option<Entry>>) -> Option<Vec<Write>> {
        let (update, decided) = mpsc::channel();
        self.deciding.lock().insert(call, update);
        self.say(call, &Say::Look { now_ms, rows }).ok()?;
        tokio::task::block_in_place(|| decided.recv_timeout(PATIENCE)).ok()
    }
}

/// An update that the other end decides.
struct Asking {
    call: u64,
    keys: usize,
    line: Arc<Line>,
}

impl Job for Asking {
    fn apply(&mut self, view: &mut View<'_>) {
        let rows = (0..self.keys).map(|index| view.get(index).cloned()).collect();
        // Without a decision nothing is written, and nobody is there to be told so.
        let writes = self.line.decide(self.call, view.now_ms(), rows).unwrap_or_default();
        for (place, entry) in writes {
            let place = usize::try_from(place).expect("a place of one of the keys");
            match entry {
                Some(entry) => view.put(place, entry.value, entry.expires_at_ms),
                None => view.delete(place),
            }
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}
