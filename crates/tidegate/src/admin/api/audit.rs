//! The audit: what was changed in policies, tokens and the guard, in one list.

#![expect(unused_qualifications, reason = "utoipa writes the parameters' types out by path")]

use std::sync::Arc;

use axum::{
    Json,
    extract::{Query, State},
};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use tidegate_guard::Refusal;
use tidegate_ingress::defense;
use tidegate_protocol::control;
use utoipa::{IntoParams, ToSchema};

use super::{Refused, shapes};
use crate::{admin::Admin, config::Ability};

/// The newest changes.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(in crate::admin) struct Audit {
    pub(in crate::admin) entries: Vec<Entry>,
    /// What could not be read, where something could not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::admin) missing: Vec<String>,
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(in crate::admin) struct Entry {
    /// When, in ms since the epoch.
    pub(in crate::admin) at_ms: u64,
    /// What was done: `policy_changed`, `token_created`, `token_revoked`, `stop`, `resume`, `fairness_reset`,
    /// `forget`.
    pub(in crate::admin) action: String,
    /// To what: an app, a token, a family.
    pub(in crate::admin) subject: String,
    /// What changed.
    pub(in crate::admin) details: String,
    /// Who: a token's name, or an address.
    pub(in crate::admin) actor: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// How many entries: 1 to 1000.
    #[serde(default = "limit_default")]
    limit: usize,
}

fn limit_default() -> usize {
    control::AUDIT_LIMIT_DEFAULT
}

/// What was changed, the newest first.
#[utoipa::path(get, path = "/api/v1/audit", tag = "audit", security(("token" = ["read"])), params(Asked),
    responses((status = 200, body = Audit), (status = 401, body = shapes::ErrorBody), (status = 403, body = shapes::ErrorBody)))]
pub(super) async fn list(
    State(admin): State<Arc<Admin>>,
    headers: HeaderMap,
    asked: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Audit>, Refused> {
    admin.access.bearer(&headers)?.needs(Ability::Read)?;
    let Query(asked) = asked.map_err(|error| Refused::BadRequest(error.body_text()))?;
    if !(1..=control::AUDIT_LIMIT_MAX).contains(&asked.limit) {
        let message = format!("limit: must be from 1 to {}", control::AUDIT_LIMIT_MAX);
        return Err(Refused::BadRequest(message));
    }
    Ok(Json(newest(&admin, asked.limit).await))
}

/// The newest entries of every source, at most `limit`.
pub(in crate::admin) async fn newest(admin: &Admin, limit: usize) -> Audit {
    let mut audit = Audit::default();
    match of_guard(admin, limit).await {
        Ok(entries) => audit.entries.extend(entries.into_iter().map(guard_entry)),
        Err(refusal) => audit.missing.push(format!("What operators did to the guard is missing: {refusal}.")),
    }
    if let Some(defense) = &admin.apps.0 {
        match defense.audit(limit).await {
            Ok(entries) => audit.entries.extend(entries.into_iter().map(policy_entry)),
            Err(error) => {
                tracing::error!(%error, "the audit of policies can't be read");
                audit
                    .missing
                    .push("What was changed in policies is missing: the store does not answer.".into());
            }
        }
    }
    audit.entries.sort_by_key(|entry| std::cmp::Reverse(entry.at_ms));
    audit.entries.truncate(limit);
    audit
}

/// Writes an entry about something other than a policy. What it tells of has happened already, so a store that
/// does not take it costs the entry and not the change; the log has it in any case.
pub(in crate::admin) async fn note(admin: &Admin, actor: &str, action: &'static str, subject: &str) {
    tracing::info!(kind = "audit", actor, action, subject, "changed by the admin API");
    let Some(defense) = &admin.apps.0 else { return };
    if let Err(error) = defense.note_change(actor, action, vec![subject.to_owned()]).await {
        tracing::error!(%error, action, "the audit lacks this change");
    }
}

async fn of_guard(admin: &Admin, limit: usize) -> Result<Vec<control::AuditEntry>, Refusal> {
    let guard = admin.service.guard().ok_or(Refusal::Unavailable)?;
    guard.operator().audit(limit).await.map(|audit| audit.entries)
}

fn policy_entry(entry: defense::AuditEntry) -> Entry {
    let is_policy = entry.app.is_some();
    let subject = entry.app.map_or_else(|| entry.changes.join(", "), |app| format!("app {app}"));
    Entry {
        at_ms: entry.at_ms,
        action: if is_policy { format!("{}_changed", entry.action) } else { entry.action },
        subject,
        details: if is_policy { entry.changes.join("; ") } else { String::new() },
        actor: entry.actor,
    }
}

fn guard_entry(entry: control::AuditEntry) -> Entry {
    let subject = entry.family.map_or_else(
        || if entry.identity.is_some() { "a partition".to_owned() } else { "everything".to_owned() },
        |family| format!("family {}", family.as_str()),
    );
    let axis = entry.axis.map(|axis| axis.as_str().to_owned());
    let identity = entry.identity.map(|digest| digest.as_str().to_owned());
    let key = entry.key.map(|digest| format!("key {}", digest.as_str()));
    let details = [axis, identity, key, entry.reason].into_iter().flatten().collect::<Vec<_>>().join(", ");
    Entry {
        at_ms: entry.at_ms,
        action: entry.action.as_str().to_owned(),
        subject,
        details,
        actor: entry.from,
    }
}
