//! What operators ask of the defense: views, replays, and changes of policies.

use std::sync::atomic::Ordering;

use thiserror::Error;
use tidegate_core::policy::{ChangeNote, Policy, PolicyFault};
use tidegate_store::StoreError;

use super::{
    AbuseView, AccessLogEntry, AppId, AppOverview, AuditEntry, Defense, ReplayError, ReplayReport,
    TrafficView, Window,
    app::{App, InForce, Rules},
    audit, changes,
    log::LogEntry,
    replaying::{self, Permit},
    status::{self, Status, Surroundings},
    store::{self, Saved, Stored},
    suggestion::suggested_rps,
    watch::EVERY,
};

/// Why a policy was not saved.
#[derive(Debug, Error)]
pub enum PutError {
    /// No app has that name.
    #[error("there is no such app")]
    NoSuchApp,
    /// The document is faulty; all that is wrong with it. The policy in force stays.
    #[error("the policy is not valid")]
    Invalid(Vec<PolicyFault>),
    /// Somebody else has saved another version.
    #[error("the policy has changed meanwhile; it is version {version} now")]
    Stale {
        /// The version in the store.
        version: u64,
    },
    /// The store gave no answer: it may or may not have been saved.
    #[error("saving the policy")]
    Unavailable(#[source] StoreError),
}

impl Defense {
    /// Every app, in the order of their names.
    #[must_use]
    pub fn overview(&self) -> Vec<AppOverview> {
        let now_ms = self.0.clock.now_ms();
        self.apps().iter().map(|app| self.overview_of(&app.0, now_ms)).collect()
    }

    /// The policy of an app, and how it does.
    #[must_use]
    pub fn view(&self, app: &str, window: Window) -> Option<AbuseView> {
        let app = self.app(app)?;
        let now_ms = self.0.clock.now_ms();
        let in_force = app.0.in_force();
        let policy = in_force.policy();
        let status = self.status_of(&app.0, &in_force, now_ms);
        let ipv6_prefix = policy.map_or(64, Policy::ipv6_prefix);
        Some(AbuseView {
            app: app.0.name.clone(),
            version: in_force.version,
            policy: policy.map(|policy| policy.document().clone()),
            suggested_rps: (status.condition != status::Condition::ClientIpHidden)
                .then(|| suggested_rps(&app.0.log(), self.log_since(now_ms), ipv6_prefix))
                .flatten(),
            status,
            counters: app.0.counters(window, now_ms),
        })
    }

    /// Saves a policy, puts it in force and notes in the audit that `actor` did so. With `if_match` only that
    /// version is replaced.
    ///
    /// # Errors
    /// See [`PutError`]; except for the last one, nothing was saved.
    pub async fn put_policy(
        &self,
        app: &str,
        if_match: Option<u64>,
        document: &[u8],
        actor: &str,
    ) -> Result<AbuseView, PutError> {
        let app = self.app(app).ok_or(PutError::NoSuchApp)?;
        let policy = Policy::parse(document).map_err(PutError::Invalid)?;
        let in_force = app.0.in_force();
        let before = in_force.policy().map(Policy::document);
        let note = note(actor, "policy", Some(&app.0.name), changes::between(before, policy.document()));
        let saved = store::save(&*self.0.store, &app.0.name, &policy, if_match, note).await;
        match saved.map_err(PutError::Unavailable)? {
            Saved::Stale { version } => Err(PutError::Stale { version }),
            Saved::Done { version, saved_at_ms } => {
                app.0.put_in_force(Stored { version, saved_at_ms, policy: Ok(policy) });
                self.view(&app.0.name, Window::default()).ok_or(PutError::NoSuchApp)
            }
        }
    }

    /// What a draft would have done to the requests that the app's log holds. It takes as long as the log is
    /// large, up to a second for a million requests.
    ///
    /// # Errors
    /// See [`ReplayError`].
    pub fn replay(&self, app: &str, document: &[u8]) -> Result<ReplayReport, ReplayError> {
        let app = self.app(app).ok_or(ReplayError::NoSuchApp)?;
        let policy = Policy::parse(document).map_err(ReplayError::Invalid)?;
        let _permit = Permit::take(&self.0.replays)?;
        let now_ms = self.0.clock.now_ms();
        Ok(replaying::report(&policy, &app.0.log(), self.log_since(now_ms), now_ms))
    }

