//! A backend in memory that hangs, fails, panics or takes its time, and keeps a record of its calls.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tidegate_store::{
    Backend, BackendError, BoxFuture, Change, Driver, DriverOptions, Key, LimitStoreExt, Loaded,
    MemoryBackend, Scope, StoreError, Swept, clock::ManualClock, testing::Switch,
};
use tokio::time::Instant;

/// What the test says, and what happened.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) switch: Switch,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    says: Says,
    calls: Vec<(Call, Instant)>,
    loaded: Vec<Vec<Key>>,
}

/// How the backend behaves, beside its switch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Says {
    pub(crate) load_takes: Duration,
    pub(crate) commit_takes: Duration,
    pub(crate) settling_takes: Duration,
    pub(crate) commit_fails: bool,
    /// So many commits find that another instance was first.
    pub(crate) commits_in_conflict: usize,
    pub(crate) settling_fails: bool,
    pub(crate) settling_panics: bool,
    pub(crate) load_panics: bool,
    pub(crate) sweep_fails: bool,
    /// It does not tell its count while loading.
    pub(crate) keeps_count: bool,
}

/// A call of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Load,
    Commit,
    Settle,
    Sweep,
    Count,
}

pub(crate) struct Scripted {
    script: Arc<Script>,
    rows: MemoryBackend,
}

pub(crate) const START_MS: u64 = 1_700_000_000_000;
pub(crate) const LONG_MS: u64 = 3_600_000;

/// A driver with `options` over a scripted backend.
pub(crate) fn start(options: DriverOptions) -> (Driver<Scripted>, Arc<Script>) {
    let clock = Arc::new(ManualClock::at(START_MS));
    let script = Arc::new(Script { clock: clock.clone(), switch: Switch::new(), state: Mutex::default() });
    let backend = Scripted { script: script.clone(), rows: MemoryBackend::new(clock) };
    (Driver::start(backend, options), script)
}

/// Usual options, with room for `max_entries`.
pub(crate) fn options(max_entries: u64) -> DriverOptions {
    DriverOptions::new("scripted", max_entries)
}

pub(crate) fn key(name: impl std::fmt::Display) -> Key {
    Key::of(&[b"driver", name.to_string().as_bytes()])
}

/// Adds one to the counter called `name`; answers what it is then.
pub(crate) async fn bump(driver: &Driver<Scripted>, name: impl std::fmt::Display) -> Result<u8, StoreError> {
    let update = driver.update(vec![key(name)], |view| {
        let count = view.get(0).map_or(0, |entry| entry.value[0]).wrapping_add(1);
        view.put(0, [count].as_slice(), view.now_ms() + LONG_MS);
        count
    });
    update.await
}

/// Lets every task that can run do so.
pub(crate) async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

impl Script {
    pub(crate) fn says(&self, says: Says) {
        self.state.lock().says = says;
    }

    /// The calls of one kind so far, with their times.
    pub(crate) fn times(&self, call: Call) -> Vec<Instant> {
        self.state.lock().calls.iter().filter(|(made, _)| *made == call).map(|(_, at)| *at).collect()
    }

    pub(crate) fn count(&self, call: Call) -> usize {
        self.times(call).len()
    }

    /// The keys of each load so far.
    pub(crate) fn loaded(&self) -> Vec<Vec<Key>> {
        self.state.lock().loaded.clone()
    }

    fn takes_a_conflict(&self) -> bool {
        let left = &mut self.state.lock().says.commits_in_conflict;
        let there_is_one = *left > 0;
        *left = left.saturating_sub(1);
        there_is_one
    }

    async fn call(&self, call: Call) -> Result<Says, BackendError> {
        let says = {
            let mut state = self.state.lock();
            state.calls.push((call, Instant::now()));
            state.says
        };
        self.switch.pass().await?;
        let takes = match call {
            Call::Load => says.load_takes,
            Call::Commit => says.commit_takes,
            Call::Settle => says.settling_takes,
            Call::Sweep | Call::Count => Duration::ZERO,
        };
        if takes > Duration::ZERO {
            tokio::time::sleep(takes).await;
        }
        match call {
            Call::Commit if says.commit_fails => Err(failure()),
            Call::Commit if self.takes_a_conflict() => Err(BackendError::conflict("committing")),
            Call::Settle if says.settling_fails => Err(failure()),
            Call::Settle if says.settling_panics => panic!("the script says so"),
            Call::Sweep if says.sweep_fails => Err(failure()),
            Call::Load if says.load_panics => panic!("the script says so"),
            _ => Ok(says),
        }
    }
}

fn failure() -> BackendError {
    BackendError { doing: "doing it".to_owned(), cause: Some("the script says so".into()) }
}

impl Backend for Scripted {
    type Batch = ();
    type Settled = BoxFuture<'static, Result<(), BackendError>>;

    fn shared(&self) -> bool {
        false
    }

    async fn load(&self, keys: &[Key]) -> Result<Loaded<()>, BackendError> {
        self.script.state.lock().loaded.push(keys.to_vec());
        let says = self.script.call(Call::Load).await?;
        let mut loaded = self.rows.load(keys).await?;
        loaded.rows_held = loaded.rows_held.filter(|_| !says.keeps_count);
        Ok(loaded)
    }

    async fn commit(&self, (): (), changes: Vec<Change>) -> Result<Self::Settled, BackendError> {
        self.script.call(Call::Commit).await?;
        let written = self.rows.commit((), changes).await?;
        let script = Arc::clone(&self.script);
        Ok(Box::pin(async move {
            script.call(Call::Settle).await?;
            written.await
        }))
    }

    async fn sweep(&self, rows_max: usize) -> Result<Swept, BackendError> {
        self.script.call(Call::Sweep).await?;
        self.rows.sweep(rows_max).await
    }

    async fn keys_in(&self, scope: Scope, keys_max: usize) -> Result<Vec<Key>, BackendError> {
        self.rows.keys_in(scope, keys_max).await
    }

    async fn count(&self) -> Result<u64, BackendError> {
        self.script.call(Call::Count).await?;
        self.rows.count().await
    }
}
