//! One key under many callers of two instances: no update may be lost, and none may wait for ever.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use tidegate_rate_limit::StoreKind;

use super::{
    Settings,
    counter::{self, Counter},
    servers::{self, Servers},
    turn::{self, Load},
};
use crate::bench::{
    choice::{Choice, Choices},
    report::{Table, grouped},
};

/// Of each of the two instances.
const CALLERS: usize = 256;

/// # Errors
/// Also where a count is not what was acknowledged, or an update was not answered.
pub(super) async fn run(settings: &Settings) -> Result<String> {
    let mut servers = Servers::default();
    let mut table = Table::new(&[
        "store",
        "updates acknowledged",
        "counted",
        "updates/s",
        "p50 ms",
        "p99 ms",
        "longest ms",
    ]);
    for name in ["PostgreSQL", "Redis", "MariaDB"] {
        if settings.has(name) {
            println!("{name}, {} s", settings.hot().as_secs());
            table.row(
                measure(name, settings, &mut servers).await.with_context(|| format!("measuring {name}"))?,
            );
        }
    }
    Ok(format!(
        "One key, {} callers on each of two instances, {} s. Every update was acknowledged, and what was counted is \
         what was acknowledged.\n\n{}",
        CALLERS,
        settings.hot().as_secs(),
        table.into_text()
    ))
}

async fn measure(name: &str, settings: &Settings, servers: &mut Servers) -> Result<[String; 7]> {
    let (kind, url) = match name {
        "PostgreSQL" => (StoreKind::Postgres, servers.postgres()?.url()),
        "Redis" => (StoreKind::Redis, servers.redis()?.url()),
        _ => (StoreKind::MySql, servers.mariadb()?.1.clone()),
    };
    let choices = Arc::new(Choices::prepare(1)?);
    let [first, second] = [servers::open_at(kind, url.clone()).await?, servers::open_at(kind, url).await?];
    let instance = |store: &tidegate_rate_limit::OpenStore| {
        let (counter, choices, duration) =
            (Counter::Store(store.limit_store()), Arc::clone(&choices), settings.hot());
        async move { turn::load(&counter, &choices, Choice::Hot, CALLERS, duration).await }
    };
    let (one, other) = tokio::join!(instance(&first), instance(&second));
    let (Load { mut latency, elapsed }, other) = (one?, other?);
    latency.merge(&other.latency);
    let counted = counter::counted(&first.limit_store(), choices.keys[0]).await?;
    ensure!(counted == latency.count(), "{counted} counted, {} acknowledged", latency.count());
    first.shutdown().await;
    second.shutdown().await;
    let ms = |share| format!("{:.1}", latency.quantile_us(share) / 1000.0);
    Ok([
        name.to_owned(),
        grouped(latency.count() as f64),
        grouped(counted as f64),
        grouped(latency.count() as f64 / elapsed.max(other.elapsed).as_secs_f64()),
        ms(0.5),
        ms(0.99),
        ms(1.0),
    ])
}
