//! What a busy task watches beside its work.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use parking_lot::Mutex;

/// A future beside one that is woken often: it is polled only when it was woken itself. A connection that is woken
/// twice a request would else ask its timer, its bell and its shutdown each time, for answers that nearly never change.
#[derive(Debug)]
pub(super) struct Aside<F> {
    future: F,
    bell: Arc<Bell>,
    waker: Waker,
    /// The task that is woken.
    task: Waker,
}

/// Notes that the future was woken, and wakes the task.
#[derive(Debug)]
struct Bell {
    rung: AtomicBool,
    task: Mutex<Waker>,
}

impl<F: Future + Unpin> Aside<F> {
    pub(super) fn new(future: F) -> Self {
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), task: Mutex::new(Waker::noop().clone()) });
        Self { future, waker: Waker::from(Arc::clone(&bell)), bell, task: Waker::noop().clone() }
    }
}

impl<F: Future + Unpin> Future for Aside<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if !this.task.will_wake(cx.waker()) {
            this.task.clone_from(cx.waker());
            *this.bell.task.lock() = this.task.clone();
        }
        // To look costs much less than to swap, and nearly always it was not rung.
        if !this.bell.rung.load(Ordering::Acquire) || !this.bell.rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        Pin::new(&mut this.future).poll(&mut Context::from_waker(&this.waker))
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Rung first: whoever polls after the task was named sees it, or is woken.
        self.rung.store(true, Ordering::Release);
        let task = self.task.lock().clone();
        task.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, sync::atomic::AtomicU32};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn it_is_polled_only_when_it_was_woken() {
        let (notify, polls) = (Notify::new(), AtomicU32::new(0));
        let mut notified = Box::pin(notify.notified());
        let mut aside = Aside::new(poll_fn(|cx| {
            polls.fetch_add(1, Ordering::Relaxed);
            notified.as_mut().poll(cx)
        }));
        let (mut woken, mut waker) = task();
        for _ in 0..3 {
            assert!(Pin::new(&mut aside).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        assert!(!woken.rung.load(Ordering::Relaxed));
        // Another task waits for it meanwhile: that one is woken.
        let before = woken;
        (woken, waker) = task();
        assert!(Pin::new(&mut aside).poll(&mut Context::from_waker(&waker)).is_pending());
        notify.notify_one();
        assert!(woken.rung.load(Ordering::Relaxed) && !before.rung.load(Ordering::Relaxed));
        assert!(Pin::new(&mut aside).poll(&mut Context::from_waker(&waker)).is_ready());
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    /// A task that notes when it is woken.
    fn task() -> (Arc<Bell>, Waker) {
        let bell = Arc::new(Bell { rung: AtomicBool::new(false), task: Mutex::new(Waker::noop().clone()) });
        (Arc::clone(&bell), Waker::from(bell))
    }
}
