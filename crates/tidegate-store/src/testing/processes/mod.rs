//! The whole contract with each of the two handles in a process of its own.
//!
//! A test starts two children, its own binary again, in each of which [`take_part`] serves on an instance of the
//! child's own. The cases stay here, and so do the jobs of their updates, which can't be sent anywhere: a child
//! that runs one asks what becomes of the rows that it sees, and the instance waits for the answer as it would for
//! the job. What a child is asked, and what it answers, goes over a socket that it has for its standard input.

mod far;
mod near;
#[cfg(test)]
mod tests;
mod wire;

use std::{
    env,
    io::{self, stdin},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;

use self::{far::FarStore, near::Near};
use super::{
    faulty::Disturbance,
    harness::{Handles, Harness, Reopened},
};
use crate::{DriverOptions, LimitStore, contract::BoxFuture};

/// Tells a child its store: the bound, the deadline in ms, and the place.
const STORE: &str = "TIDEGATE_CONTRACT_STORE";
/// For a child to start, on a machine with other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

impl Handles {
    /// Two instances, each in a process of its own, on the one store at `place`, which is fresh and empty. The
    /// processes are this binary again with nothing but the test called `test`, which shall [`take_part`]. On a
    /// runtime of several threads.
    ///
    /// They run in real time, and are killed when the store is opened again or the handles are dropped.
    ///
    /// # Errors
    /// A process can't be started, or does not serve.
    pub async fn two_processes(test: &str, place: &str, options: &DriverOptions) -> io::Result<Self> {
        let deadline_ms = options.deadline.as_millis();
        let store = format!("{} {deadline_ms} {place}", options.max_entries);
        let processes = Processes { test: test.to_owned(), store, running: Mutex::default() };
        let (first, second) = processes.start().await?;
        let (deadline, max_calls) = (options.deadline, options.max_calls);
        Ok(Self { first, second, deadline, max_calls, harness: Arc::new(processes) })
    }

    /// The same handles as a case would have them of two processes, with both ends in this one: to show that
    /// it sees all that it would see without. On a runtime of several threads.
    ///
    /// # Errors
    /// No socket can be had.
    pub async fn forwarded(self) -> io::Result<Self> {
        let Self { first, second, deadline, max_calls, harness } = self;
        let harness = Forwarded(harness);
        let (first, second) = harness.forward((first, second)).await?;
        Ok(Self { first, second, deadline, max_calls, harness: Arc::new(harness) })
    }
}

/// Where the store is that this process shall [`take_part`] on, and how, as an instance called `name`; none where
/// it is no child.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a child of a test, which is told so")]
pub fn place_of_child(name: &'static str) -> Option<(String, DriverOptions)> {
    let store = env::var(STORE).ok()?;
    let (max_entries, store) = store.split_once(' ')?;
    let (deadline_ms, place) = store.split_once(' ')?;
    let deadline = Duration::from_millis(deadline_ms.parse().ok()?);
    Some((
        place.to_owned(),
        DriverOptions { deadline, ..DriverOptions::new(name, max_entries.parse().ok()?) },
    ))
}

/// Serves in a child on the first handle of `instance`, until the parent has heard enough. On a runtime of several
/// threads.
///
/// # Errors
/// The standard input is not what a parent gives its child.
pub async fn take_part(instance: Handles) -> io::Result<()> {
    let socket = UnixStream::from(stdin().as_fd().try_clone_to_owned()?);
    Near { store: instance.first, harness: instance.harness }.serve(socket).await
}

/// Two children, and how to start them.
struct Processes {
    test: String,
    store: String,
    running: Mutex<Vec<Process>>,
}

struct Process {
    store: Arc<FarStore>,
    _child: Killed,
}

/// A child, killed when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Processes {
    async fn start(&self) -> io::Result<Reopened> {
        let (first, second) = tokio::try_join!(self.start_one(), self.start_one())?;
        let handles: Reopened = (first.store.clone(), second.store.clone());
        *self.running.lock() = vec![first, second];
        Ok(handles)
    }

    async fn start_one(&self) -> io::Result<Process> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(env::current_exe()?);
        command.args(["--exact", &self.test, "--nocapture"]).env(STORE, &self.store);
        let child = Killed(command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).spawn()?);
        // It holds the child's end of the socket, too, which would hide that the child has ended.
        drop(command);
        let store = tokio::time::timeout(PATIENCE, FarStore::at(ours)).await??;
        Ok(Process { store: Arc::new(store), _child: child })
    }
}

impl Harness for Processes {
    fn disturb(&self, disturbance: Disturbance) -> bool {
        let stores: Vec<_> = self.running.lock().iter().map(|process| process.store.clone()).collect();
        stores.iter().for_each(|store| store.disturb(disturbance));
        true
    }

    fn reopen(&self) -> BoxFuture<'_, Option<Reopened>> {
        Box::pin(async {
            drop(std::mem::take(&mut *self.running.lock()));
            Some(self.start().await.expect("processes that could be started can be started again"))
        })
    }
}

/// A harness whose handles go through sockets to the other end and back.
struct Forwarded(Arc<dyn Harness>);

impl Forwarded {
    async fn forward(&self, (first, second): Reopened) -> io::Result<Reopened> {
        Ok((self.forward_one(first).await?, self.forward_one(second).await?))
    }

    async fn forward_one(&self, store: Arc<dyn LimitStore>) -> io::Result<Arc<dyn LimitStore>> {
        let (far, near) = UnixStream::pair()?;
        tokio::spawn(Near { store, harness: Arc::clone(&self.0) }.serve(near));
        Ok(Arc::new(FarStore::at(far).await?))
    }
}

impl Harness for Forwarded {
    fn advance(&self, by_ms: u64) -> bool {
        self.0.advance(by_ms)
    }

    fn disturb(&self, disturbance: Disturbance) -> bool {
        self.0.disturb(disturbance)
    }

    fn reopen(&self) -> BoxFuture<'_, Option<Reopened>> {
        Box::pin(async {
            let handles = self.0.reopen().await?;
            Some(self.forward(handles).await.expect("there is another socket where there was one"))
        })
    }
}
