//! The layer that takes alerts out of all that is logged.

use tidegate_store::clock::wall_ms;
use tokio::sync::mpsc;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::{
    Layer,
    filter::{FilterFn, LevelFilter},
    layer::Context,
    registry::LookupSpan,
};

use super::{alert::Alert, metrics::Counters};

/// Counts alerts and queues them. Never waits.
#[derive(Debug)]
pub struct AlertLayer {
    counters: Counters,
    queue: mpsc::Sender<Alert>,
}

impl AlertLayer {
    pub(super) fn new(counters: Counters, queue: mpsc::Sender<Alert>) -> Self {
        Self { counters, queue }
    }

    /// With a filter of its own: what is logged as lines does not matter to it, and it asks for nothing but
    /// what may be an alert. That is decided once for each place in the code, so that other events cost what
    /// they did.
    pub fn filtered<S>(self) -> impl Layer<S> + Send + Sync
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        self.with_filter(FilterFn::new(may_be_alert).with_max_level_hint(LevelFilter::INFO))
    }
}

fn may_be_alert(metadata: &Metadata<'_>) -> bool {
    metadata.is_event()
        && *metadata.level() <= Level::INFO
        && metadata.target().starts_with("tidegate")
        && metadata.fields().field("kind").is_some()
}

impl<S: Subscriber> Layer<S> for AlertLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Some((kind, alert)) = Alert::of(event, wall_ms()) else { return };
        self.counters.alerts[kind].inc();
        if self.queue.try_send(alert).is_err() {
            self.counters.dropped.inc();
        }
    }
}

#[cfg(test)]
mod tests;
