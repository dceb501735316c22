//! What a guard store answered its operator, as people read it.

use tidegate_client::{RawAnswer, control::Call};
use tidegate_protocol::{
    control::{Audit, AuditEntry, FairnessReset, FamilyState, Forgotten, Phase, Resume, State},
    response::ErrorBody,
};

use crate::cli::words::{Column, Utc, printable, refusal_text, span, table};

/// What was done and how everything stands then, or why it was not done.
pub(super) fn answer(call: &Call, raw: &RawAnswer) -> String {
    if raw.status != 200 {
        return match ErrorBody::from_json(&raw.body) {
            Ok(refusal) => refusal_text(raw.status, &refusal),
            Err(_) => no_guard(raw),
        };
    }
    let text = match call {
        Call::State => State::from_json(&raw.body).map(|state| state_text(&state)),
        Call::Stop(_) => {
            State::from_json(&raw.body).map(|state| format!("{STOPPED}\n{}", state_text(&state)))
        }
        Call::Resume(resume) => {
            State::from_json(&raw.body).map(|state| format!("{}\n{}", resumed(resume), state_text(&state)))
        }
        Call::ResetFairness(reset) => {
            tidegate_protocol::control::Reset::from_json(&raw.body).map(|_| cleared(reset))
        }
        Call::Forget(_) => Forgotten::from_json(&raw.body).map(|answer| forgotten(answer.forgotten)),
        Call::Audit { .. } => Audit::from_json(&raw.body).map(|audit| audit_text(&audit)),
        _ => Ok(String::from_utf8_lossy(&raw.body).into_owned()),
    };
    text.map_or_else(|_| no_guard(raw), |text| printable(&text))
}

const STOPPED: &str = "Stopped: no RPC executes a step from now on, on any instance. Data is kept.\n\
                       `tidegate control resume` lets everything go on.\n";

fn no_guard(raw: &RawAnswer) -> String {
    format!("what answered ({}) is no guard store with operator calls\n", raw.status)
}

fn resumed(resume: &Resume) -> String {
    let whose = match resume.families.as_deref() {
        None => "every family".to_owned(),
        Some([]) => return "Resumed: the fence is down. Budgets are as they were.\n".to_owned(),
        Some(families) => families.iter().map(|family| family.as_str()).collect::<Vec<_>>().join(", "),
    };
    format!("Resumed: the fence is down, and the budget of {whose} begins anew. Quotas of identities stay.\n")
}

fn cleared(reset: &FairnessReset) -> String {
    let whose = match (reset.axis, reset.identity) {
        (None, _) => "every identity".to_owned(),
        (Some(axis), None) => format!("every {}", axis.as_str()),
        (Some(axis), Some(_)) => format!("this {}", axis.as_str()),
    };
    format!("What {whose} has spent of {} today is cleared. The audit log says so.\n", reset.family)
}

fn forgotten(rows: u64) -> String {
    match rows {
        0 => "There was nothing to forget.\n".to_owned(),
        1 => "1 row is forgotten. The audit log says so.\n".to_owned(),
        rows => format!("{rows} rows are forgotten. The audit log says so.\n"),
    }
}

fn state_text(state: &State) -> String {
    let reset_at = Utc(state.now_ms.saturating_add(state.next_reset_ms));
    let rows: Vec<_> =
        state.families.iter().map(|(name, family)| family_row(name.as_str(), family)).collect();
    let columns = [
        Column::Left("family"),
        Column::Right("budget"),
        Column::Right("used"),
        Column::Right("open left"),
        Column::Right("reserve left"),
        Column::Left("state"),
        Column::Left("warned"),
    ];
    format!(
        "{}\nBudgets and quotas begin anew at {reset_at}, in {}.\n\n{}",
        fence_line(state),
        span(state.next_reset_ms),
        table(columns, &rows)
    )
}

fn fence_line(state: &State) -> String {
    let fence = &state.fence;
    let since = fence.since_ms.map(|since_ms| {
        format!(" since {} ({} ago)", Utc(since_ms), span(state.now_ms.saturating_sub(since_ms)))
    });
    let since = since.unwrap_or_default();
    let reason = fence.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    match fence.stopped {
        true => format!("The fence is UP{since}{reason}"),
        false => format!("The fence is down{since}."),
    }
}

fn family_row(name: &str, family: &FamilyState) -> [String; 7] {
    [
        name.to_owned(),
        family.budget.to_string(),
        family.used.to_string(),
        family.open_remaining.to_string(),
        family.reserve_remaining.to_string(),
        phase_name(family.state).to_owned(),
        if family.warned { "yes" } else { "no" }.to_owned(),
    ]
}

/// A family's state in one word.
pub(in crate::cli) const fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Open => "open",
        Phase::Reserve => "reserve",
        Phase::Stopped => "stopped",
    }
}

fn audit_text(audit: &Audit) -> String {
    if audit.entries.is_empty() {
        return "No operator has done anything yet.\n".to_owned();
    }
    let rows: Vec<_> = audit.entries.iter().map(audit_row).collect();
    table([Column::Left("when"), Column::Left("what"), Column::Left("from"), Column::Left("which")], &rows)
}

