//! The end that holds the case: a store whose calls are answered elsewhere, and whose jobs are run here.

use std::{
    collections::HashMap,
    io,
    net::Shutdown,
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::wire::{Answer, Ask, Say, Write, receive, send};
use crate::{
    BoxFuture, Entry, Invalid, Job, Key, Keys, LimitStore, NewState, Scope, StoreError, Unavailable, View,
    testing::Disturbance, view::Row,
};

/// A store at the other end of a socket. Dropping it closes the socket, and so ends what is there.
pub(super) struct FarStore {
    line: Arc<Line>,
    shared: bool,
}

/// What callers share with the thread that listens to the other end.
struct Line {
    socket: UnixStream,
    /// Held while a frame is written.
    writing: Mutex<()>,
    calls: Mutex<HashMap<u64, Call>>,
    next: AtomicU64,
}

/// A call that has not been answered.
struct Call {
    job: Option<Box<dyn Job>>,
    caller: oneshot::Sender<Answered>,
}

type Answered = (Answer, Option<Box<dyn Job>>);

impl FarStore {
    /// Waits for the word of the other end that it serves; it says so in answer to the call numbered 0.
    pub(super) async fn at(socket: UnixStream) -> io::Result<Self> {
        let listening = socket.try_clone()?;
        let line = Arc::new(Line {
            socket,
            writing: Mutex::default(),
            calls: Mutex::default(),
            next: AtomicU64::new(0),
        });
        let (_, word) = line.enter(None);
        thread::spawn({
            let line = Arc::clone(&line);
            move || line.listen(&listening)
        });
        match word.await {
            Ok((Ok((shared, _)), _)) => Ok(Self { line, shared: shared != 0 }),
            _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended before it served")),
        }
    }

    /// From now on it is disturbed in this way: once this returns, every later call finds it so.
    pub(super) fn disturb(&self, disturbance: Disturbance) {
        let disturbed = self.line.ask(&Ask::Disturb(disturbance), None);
        // Without an answer it has ended, and the next call tells that.
        let _ = tokio::task::block_in_place(|| disturbed.blocking_recv());
    }

    async fn answer(&self, ask: Ask) -> Answer {
        self.line.ask(&ask, None).await.map_or(GONE, |(answer, _)| answer)
    }
}

/// Nobody is at the other end any more.
const GONE: Answer = Err(StoreError::Unavailable(Unavailable::Backend));

impl LimitStore for FarStore {
    fn shared(&self) -> bool {
        self.shared
    }

    fn run(&self, keys: Keys, job: Box<dyn Job>) -> BoxFuture<'_, Result<Box<dyn Job>, StoreError>> {
        let ask = Ask::Run { keys: keys.all, watched: keys.watched as u64 };
        let answered = self.line.ask(&ask, Some(job));
        Box::pin(async move {
            let (answer, job) = answered.await.unwrap_or((GONE, None));
            answer.map(|_| job.expect("an update has its job until it is answered"))
        })
    }

    fn read(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Vec<Option<Entry>>, StoreError>> {
        Box::pin(async { self.answer(Ask::Read(keys)).await.map(|(_, rows)| rows) })
    }

    fn forget(&self, scope: Scope) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move { self.answer(Ask::Forget(scope)).await.map(|(rows, _)| rows) })
    }

    fn sweep(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async { self.answer(Ask::Sweep).await.map(|(rows, _)| rows) })
    }
}

impl Drop for FarStore {
    fn drop(&mut self) {
        // It may have been closed from the other end.
        let _ = self.line.socket.shutdown(Shutdown::Both);
    }
}

impl Line {
    fn enter(&self, job: Option<Box<dyn Job>>) -> (u64, oneshot::Receiver<Answered>) {
        let (caller, answered) = oneshot::channel();
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        self.calls.lock().insert(call, Call { job, caller });
        (call, answered)
    }

    fn ask(&self, ask: &Ask, job: Option<Box<dyn Job>>) -> oneshot::Receiver<Answered> {
        let (call, answered) = self.enter(job);
        if self.send(call, ask).is_err() {
            self.calls.lock().remove(&call);
        }
        answered
    }

    fn send(&self, call: u64, ask: &Ask) -> io::Result<()> {
        let _whole = self.writing.lock();
        send(&self.socket, call, ask)
    }

    /// Runs jobs on the rows that come and hands answers to who waits for them, until the socket is closed.
    fn listen(&self, socket: &UnixStream) {
        while let Ok((call, said)) = receive(socket) {
            match said {
                Say::Look { now_ms, rows } => {
                    let writes = self.decide(call, now_ms, rows);
                    if self.send(call, &Ask::Decide(writes)).is_err() {
                        break;
                    }
                }
                Say::Answer(answer) => {
                    if let Some(Call { job, caller }) = self.calls.lock().remove(&call) {
                        // Who has given up needs no answer.
                        let _ = caller.send((answer, job));
                    }
                }
            }
        }
        // Whoever calls from now on finds it closed, and whoever has called is told.
        let _ = socket.shutdown(Shutdown::Both);
        self.calls.lock().clear();
    }

    /// What the call's job makes of `rows`; nothing, if it has been answered meanwhile: an update that was
    /// answered late may well not have happened.
    fn decide(&self, call: u64, now_ms: u64, rows: Vec<Option<Entry>>) -> Vec<Write> {
        let mut calls = self.calls.lock();
        let job = calls.get_mut(&call).and_then(|call| call.job.as_mut());
        job.map(|job| decide(&mut **job, now_ms, rows)).unwrap_or_default()
    }
}

/// Runs `job` here. What it writes is judged at the other end, whatever the view here says of it. Rows that it
/// writes beside others count as its own there: no case needs more.
fn decide(job: &mut dyn Job, now_ms: u64, rows: Vec<Option<Entry>>) -> Vec<Write> {
    let mut rows: Vec<Row> = rows.into_iter().map(Row::loaded).collect();
    let places: Vec<u32> = (0..).take(rows.len()).collect();
    let mut view = View::new(now_ms, &mut rows, &places, 0, Vec::new());
    job.apply(&mut view);
    let refused = view.fault().and_then(|fault| refused(fault, now_ms));
    let written = (0..).zip(rows).filter_map(|(place, row)| match row.into_change()? {
        NewState::Put(entry) => Some((place, Some(entry))),
        NewState::Deleted => Some((place, None)),
    });
    written.chain(refused).collect()
}

/// A write that is refused like the one that the view here has not taken.
fn refused(fault: Invalid, now_ms: u64) -> Option<Write> {
    let (index, bytes, expires_at_ms) = match fault {
        Invalid::ValueTooLarge { index, bytes } => (index, bytes, now_ms + 1),
        Invalid::ExpiryOutOfRange { index } => (index, 0, 0),
        // Keys are checked before a view is made of them, and the one here watches nothing.
        _ => return None,
    };
    Some((index as u64, Some(Entry { value: vec![0; bytes].into(), expires_at_ms })))
}
