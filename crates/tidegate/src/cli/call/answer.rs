//! An answer, as people read it.

use std::fmt::Write;

use tidegate_client::RawAnswer;
use tidegate_protocol::response::{
    CommandResult, ErrorBody, RefundReason, Response, Status, StepResult, Usage,
};

use super::{Command, Payload};
use crate::{
    cli::words::{in_words, printable, refusal_text},
    process::{EXIT_DENIED, EXIT_ERROR, EXIT_GOOD},
};

/// 0: done or allowed; 1: denied, not written or not refunded; 2: failed, or no answer of a guard store.
pub(super) fn exit_code(raw: &RawAnswer) -> u8 {
    match read(raw) {
        Ok(response) if response.steps.iter().any(|step| step.status == Status::Failed) => EXIT_ERROR,
        Ok(response) if response.denied || response.steps.iter().any(was_refused) => EXIT_DENIED,
        Ok(_) => EXIT_GOOD,
        Err(_) => EXIT_ERROR,
    }
}

/// Whether a claim was lost or a refund was not given: to a script that is a no.
fn was_refused(step: &StepResult) -> bool {
    let refused = |result: &CommandResult| {
        matches!(
            result,
            CommandResult::Set { written: false, .. } | CommandResult::Refund { refunded: false, .. }
        )
    };
    step.results.iter().any(refused)
}

/// The verdict, what it rests on, and when to come back.
pub(super) fn for_people(raw: &RawAnswer, payload: &Payload) -> String {
    let response = match read(raw) {
        Ok(response) => response,
        Err(Some(refusal)) => return refusal_text(raw.status, &refusal),
        Err(None) => return format!("what answered ({}) is no guard store\n", raw.status),
    };
    let names = names(payload);
    let mut text = String::new();
    for (index, step) in response.steps.iter().enumerate() {
        if response.steps.len() > 1 {
            let _ = writeln!(text, "step {index}:");
        }
        text.push_str(&step_text(step, &names));
    }
    printable(&text)
}

fn read(raw: &RawAnswer) -> Result<Response, Option<ErrorBody>> {
    if raw.status == 200 {
        return Response::from_json(&raw.body).map_err(|_| None);
    }
    Err(ErrorBody::from_json(&raw.body).ok())
}

/// What the rows of a table are called: the names that were typed, since only their digests were sent.
fn names(payload: &Payload) -> Vec<&str> {
    match payload {
        Payload::File(_) => Vec::new(),
        Payload::Intent(intent) => match &intent.command {
            Command::Hit { windows, .. } => windows.iter().map(|window| window.key.as_str()).collect(),
            Command::Reserve { budgets, .. } => budgets.iter().map(|budget| budget.key.as_str()).collect(),
            _ => Vec::new(),
        },
    }
}

fn step_text(step: &StepResult, names: &[&str]) -> String {
    let replayed = if step.replayed { " (as answered before: nothing changed)" } else { "" };
    match &step.error {
        Some(error) => return format!("failed: {}; nothing was written\n", error.message),
        None if step.status == Status::Skipped => return "skipped\n".to_owned(),
        None => {}
    }
    step.results.iter().map(|result| result_text(result, names, replayed)).collect()
}

fn result_text(result: &CommandResult, names: &[&str], replayed: &str) -> String {
    match result {
        CommandResult::Hit { allowed, windows, retry_after_ms } => {
            let verdict = if *allowed { "allowed" } else { "denied" };
            let wait = if *allowed { String::new() } else { wait_text(*retry_after_ms) };
            format!("{verdict}{replayed}{wait}\n{}", table(windows, names))
        }
        CommandResult::Get { value: None, .. } => format!("no record{replayed}\n"),
        CommandResult::Get { value: Some(value), ttl_ms } => {
            format!("{value}\n  lives another {}{replayed}\n", in_words(ttl_ms.unwrap_or_default()))
        }
        CommandResult::Set { written: true, .. } => format!("written{replayed}\n"),
        CommandResult::Set { written: false, current: Some(current) } => {
            format!("not written{replayed}; it holds {current:?}\n")
        }
        CommandResult::Set { written: false, current: None } => {
            format!("not written{replayed}; there is no record\n")
        }
        CommandResult::Delete { deleted: true } => format!("deleted{replayed}\n"),
        CommandResult::Delete { deleted: false } | CommandResult::Expire { updated: false } => {
            format!("no record{replayed}\n")
        }
        CommandResult::Ttl { ttl_ms: None } => "no record\n".to_owned(),
        CommandResult::Ttl { ttl_ms: Some(left_ms) } => format!("lives another {}\n", in_words(*left_ms)),
        CommandResult::Expire { updated: true } => format!("updated{replayed}\n"),
        CommandResult::Increment { value, ttl_ms } => {
            format!("{value}\n  lives another {}{replayed}\n", in_words(*ttl_ms))
        }
        CommandResult::Reserved { receipt, budgets } => {
            let receipt =
                receipt.map(|receipt| format!("; receipt {}", receipt.as_str())).unwrap_or_default();
            format!("reserved{receipt}{replayed}\n{}", table(budgets, names))
        }
        CommandResult::NotReserved { retry_after_ms, budgets, .. } => {
            format!("denied{replayed}{}\n{}", wait_text(*retry_after_ms), table(budgets, names))
        }
        CommandResult::Refund { refunded: true, .. } => format!("refunded{replayed}\n"),
        CommandResult::Refund { reason: Some(RefundReason::AlreadyRefunded), .. } => {
            format!("not refunded{replayed}: it was before\n")
        }
        CommandResult::Refund { .. } => format!("not refunded{replayed}: no such receipt, or no longer\n"),
    }
}