fn audit_row(entry: &AuditEntry) -> [String; 4] {
    let parts = [
        entry.family.as_ref().map(|family| format!("family {family}")),
        entry.axis.map(|axis| format!("axis {}", axis.as_str())),
        entry.identity.as_ref().map(|identity| format!("identity {}", identity.as_str())),
        entry.key.as_ref().map(|key| format!("key {}", key.as_str())),
        entry.reason.as_ref().map(|reason| format!("reason {reason:?}")),
    ];
    let which = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    [Utc(entry.at_ms).to_string(), entry.action.as_str().to_owned(), entry.from.clone(), which]
}

#[cfg(test)]
mod tests {
    use tidegate_protocol::{
        control::{Action, Axis, Fence, Reset, Stop},
        name::Family,
        response::ErrorCode,
    };

    use super::*;

    fn raw(body: Vec<u8>) -> RawAnswer {
        RawAnswer { status: 200, body }
    }

    fn state(fence: Fence) -> State {
        let family = FamilyState {
            budget: 100,
            used: 85,
            open_remaining: 0,
            reserve_remaining: 15,
            state: Phase::Reserve,
            warned: true,
        };
        let now_ms = 1_764_460_800_000 + 74_880_000;
        let families = [(Family::parse("password").unwrap(), family)].into();
        State { now_ms, next_reset_ms: 11_520_000, fence, families }
    }

    #[test]
    fn a_state_is_a_table_under_two_lines() {
        let fence = Fence { stopped: false, reason: None, since_ms: None };
        let text = answer(&Call::State, &raw(state(fence).to_json()));
        let expected = "The fence is down.\n\
             Budgets and quotas begin anew at 2025-12-01 00:00:00 UTC, in 3h 12m.\n\n\
             family    budget  used  open left  reserve left  state    warned\n\
             password     100    85          0            15  reserve  yes\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn answers_say_what_was_done() {
        let family = Family::parse("replay").unwrap();
        let reason = Some("drill\u{1b}[2J".to_owned());
        let stopped = state(Fence { stopped: true, reason, since_ms: Some(1_764_535_620_000) }).to_json();
        let open = state(Fence { stopped: false, reason: None, since_ms: None }).to_json();
        let reset = |axis| FairnessReset { family, axis, identity: None };
        let done = Reset { reset: true }.to_json();
        let entry = AuditEntry {
            at_ms: 0,
            action: Action::FairnessReset,
            family: Some(family),
            axis: Some(Axis::Source),
            identity: None,
            key: None,
            reason: Some("office".into()),
            from: "192.0.2.7".into(),
        };
        let forget = Forgotten { forgotten: 2 }.to_json();
        let partition = tidegate_protocol::identity::Digest::parse(&"A".repeat(43)).unwrap();
        let forget_call = Call::Forget(tidegate_protocol::control::Forget { partition, key: None });
        let table = [
            (
                Call::Stop(Stop::default()),
                stopped,
                vec![
                    "Stopped:",
                    "tidegate control resume",
                    "UP since 2025-11-30 20:47:00 UTC (1m ago): drill\u{fffd}",
                ],
            ),
            (
                Call::Resume(Resume { families: Some(vec![family]) }),
                open.clone(),
                vec!["budget of replay begins anew"],
            ),
            (Call::Resume(Resume::default()), open, vec!["budget of every family"]),
            (Call::ResetFairness(reset(None)), done.clone(), vec!["every identity has spent of replay"]),
            (Call::ResetFairness(reset(Some(Axis::Source))), done, vec!["every source has spent of replay"]),
            (forget_call, forget, vec!["2 rows are forgotten"]),
            (
                Call::Audit { limit: 5 },
                Audit { entries: vec![entry] }.to_json(),
                vec![
                    "1970-01-01 00:00:00 UTC  fairness_reset  192.0.2.7  family replay, axis source, reason \"office\"",
                ],
            ),
            (
                Call::Audit { limit: 5 },
                Audit { entries: Vec::new() }.to_json(),
                vec!["No operator has done anything"],
            ),
            (Call::State, b"<html>".to_vec(), vec!["is no guard store"]),
        ];
        for (call, body, said) in table {
            let text = answer(&call, &raw(body));
            for part in said {
                assert!(text.contains(part), "{text}\nlacks {part}");
            }
        }
    }

    #[test]
    fn refusals_are_told_with_their_code() {
        let body = ErrorBody::new(ErrorCode::Unauthenticated, "the operator's token is not known").to_json();
        let text = answer(&Call::State, &RawAnswer { status: 401, body });
        assert!(text.contains("unauthenticated (401)"), "{text}");
        let text = answer(&Call::State, &RawAnswer { status: 404, body: b"nothing here".to_vec() });
        assert!(text.contains("(404)") && text.contains("no guard store"), "{text}");
    }
}
