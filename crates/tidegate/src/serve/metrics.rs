//! The store's numbers, read when somebody asks for the metrics.

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};
use tidegate_rate_limit::OpenStore;

pub(super) fn register_store(registry: &mut Registry, store: &OpenStore) {
    registry.register_collector(Box::new(StoreCollector(store.clone())));
}

struct StoreCollector(OpenStore);

impl std::fmt::Debug for StoreCollector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreCollector")
    }
}

impl Collector for StoreCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let stats = self.0.stats();
        let mut gauge = |name: &str, help: &str, value: u64| {
            let metric = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        gauge("tidegate_store_entries", "Rows that the store holds", stats.entries)?;
        if let Some(embedded) = self.0.embedded() {
            let stats = embedded.stats();
            gauge(
                "tidegate_store_live_bytes",
                "Bytes of the live rows in the log's encoding",
                stats.live_bytes,
            )?;
            gauge("tidegate_store_log_bytes", "Bytes of the log on disk", stats.log_bytes)?;
            gauge("tidegate_store_log_segments", "Segments of the log on disk", stats.segments)?;
        }
        let mut counter = |name: &str, help: &str, value: u64| {
            let metric = ConstCounter::new(value);
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        counter("tidegate_store_batches", "Batches brought to the backend", stats.batches)?;
        counter("tidegate_store_jobs", "Updates and reads in them", stats.jobs)?;
        counter("tidegate_store_row_writes", "Rows written or removed, sweeps aside", stats.row_writes)?;
        counter("tidegate_store_busy", "Calls refused since too many were running", stats.busy)?;
        counter("tidegate_store_deadline", "Calls that were not answered in time", stats.deadline)?;
        counter("tidegate_store_full", "New keys refused since the store was full", stats.full)?;
        counter(
            "tidegate_store_backend_failures",
            "Calls to the backend that failed",
            stats.backend_failures,
        )?;
        counter("tidegate_store_swept", "Expired rows that were removed", stats.swept)?;
        if let Some(embedded) = self.0.embedded() {
            let stats = embedded.stats();
            counter("tidegate_store_flushes", "Flushes of the log to the disk", stats.flushes)?;
            counter("tidegate_store_written_bytes", "Bytes written to the log", stats.written_bytes)?;
        }
        Ok(())
    }
}
