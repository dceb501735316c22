//! Whether a connection still gets anywhere.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// When a connection last began or ended a request, and how many it has in work.
///
/// One mechanism ends every connection that gets nowhere: one that is silent, dribbles its head, idles, or
/// does not take its answers. It costs one timer a connection, not one a request.
#[derive(Debug)]
pub(super) struct Activity {
    since: Instant,
    last_ms: AtomicU64,
    in_work: AtomicU32,
    unread: AtomicBool,
}

/// A request in work.
#[derive(Debug)]
pub(super) struct InWork<'a>(&'a Activity);

impl Activity {
    pub(super) fn new() -> Self {
        Self {
            since: Instant::now(),
            last_ms: AtomicU64::new(0),
            in_work: AtomicU32::new(0),
            unread: AtomicBool::new(false),
        }
    }

    /// A whole request head has come; the request is in work until the answer is dropped, however it ends.
    pub(super) fn begin(&self, now: Instant) -> InWork<'_> {
        self.in_work.fetch_add(1, Ordering::Relaxed);
        self.touch(now);
        InWork(self)
    }

    /// Notes that an answer goes out without the whole body having been read.
    pub(super) fn leave_unread(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    pub(super) fn left_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// Ends once nothing has been in work for `limit`.
    pub(super) async fn stalled(&self, limit: Duration) {
        let mut wake = self.since + limit;
        loop {
            tokio::time::sleep_until(wake).await;
            let now = Instant::now();
            let last = self.since + Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            wake = if self.in_work.load(Ordering::Relaxed) > 0 { now } else { last } + limit;
            if wake <= now {
                return;
            }
        }
    }

    fn touch(&self, now: Instant) {
        let elapsed_ms = u64::try_from((now - self.since).as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(elapsed_ms, Ordering::Relaxed);
    }
}

impl Drop for InWork<'_> {
    fn drop(&mut self) {
        self.0.touch(Instant::now());
        self.0.in_work.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn silence_ends_at_the_limit() {
        let (start, activity) = (Instant::now(), Activity::new());
        activity.stalled(LIMIT).await;
        assert_eq!(start.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn each_request_gives_another_limit() {
        let (start, activity) = (Instant::now(), Activity::new());
        let requests = async {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(8)).await;
                drop(activity.begin(Instant::now()));
            }
            std::future::pending::<()>().await;
        };
        tokio::select! { () = requests => {}, () = activity.stalled(LIMIT) => {} }
        assert_eq!(start.elapsed().as_secs(), 34);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_in_work_is_not_a_stall() {
        let (start, activity) = (Instant::now(), Activity::new());
        let request = async {
            let in_work = activity.begin(Instant::now());
            tokio::time::sleep(Duration::from_secs(25)).await;
            drop(in_work);
            std::future::pending::<()>().await;
        };
        tokio::select! { () = request => {}, () = activity.stalled(LIMIT) => {} }
        assert!(start.elapsed().as_secs() >= 35);
    }
}
