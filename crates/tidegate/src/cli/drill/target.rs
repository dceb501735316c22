//! What a drill is run against: a guard in this process on a simulated clock, or a running server.

use tidegate_client::{GuardClient, control::ControlClient};

use super::DrillError;

/// What a drill is run against. Clones reach the same guard store.
pub(crate) trait Target: Clone + Send + Sync + 'static {
    /// Sends RPCs.
    fn client(&self) -> &GuardClient;

    /// Makes the operator's calls.
    fn control(&self) -> &ControlClient;

    /// The first instant of the simulation, in ms since the epoch; none where time is real.
    fn simulated_from_ms(&self) -> Option<u64>;

    /// Lets `by_ms` pass, where time is simulated. Real time passes by itself: a drill's day takes as long
    /// there as its RPCs do.
    fn pass(&self, by_ms: u64);

    /// Ends the guard store and starts it again on what it has stored.
    fn restart(self) -> impl Future<Output = Result<Self, DrillError>> + Send;
}
