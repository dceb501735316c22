//! Whether a connection still gets anywhere.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

/// When a connection last began or ended something, and how many requests it has in work.
///
/// One mechanism ends every connection that gets nowhere: one that is silent, dribbles its head, idles, or
/// does not take its answers. It costs one timer a connection, not one a request.
#[derive(Debug)]
pub struct Activity {
    since: Instant,
    last_ms: AtomicU64,
    in_work: AtomicU32,
    in_head: AtomicBool,
    blocked: AtomicBool,
    unread: AtomicBool,
}

/// How long a connection may get nowhere.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// From a connection's begin, or the first byte of a later head, to the end of the head.
    pub head: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// While the client takes nothing of an answer.
    pub blocked: Duration,
}

impl Patience {
    /// The same for everything.
    #[must_use]
    pub const fn of(limit: Duration) -> Self {
        Self { head: limit, idle: limit, blocked: limit }
    }
}

/// A request in work.
#[derive(Debug)]
pub struct InWork(Arc<Activity>);

impl Activity {
    /// A connection that begins now.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            since: Instant::now(),
            last_ms: AtomicU64::new(0),
            in_work: AtomicU32::new(0),
            in_head: AtomicBool::new(true),
            blocked: AtomicBool::new(false),
            unread: AtomicBool::new(false),
        })
    }

    /// A whole request head has come; the request is in work until the answer is dropped, however it ends.
    #[must_use]
    pub fn begin(self: &Arc<Self>) -> InWork {
        self.enter();
        InWork(Arc::clone(self))
    }

    /// The same for whoever holds the connection's activity anyway, and [leaves](Self::leave) in the end.
    pub fn enter(&self) {
        self.in_work.fetch_add(1, Ordering::Relaxed);
        self.in_head.store(false, Ordering::Relaxed);
        // Without that, what is in work needs no instant: its end brings one.
        if self.blocked.load(Ordering::Relaxed) {
            self.touch(Instant::now());
        }
    }

    /// A request that was in work is no more.
    pub fn leave(&self) {
        self.touch(Instant::now());
        self.in_work.fetch_sub(1, Ordering::Relaxed);
    }

    /// The first bytes of another head have come, and not all of it.
    pub fn begin_head(&self) {
        if self.in_work.load(Ordering::Relaxed) == 0 && !self.in_head.swap(true, Ordering::Relaxed) {
            self.touch(Instant::now());
        }
    }

    /// The client does not take what is sent, or takes it again.
    pub fn set_blocked(&self, blocked: bool) {
        if self.blocked.load(Ordering::Relaxed) != blocked {
            self.blocked.store(blocked, Ordering::Relaxed);
            self.touch(Instant::now());
        }
    }

    /// Notes that an answer goes out without the whole body having been read.
    pub fn leave_unread(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    /// Whether an answer went out without the whole body having been read.
    #[must_use]
    pub fn left_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// How many requests are in work.
    #[must_use]
    pub fn in_work(&self) -> u32 {
        self.in_work.load(Ordering::Relaxed)
    }

    /// Ends once the connection has got nowhere for longer than `patience` allows.
    pub async fn stalled(&self, patience: Patience) {
        // A head may begin while the connection idles: looked at often enough not to be a quarter late.
        let glance = patience.head / 4;
        let mut wake = self.since + patience.head;
        loop {
            tokio::time::sleep_until(wake).await;
            let now = Instant::now();
            let last = self.since + Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            let ends = if self.blocked.load(Ordering::Relaxed) {
                last + patience.blocked
            } else if self.in_work() > 0 {
                now + glance
            } else if self.in_head.load(Ordering::Relaxed) {
                last + patience.head
            } else {
                last + patience.idle
            };
            if ends <= now {
                return;
            }
            wake = ends.min(now + glance);
        }
    }

    fn touch(&self, now: Instant) {
        let elapsed_ms = u64::try_from((now - self.since).as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(elapsed_ms, Ordering::Relaxed);
    }
}

impl Drop for InWork {
    fn drop(&mut self) {
        self.0.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn silence_ends_at_the_limit() {
        let (start, activity) = (Instant::now(), Activity::new());
        activity.stalled(Patience::of(LIMIT)).await;
        assert_eq!(start.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn each_request_gives_another_limit() {
        let (start, activity) = (Instant::now(), Activity::new());
        let requests = async {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(8)).await;
                drop(activity.begin());
            }
            std::future::pending::<()>().await;
        };
        tokio::select! { () = requests => {}, () = activity.stalled(Patience::of(LIMIT)) => {} }
        assert_eq!(start.elapsed().as_secs(), 34);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_in_work_is_not_a_stall() {
        let (start, activity) = (Instant::now(), Activity::new());
        let request = async {
            let in_work = activity.begin();
            tokio::time::sleep(Duration::from_secs(25)).await;
            drop(in_work);
            std::future::pending::<()>().await;
        };
        tokio::select! { () = request => {}, () = activity.stalled(Patience::of(LIMIT)) => {} }
        assert!(start.elapsed().as_secs() >= 35);
    }
}