fn wait_text(wait_ms: Option<u64>) -> String {
    match wait_ms {
        Some(wait_ms) => format!("; try again in {}", in_words(wait_ms)),
        None => "; waiting can't help".to_owned(),
    }
}

fn table(usages: &[Usage], names: &[&str]) -> String {
    let mut text =
        format!("  {:<16} {:>10} {:>10} {:>10}   {}\n", "window", "limit", "used", "left", "resets in");
    for (index, usage) in usages.iter().enumerate() {
        let name = names.get(index).map_or_else(|| index.to_string(), |name| (*name).to_owned());
        let Usage { limit, used, remaining, reset_ms } = usage;
        let _ =
            writeln!(text, "  {name:<16} {limit:>10} {used:>10} {remaining:>10}   {}", in_words(*reset_ms));
    }
    text
}

#[cfg(test)]
mod tests {
    use tidegate_protocol::response::ErrorCode;

    use super::*;

    fn raw(status: u16, body: &str) -> RawAnswer {
        RawAnswer { status, body: body.as_bytes().to_vec() }
    }

    #[test]
    fn answers_and_what_is_said_of_them() {
        let step = |status: &str, result: &str| {
            format!(
                r#"{{"op":"AAAAAAAAAAAAAAAAAAAAAA","now_ms":1,"denied":{},"steps":[{{"status":"{status}","replayed":false,"results":[{result}]}}]}}"#,
                status == "denied"
            )
        };
        let window = r#"{"limit":5,"used":5,"remaining":0,"reset_ms":12001}"#;
        let table = [
            (
                step("ok", &format!(r#"{{"allowed":true,"windows":[{window}],"retry_after_ms":0}}"#)),
                EXIT_GOOD,
                "allowed",
            ),
            (
                step("denied", &format!(r#"{{"allowed":false,"windows":[{window}],"retry_after_ms":1500}}"#)),
                EXIT_DENIED,
                "denied; try again in 1500ms",
            ),
            (
                step("denied", &format!(r#"{{"allowed":false,"windows":[{window}],"retry_after_ms":null}}"#)),
                EXIT_DENIED,
                "waiting can't help",
            ),
            (step("ok", r#"{"value":"a","ttl_ms":10}"#), EXIT_GOOD, "a\n"),
            (step("ok", r#"{"written":false,"current":"b"}"#), EXIT_DENIED, "it holds \"b\""),
        ];
        for (body, code, said) in table {
            let answer = raw(200, &body);
            assert_eq!(exit_code(&answer), code, "{body}");
            let text = for_people(&answer, &Payload::File("-".into()));
            assert!(text.contains(said), "{text}");
        }
    }

    #[test]
    fn refusals_are_told_with_their_code() {
        let mut refusal = ErrorBody::new(ErrorCode::GuardUnavailable, "the store is away");
        refusal.error.retry_after_ms = Some(30_000);
        let answer = RawAnswer { status: 503, body: refusal.to_json() };
        assert_eq!(exit_code(&answer), EXIT_ERROR);
        let text = for_people(&answer, &Payload::File("-".into()));
        assert!(text.contains("guard_unavailable (503)") && text.contains("in 30s"), "{text}");
        assert!(for_people(&raw(502, "<html>"), &Payload::File("-".into())).contains("no guard store"));
    }
}
