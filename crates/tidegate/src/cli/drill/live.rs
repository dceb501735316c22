//! A running server, reached as every caller and every operator reaches it.

use std::{io::Write, time::Duration};

use tidegate_client::{GuardClient, TIMEOUT_MAX, control::ControlClient};
use tokio::time::{Instant, sleep};

use super::{DrillError, target::Target};

/// A running server.
#[derive(Debug, Clone)]
pub(super) struct Live {
    client: GuardClient,
    control: ControlClient,
}

/// How long an operator has for a restart.
const RESTART: Duration = Duration::from_secs(60);
/// Between two looks. A server that is down for less is not seen to have gone.
const LOOK: Duration = Duration::from_millis(10);

impl Live {
    pub(super) fn new(client: GuardClient, control: ControlClient) -> Self {
        Self { client: client.with_timeout(TIMEOUT_MAX), control }
    }

    /// Looks until the server answers, or until it does not.
    async fn until(&self, answers: bool, within: Instant) -> Result<(), DrillError> {
        let control = self.control.clone().with_timeout(TIMEOUT_MAX);
        while control.state().await.is_ok() != answers {
            if Instant::now() >= within {
                return Err(DrillError::NotRestarted { answers });
            }
            sleep(LOOK).await;
        }
        Ok(())
    }
}

impl Target for Live {
    fn client(&self) -> &GuardClient {
        &self.client
    }

    fn control(&self) -> &ControlClient {
        &self.control
    }

    fn simulated_from_ms(&self) -> Option<u64> {
        None
    }

    fn pass(&self, _by_ms: u64) {}

    async fn restart(self) -> Result<Self, DrillError> {
        let within = Instant::now() + RESTART;
        say(&format!("restart the server now; waiting for it up to {} s", RESTART.as_secs()));
        self.until(false, within).await?;
        say("the server is down; waiting for its return");
        self.until(true, within).await?;
        Ok(self)
    }
}

/// Tells the operator what is waited for. Whoever reads nothing will find the time-out.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
