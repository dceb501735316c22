//! The threads that serve connections: one a core, each with a runtime of its own.
//!
//! A connection stays on its thread, and so does the store's driver that its requests use. With one runtime
//! over all threads a request would wake other threads several times, at a third of its whole cost.

use std::{io, thread::JoinHandle};

use tidegate_store::lanes;
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
};

/// Running threads.
pub(super) struct Threads(Vec<Thread>);

struct Thread {
    runtime: Handle,
    end: oneshot::Sender<()>,
    join: JoinHandle<()>,
}

impl Threads {
    /// Starts them.
    ///
    /// # Errors
    /// The system gives no thread, or no runtime. Those that were started end.
    pub(super) fn start() -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (0..cores).map(Thread::start).collect::<io::Result<_>>().map(Self)
    }

    /// Their runtimes.
    pub(super) fn handles(&self) -> Vec<Handle> {
        self.0.iter().map(|thread| thread.runtime.clone()).collect()
    }

    /// Ends them, and whatever still runs on them.
    pub(super) fn end(self) {
        for thread in self.0 {
            // An error means that the thread has ended already.
            let _ = thread.end.send(());
            let _ = thread.join.join();
        }
    }
}

impl Thread {
    fn start(lane: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel();
        let handle = runtime.handle().clone();
        let serve = move || {
            lanes::enter(lane);
            // An error means that the sender is gone, which says the same.
            let _ = runtime.block_on(ended);
        };
        let join = std::thread::Builder::new().name(format!("serve-{lane}")).spawn(serve)?;
        Ok(Self { runtime: handle, end, join })
    }
}
