//! How long a server may send nothing.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// A time that begins anew with each request, kept by one timer a connection.
///
/// The timer is moved only where it would come too late. Where it comes too early, it is moved then: once in the whole
/// time, and not once a request.
#[derive(Debug)]
pub(super) struct Patience {
    ends: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    pub(super) const fn new(now: Instant) -> Self {
        Self { ends: now, timer: None }
    }

    /// From now on it lasts so long.
    pub(super) fn begin(&mut self, now: Instant, patience: Duration) {
        self.ends = now + patience;
        if let Some(timer) = &mut self.timer
            && timer.deadline() > self.ends
        {
            timer.as_mut().reset(self.ends);
        }
    }

    /// Whether it has ended.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let ends = self.ends;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(ends)));
        while timer.as_mut().poll(cx).is_ready() {
            if ends <= Instant::now() {
                return Poll::Ready(());
            }
            timer.as_mut().reset(ends);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_last_begin_counts_earlier_or_later() {
        let start = Instant::now();
        let mut patience = Patience::new(start);
        for (begun_s, expected_s) in [(10, 10), (30, 40), (5, 45), (60, 105)] {
            patience.begin(Instant::now(), Duration::from_secs(3600));
            assert!(poll_fn(|cx| Poll::Ready(patience.poll_end(cx))).await.is_pending());
            patience.begin(Instant::now(), Duration::from_secs(begun_s));
            poll_fn(|cx| patience.poll_end(cx)).await;
            assert_eq!(start.elapsed().as_secs(), expected_s);
        }
        patience.begin(Instant::now(), Duration::from_secs(10));
        assert!(poll_fn(|cx| Poll::Ready(patience.poll_end(cx))).await.is_pending());
        tokio::time::sleep(Duration::from_secs(8)).await;
        patience.begin(Instant::now(), Duration::from_secs(10));
        poll_fn(|cx| patience.poll_end(cx)).await;
        assert_eq!(start.elapsed().as_secs(), 123);
    }
}