    /// The traffic of an app.
    #[must_use]
    pub fn traffic(&self, app: &str, window: Window) -> Option<TrafficView> {
        let app = self.app(app)?;
        let now_ms = self.0.clock.now_ms();
        let series = app.0.steps(window, now_ms);
        Some(TrafficView {
            app: app.0.name.clone(),
            window,
            step_ms: window.step_ms(),
            counters: app.0.counters(window, now_ms),
            firewall: series.iter().map(|step| step.firewall).sum(),
            series,
        })
    }

    /// The newest requests of an app, newest first. It doesn't tell whose they are.
    #[must_use]
    pub fn access_log(&self, app: &str, entries_max: usize) -> Option<Vec<AccessLogEntry>> {
        let app = self.app(app)?;
        let since_ms = self.log_since(self.0.clock.now_ms());
        let log = app.0.log();
        let newest = log.iter().rev().flat_map(|segment| segment.entries().rev());
        Some(newest.filter(|entry| entry.facts.at_ms >= since_ms).take(entries_max).map(shown).collect())
    }

    /// The newest changes that were noted, newest first.
    ///
    /// # Errors
    /// The store gave no answer.
    pub async fn audit(&self, entries_max: usize) -> Result<Vec<AuditEntry>, StoreError> {
        audit::newest(&*self.0.store, entries_max).await
    }

    /// Notes a change that was made elsewhere: a token, say.
    ///
    /// # Errors
    /// The store gave no answer; the note may or may not be there.
    pub async fn note_change(
        &self,
        actor: &str,
        action: &str,
        changes: Vec<String>,
    ) -> Result<(), StoreError> {
        let note = note(actor, action, None, changes);
        audit::with_note(&*self.0.store, Vec::new(), note, |_| ((), true)).await
    }

    fn overview_of(&self, app: &App, now_ms: u64) -> AppOverview {
        let in_force = app.in_force();
        AppOverview {
            app: app.name.clone(),
            version: in_force.version,
            mode: in_force.policy().map(Policy::mode),
            status: self.status_of(app, &in_force, now_ms),
            counters: app.counters(Window::Hour, now_ms),
            sparkline: app.steps(Window::Hour, now_ms).iter().map(super::Step::requests).collect(),
            tracked_clients: app.clients.tracked() as u64,
        }
    }

    fn status_of(&self, app: &App, in_force: &InForce, now_ms: u64) -> Status {
        let spread_ms = u64::try_from(2 * EVERY.as_millis()).unwrap_or(u64::MAX);
        let store_fault = self.0.store_fault.read();
        let surroundings = Surroundings {
            store_fault: store_fault.as_deref(),
            routed: app.routed.load(Ordering::Relaxed),
            hides_clients: app.hides_clients(now_ms),
            spreading: self.0.store.shared() && now_ms < in_force.saved_at_ms.saturating_add(spread_ms),
        };
        status::status(in_force, surroundings)
    }

    /// From when on the logs count.
    fn log_since(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.0.settings.read().log.span_ms)
    }
}

impl InForce {
    fn policy(&self) -> Option<&Policy> {
        match &self.policy {
            Rules::Policy(policy) => Some(policy),
            Rules::Invalid(_) | Rules::Unknown => None,
        }
    }
}

impl AppId {
    /// The app's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }
}

fn note(actor: &str, action: &str, app: Option<&str>, changes: Vec<String>) -> ChangeNote {
    let app = app.map(str::to_owned);
    ChangeNote { number: 0, at_ms: 0, actor: actor.to_owned(), action: action.to_owned(), app, changes }
}

fn shown(entry: LogEntry<'_>) -> AccessLogEntry {
    AccessLogEntry {
        at_ms: entry.facts.at_ms,
        method: entry.facts.method.to_owned(),
        path: String::from_utf8_lossy(entry.facts.path.as_bytes()).into_owned(),
        status: entry.status,
        outcome: entry.kind.outcome(),
        reason: entry.kind.reason(),
    }
}
