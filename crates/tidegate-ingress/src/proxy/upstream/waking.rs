//! Whom a connection to a server wakes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
};

use parking_lot::Mutex;

/// The waker of a connection's driver. It wakes the task that waits for the connection, but not for what that task does
/// to the driver itself: whoever hands over a request or takes a piece of a body drives the connection next. It would
/// else be woken by its own doing, or wake the task that had the connection before.
#[derive(Debug)]
pub(super) struct Waking {
    bell: Arc<Bell>,
    waker: Waker,
}

#[derive(Debug)]
struct Bell {
    is_muted: AtomicBool,
    task: Mutex<Waker>,
}

impl Waking {
    pub(super) fn new() -> Self {
        let bell =
            Arc::new(Bell { is_muted: AtomicBool::new(false), task: Mutex::new(Waker::noop().clone()) });
        Self { waker: Waker::from(Arc::clone(&bell)), bell }
    }

    /// What the driver is polled with on behalf of `task`, which is woken from now on.
    pub(super) fn of(&self, task: &Waker) -> Context<'_> {
        let mut known = self.bell.task.lock();
        if !known.will_wake(task) {
            known.clone_from(task);
        }
        Context::from_waker(&self.waker)
    }

    /// Does what wakes nobody.
    pub(super) fn muted<T>(&self, act: impl FnOnce() -> T) -> T {
        self.bell.is_muted.store(true, Ordering::Relaxed);
        let done = act();
        self.bell.is_muted.store(false, Ordering::Relaxed);
        done
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_muted.load(Ordering::Relaxed) {
            let task = self.task.lock().clone();
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_last_task_is_woken_by_others_only() {
        let (first, second) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
        let woken = || [&first, &second].map(|task| task.0.load(Ordering::Relaxed));
        let waking = Waking::new();
        let driver = waking.of(&Waker::from(Arc::clone(&first))).waker().clone();
        driver.wake_by_ref();
        assert_eq!(woken(), [1, 0]);
        assert!(waking.of(&Waker::from(Arc::clone(&second))).waker().will_wake(&driver));
        driver.wake_by_ref();
        waking.muted(|| driver.wake_by_ref());
        assert_eq!(woken(), [1, 1]);
        driver.wake();
        assert_eq!(woken(), [1, 2]);
    }
}
