//! Signals, caught from before the first socket is open until the process ends.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::ServeError;

/// What an operator's signals ask for.
pub(super) struct Signals {
    pub(super) terminate: Signal,
    pub(super) interrupt: Signal,
    /// Asks for the configuration to be read anew.
    pub(super) hang_up: Signal,
}

impl Signals {
    pub(super) fn listen() -> Result<Self, ServeError> {
        let on = |kind| signal(kind).map_err(ServeError::Runtime);
        Ok(Self {
            terminate: on(SignalKind::terminate())?,
            interrupt: on(SignalKind::interrupt())?,
            hang_up: on(SignalKind::hangup())?,
        })
    }

    /// Until one ends the process.
    pub(super) async fn end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
