//! The task that posts alerts, one after the other.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    select,
    sync::{mpsc, watch},
    task::JoinHandle,
    time::sleep,
};

use super::{
    alert::Alert,
    metrics::Counters,
    target::{Failure, Target},
};
use crate::start::chain;

/// The running task.
#[derive(Debug)]
pub struct Webhook {
    target: watch::Sender<Option<Arc<Target>>>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Webhook {
    pub(super) fn start(queue: mpsc::Receiver<Alert>, target: Option<Target>, counters: Counters) -> Self {
        let target = watch::Sender::new(target.map(Arc::new));
        let stop = watch::Sender::new(false);
        let worker = Worker { queue, target: target.subscribe(), stop: stop.subscribe(), counters };
        Self { target, stop, task: tokio::spawn(worker.run()) }
    }

    /// Posts to `target` from the next alert on.
    pub fn replace(&self, target: Option<Target>) {
        self.target.send_replace(target.map(Arc::new));
    }

    /// Delivers what waits, for at most two seconds, and ends.
    pub async fn finish(self) {
        self.stop.send_replace(true);
        // An error is a panic of the task, which has ended then as well.
        let _ = self.task.await;
    }
}

struct Worker {
    queue: mpsc::Receiver<Alert>,
    target: watch::Receiver<Option<Arc<Target>>>,
    stop: watch::Receiver<bool>,
    counters: Counters,
}

impl Worker {
    async fn run(mut self) {
        let mut time_is_up = pin!(time_is_up(self.stop.clone()));
        while let Some(alert) = self.next().await {
            let (target, counters) = (self.target.borrow().clone(), &self.counters);
            select! {
                () = deliver(&alert, target.as_deref(), counters) => {}
                () = &mut time_is_up => {
                    let alerts = 1 + self.queue.len();
                    let message = "the process ends before these alerts were delivered";
                    tracing::warn!(kind = "webhook-failed", alerts, "{message}");
                    return;
                }
            }
        }
    }

    /// The next alert; none once the process stops and nothing waits any more.
    async fn next(&mut self) -> Option<Alert> {
        select! {
            biased;
            alert = self.queue.recv() => alert,
            () = stopping(&mut self.stop) => None,
        }
    }
}

/// Posts it as often as it takes, within bounds. Without a target there is nothing to do.
async fn deliver(alert: &Alert, target: Option<&Target>, counters: &Counters) {
    let Some(target) = target else { return };
    let body = Bytes::from(alert.to_json());
    match persistently(|| target.post(body.clone())).await {
        Ok(()) => drop(counters.delivered.inc()),
        Err(failure) => {
            counters.failed.inc();
            let reason = chain(&failure);
            tracing::warn!(kind = "webhook-failed", alert = alert.kind, reason, "an alert was not delivered");
        }
    }
}

/// Attempts again after each of [`PAUSES`] while that may help.
async fn persistently<F>(mut attempt: impl FnMut() -> F) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>>,
{
    for pause in PAUSES {
        match attempt().await {
            Err(failure) if failure.may_pass() => sleep(jittered(pause, random())).await,
            ended => return ended,
        }
    }
    attempt().await
}

/// A quarter more or less, so that many processes do not come back to one receiver at once.
fn jittered(pause: Duration, random: u32) -> Duration {
    pause * (768 + random % 512) / 1024
}

/// Without random numbers the pauses are the plain ones.
fn random() -> u32 {
    getrandom::u32().unwrap_or(256)
}

async fn stopping(stop: &mut watch::Receiver<bool>) {
    // An error means that whoever could tell is gone, which says the same.
    let _ = stop.wait_for(|told| *told).await;
}

async fn time_is_up(mut stop: watch::Receiver<bool>) {
    stopping(&mut stop).await;
    sleep(STOP_TIMEOUT).await;
}

/// Between the attempts, of which there is one more.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// A supervisor waits for the process; what is on the way gets this time.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
