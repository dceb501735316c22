//! Keeps the policies in force those of the store, and says once a second what was refused.

use std::{collections::BTreeMap, future::Future, time::Duration};

use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::{AppId, Defense, app::Rules, counters::Kind, store};

/// How often the store is asked for newer policies.
pub(super) const EVERY: Duration = Duration::from_secs(1);

/// How often each kind of refusal had been counted when it was last told of.
type Told = BTreeMap<(String, usize), u64>;

impl Defense {
    /// Works in the background until `shutdown`: takes up policies that other instances or operators have
    /// saved, and logs refusals, one line a second for each app and reason.
    pub async fn run(&self, shutdown: impl Future<Output = ()> + Send) {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = Told::new();
        loop {
            tokio::select! {
                () = &mut shutdown => return,
                _ = ticks.tick() => {}
            }
            self.refresh().await;
            self.tell(&mut told);
        }
    }

    /// Takes up the policies that the store holds now, where they are other than those in force.
    pub async fn refresh(&self) {
        let apps = self.apps();
        let names: Vec<&str> = apps.iter().map(AppId::name).collect();
        let versions = match store::versions(&*self.0.store, &names).await {
            Ok(versions) => versions,
            Err(error) => {
                if apps.iter().any(|app| matches!(app.0.in_force().policy, Rules::Unknown)) {
                    warn!(%error, "the policy store can't be read: requests are served without a check");
                }
                self.0.store_fault.write().get_or_insert_with(|| error.to_string());
                return;
            }
        };
        *self.0.store_fault.write() = None;
        for (app, version) in apps.iter().zip(versions) {
            self.refresh_app(app, version).await;
        }
    }

    async fn refresh_app(&self, app: &AppId, version: Option<u64>) {
        let in_force = app.0.in_force();
        let current = match in_force.policy {
            Rules::Policy(_) => version == Some(in_force.version),
            // A row that is still damaged is looked at again only when something was saved over it.
            Rules::Invalid(_) => version.is_none_or(|version| version == in_force.version),
            Rules::Unknown => false,
        };
        if current {
            return;
        }
        if let Ok(stored) = store::load(&*self.0.store, app.name()).await {
            if let Err(fault) = &stored.policy {
                warn!(app = app.name(), fault, "requests are served without a check");
            }
            app.0.replace_in_force(&in_force, stored);
        }
    }

    /// Brings those metrics up to date that are not counted as they change.
    pub fn measure(&self) {
        for app in self.apps() {
            app.0.metrics.tracked.set(i64::try_from(app.0.clients.tracked()).unwrap_or(i64::MAX));
        }
    }

    fn tell(&self, told: &mut Told) {
        for (app, kind, count) in self.news(told) {
            log(app.name(), kind, count);
        }
    }

    /// What is worth a line and has been counted since it was last told of, once for each app and kind.
    fn news(&self, told: &mut Told) -> Vec<(AppId, Kind, u64)> {
        let mut news = Vec::new();
        for app in self.apps() {
            let kinds = (0..Kind::COUNT).map(Kind::at);
            for kind in kinds.filter(|kind| !matches!(kind, Kind::Allowed | Kind::WouldBlock(_))) {
                let count = app.0.metrics.counted(kind);
                let before = told.insert((app.name().to_owned(), kind.place()), count).unwrap_or_default();
                if count > before {
                    news.push((app.clone(), kind, count - before));
                }
            }
        }
        news
    }
}

fn log(app: &str, kind: Kind, count: u64) {
    match kind {
        Kind::Blocked(_) | Kind::Firewall => {
            info!(app, reason = kind.reason().unwrap_or_default(), count, "requests refused");
        }
        _ => warn!(app, count, "requests served without a check"),
    }
}

#[cfg(test)]
mod tests;
