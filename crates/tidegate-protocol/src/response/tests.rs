use alloc::{string::ToString, vec};

use super::*;

fn usage() -> Usage {
    Usage { limit: 5, used: 2, remaining: 3, reset_ms: 900 }
}

const USAGE: &str = r#"{"limit":5,"used":2,"remaining":3,"reset_ms":900}"#;

#[test]
fn the_json_of_every_result() {
    let receipt = ReceiptId::parse("AAAAAAAAAAAAAAAAAAAAAA").unwrap();
    let table = [
        (
            CommandResult::Hit { allowed: true, windows: vec![usage()], retry_after_ms: Some(0) },
            r#"{"allowed":true,"windows":[U],"retry_after_ms":0}"#,
        ),
        (
            CommandResult::Hit { allowed: false, windows: vec![usage(), usage()], retry_after_ms: None },
            r#"{"allowed":false,"windows":[U,U],"retry_after_ms":null}"#,
        ),
        (CommandResult::Get { value: Some("0".into()), ttl_ms: Some(9) }, r#"{"value":"0","ttl_ms":9}"#),
        (
            CommandResult::Get { value: Some("é\n\"".into()), ttl_ms: Some(9) },
            r#"{"value":"é\n\"","ttl_ms":9}"#,
        ),
        (CommandResult::Get { value: None, ttl_ms: None }, r#"{"value":null,"ttl_ms":null}"#),
        (CommandResult::Set { written: true, current: None }, r#"{"written":true,"current":null}"#),
        (
            CommandResult::Set { written: false, current: Some("v".into()) },
            r#"{"written":false,"current":"v"}"#,
        ),
        (CommandResult::Delete { deleted: true }, r#"{"deleted":true}"#),
        (CommandResult::Ttl { ttl_ms: Some(9) }, r#"{"ttl_ms":9}"#),
        (CommandResult::Ttl { ttl_ms: None }, r#"{"ttl_ms":null}"#),
        (CommandResult::Expire { updated: false }, r#"{"updated":false}"#),
        (CommandResult::Increment { value: -7, ttl_ms: 9 }, r#"{"value":-7,"ttl_ms":9}"#),
        (
            CommandResult::Reserved { receipt: Some(receipt), budgets: vec![usage()] },
            r#"{"reserved":true,"receipt":"AAAAAAAAAAAAAAAAAAAAAA","budgets":[U]}"#,
        ),
        (
            CommandResult::Reserved { receipt: None, budgets: vec![usage()] },
            r#"{"reserved":true,"budgets":[U]}"#,
        ),
        (
            CommandResult::NotReserved {
                denied_by: vec![0, 2],
                retry_after_ms: Some(7),
                budgets: vec![usage()],
            },
            r#"{"reserved":false,"denied_by":[0,2],"retry_after_ms":7,"budgets":[U]}"#,
        ),
        (
            CommandResult::NotReserved { denied_by: vec![1], retry_after_ms: None, budgets: vec![] },
            r#"{"reserved":false,"denied_by":[1],"retry_after_ms":null,"budgets":[]}"#,
        ),
        (CommandResult::Refund { refunded: true, reason: None }, r#"{"refunded":true}"#),
        (
            CommandResult::Refund { refunded: false, reason: Some(RefundReason::AlreadyRefunded) },
            r#"{"refunded":false,"reason":"already_refunded"}"#,
        ),
        (
            CommandResult::Refund { refunded: false, reason: Some(RefundReason::UnknownOrExpired) },
            r#"{"refunded":false,"reason":"unknown_or_expired"}"#,
        ),
    ];
    for (result, json) in table {
        let json = json.replace('U', USAGE);
        assert_eq!(serde_json::to_string(&result).unwrap(), json);
        assert_eq!(serde_json::from_str::<CommandResult>(&json).unwrap(), result, "{json}");
    }
}

#[test]
fn what_is_no_result() {
    for json in [
        "{}",
        "[]",
        "null",
        r#"{"allowed":true}"#,
        r#"{"value":"v"}"#,
        r#"{"value":7,"ttl_ms":null}"#,
        r#"{"reserved":false}"#,
    ] {
        assert!(serde_json::from_str::<CommandResult>(json).is_err(), "{json}");
    }
}

#[test]
fn the_json_of_a_response() {
    let failed = StepResult {
        status: Status::Failed,
        replayed: false,
        results: vec![],
        error: Some(StepError { code: StepErrorCode::NotAnInteger, message: "no".into(), command: 1 }),
    };
    let response = Response {
        op: OperationId::parse("9m3V0rG1TqyXo6mZyJmQ0w").unwrap(),
        now_ms: 1_764_460_800_000,
        denied: true,
        steps: vec![
            StepResult {
                status: Status::Denied,
                replayed: true,
                results: vec![CommandResult::Delete { deleted: false }],
                error: None,
            },
            failed,
            StepResult::skipped(),
        ],
    };
    let json = concat!(
        r#"{"op":"9m3V0rG1TqyXo6mZyJmQ0w","now_ms":1764460800000,"denied":true,"steps":["#,
        r#"{"status":"denied","replayed":true,"results":[{"deleted":false}]},"#,
        r#"{"status":"failed","replayed":false,"results":[],"error":{"code":"not_an_integer","message":"no","command":1}},"#,
        r#"{"status":"skipped","replayed":false,"results":[]}]}"#,
    );
    assert_eq!(response.to_json(), json.as_bytes());
    assert_eq!(Response::from_json(json.as_bytes()).unwrap(), response);
    // A later server may say more.
    let later = json.replace(r#""denied":true"#, r#""denied":true,"more":[1]"#);
    assert_eq!(Response::from_json(later.as_bytes()).unwrap(), response);
}

#[test]
fn denials() {
    let denied = [
        CommandResult::Hit { allowed: false, windows: vec![], retry_after_ms: None },
        CommandResult::NotReserved { denied_by: vec![0], retry_after_ms: None, budgets: vec![] },
    ];
    assert!(denied.iter().all(CommandResult::is_denial));
    let others = [
        CommandResult::Hit { allowed: true, windows: vec![], retry_after_ms: Some(0) },
        CommandResult::Set { written: false, current: None },
        CommandResult::Refund { refunded: false, reason: Some(RefundReason::AlreadyRefunded) },
    ];
    assert!(!others.iter().any(CommandResult::is_denial));
}

#[test]
fn errors_and_their_status() {
    use ErrorCode::{
        BadRequest, BodyTooLarge, GuardLimited, GuardStopped, GuardUnavailable, OperationConflict,
        Unauthenticated,
    };
    let table = [
        (BadRequest, "bad_request", 400),
        (Unauthenticated, "unauthenticated", 401),
        (OperationConflict, "operation_conflict", 409),
        (BodyTooLarge, "body_too_large", 413),
        (GuardLimited, "guard_limited", 429),
        (GuardStopped, "guard_stopped", 503),
        (GuardUnavailable, "guard_unavailable", 503),
    ];
    assert_eq!(table.len(), ErrorCode::NAMES.len());
    for (code, name, status) in table {
        assert_eq!((code.as_str(), code.status()), (name, status));
        let json = alloc::format!(r#"{{"error":{{"code":"{name}","message":"m"}}}}"#);
        assert_eq!(ErrorBody::new(code, "m").to_json(), json.as_bytes());
    }
}

#[test]
fn the_json_of_an_error() {
    let mut body = ErrorBody::new(ErrorCode::GuardLimited, "m");
    body.error.reason = Some(StopReason::BudgetExhausted);
    body.error.axis = Some(Axis::Network56);
    body.error.retry_after_ms = Some(7);
    let json = r#"{"error":{"code":"guard_limited","reason":"budget_exhausted","axis":"network/56","message":"m","retry_after_ms":7}}"#;
    assert_eq!(body.to_json(), json.as_bytes());
    assert_eq!(serde_json::from_str::<ErrorBody>(json).unwrap(), body);
    assert_eq!(
        [24, 56, 48].map(Axis::of_network),
        [Some(Axis::Network24), Some(Axis::Network56), Some(Axis::Network48)]
    );
    assert_eq!(Axis::of_network(64), None);
    assert_eq!(Axis::Network48.as_str(), "network/48");
    assert_eq!(StopReason::OperatorStop.as_str(), "operator_stop");
}

#[test]
fn retry_after_is_rounded_up_and_never_0() {
    let table = [(60_000, 60), (58_300, 59), (1000, 1), (999, 1), (200, 1), (1, 1), (0, 1), (1001, 2)];
    for (ms, seconds) in table {
        assert_eq!(retry_after_seconds(ms), seconds, "{ms}");
    }
    assert_eq!(retry_after_seconds(u64::MAX).to_string(), "18446744073709552");
}
