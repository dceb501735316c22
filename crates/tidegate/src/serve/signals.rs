//! Signals, caught from before the first socket is open until the process ends.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::ServeError;

/// What an operator's signals ask for.
pub(super) struct Signals {
    pub(super) end: EndSignals,
    /// Asks for the configuration to be read anew.
    pub(super) hang_up: Signal,
}

/// Either ends the process.
pub(super) struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn listen() -> Result<Self, ServeError> {
        let on = |kind| signal(kind).map_err(ServeError::Runtime);
        let end =
            EndSignals { terminate: on(SignalKind::terminate())?, interrupt: on(SignalKind::interrupt())? };
        Ok(Self { end, hang_up: on(SignalKind::hangup())? })
    }
}

impl EndSignals {
    /// Until one comes.
    pub(super) async fn come(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
