use proptest::prelude::*;
use tidegate_protocol::{
    identity::Digest,
    request::{Budget, SetMode, Window},
};

use super::*;

const FINGERPRINT: Fingerprint = [7; 32];

fn key() -> Digest {
    Digest::parse(&"k".repeat(43)).unwrap()
}

fn receipt(byte: u8) -> ReceiptId {
    ReceiptId::from_random([byte; 16])
}

fn step_of(commands: Vec<Command>) -> Step {
    Step { partition: key(), commands }
}

/// A step's record, taken apart again.
fn round_trip(step: &Step, results: Vec<CommandResult>) -> Result<StepResult, RecordFault> {
    let result = StepResult { status: Status::Denied, replayed: false, results, error: None };
    decode(&encode(&FINGERPRINT, &result), &FINGERPRINT, step)
}

/// Every command with every shape of its result.
fn table() -> Vec<(Command, CommandResult)> {
    let windows = || vec![Window::fixed(key(), 5, 1000), Window::bucket(key(), 1 << 53, 1000)];
    let budgets = || vec![Budget::new(key(), 5, 1000), Budget::new(key(), 0, 1000)];
    let hit = || Command::hit(windows());
    let reserve = || Command::reserve(budgets());
    let claim = || Command::claim(key(), "v", 1000);
    let increment = || Command::increment(key(), 1, 1000);
    let refund = || Command::refund(receipt(1));
    let usage =
        |limit: u64, used, reset_ms| Usage { limit, used, remaining: limit.saturating_sub(used), reset_ms };
    let usages = vec![usage(5, 9, 1), usage(1 << 53, 1 << 52, u64::MAX)];
    let hit_is =
        |allowed, retry_after_ms| CommandResult::Hit { allowed, windows: usages.clone(), retry_after_ms };
    let get_is =
        |value: Option<&str>, ttl_ms| CommandResult::Get { value: value.map(ToOwned::to_owned), ttl_ms };
    let set_is = |written, current: Option<&str>| CommandResult::Set {
        written,
        current: current.map(ToOwned::to_owned),
    };
    let not_reserved = |denied_by, retry_after_ms| CommandResult::NotReserved {
        denied_by,
        retry_after_ms,
        budgets: vec![usage(5, 5, 1), usage(0, 0, 0)],
    };
    let reserved =
        |receipt| CommandResult::Reserved { receipt, budgets: vec![usage(5, 1, 9), usage(0, 0, 0)] };
    let refused = |reason| CommandResult::Refund { refunded: false, reason: Some(reason) };
    vec![
        (hit(), hit_is(true, Some(0))),
        (hit(), hit_is(false, Some(1))),
        (hit(), hit_is(false, None)),
        (Command::get(key()), get_is(None, None)),
        (Command::get(key()), get_is(Some(""), Some(0))),
        (Command::get(key()), get_is(Some("é\0\"\u{10ffff}"), Some(10_368_000_000))),
        (claim(), set_is(true, None)),
        (claim(), set_is(false, None)),
        (claim(), set_is(false, Some(""))),
        (claim(), set_is(false, Some(&"x".repeat(2048)))),
        (Command::delete(key()), CommandResult::Delete { deleted: true }),
        (Command::delete(key()), CommandResult::Delete { deleted: false }),
        (Command::expire(key(), 1000), CommandResult::Expire { updated: true }),
        (Command::expire(key(), 1000), CommandResult::Expire { updated: false }),
        (Command::ttl(key()), CommandResult::Ttl { ttl_ms: None }),
        (Command::ttl(key()), CommandResult::Ttl { ttl_ms: Some(1) }),
        (increment(), CommandResult::Increment { value: 0, ttl_ms: 1 }),
        (increment(), CommandResult::Increment { value: -1, ttl_ms: 1 }),
        (increment(), CommandResult::Increment { value: 9_007_199_254_740_991, ttl_ms: 1 }),
        (increment(), CommandResult::Increment { value: -9_007_199_254_740_991, ttl_ms: 1 }),
        (reserve(), reserved(Some(receipt(0xff)))),
        (reserve(), reserved(None)),
        (reserve(), not_reserved(vec![0, 1], None)),
        (reserve(), not_reserved(vec![1], Some(1))),
        (refund(), CommandResult::Refund { refunded: true, reason: None }),
        (refund(), refused(RefundReason::AlreadyRefunded)),
        (refund(), refused(RefundReason::UnknownOrExpired)),
    ]
}

#[test]
fn every_result_comes_back_alone_and_beside_another() {
    let table = table();
    for (command, result) in &table {
        let step = step_of(vec![command.clone()]);
        let decoded = round_trip(&step, vec![result.clone()]).unwrap();
        assert_eq!(&decoded.results[..], std::slice::from_ref(result));
        assert_eq!((decoded.status, decoded.replayed, decoded.error), (Status::Denied, true, None));
    }
    for pair in table.windows(2) {
        let (commands, results): (Vec<_>, Vec<_>) = pair.iter().cloned().unzip();
        assert_eq!(round_trip(&step_of(commands), results.clone()).unwrap().results, results);
    }
}

#[test]
fn another_fingerprint_is_told_before_anything_else() {
    let result = StepResult { status: Status::Ok, replayed: false, results: vec![], error: None };
    let mut record = encode(&[8; 32], &result);
    let step = step_of(vec![Command::get(key())]);
    assert_eq!(decode(&record, &FINGERPRINT, &step), Err(RecordFault::OtherCommands));
    record.truncate(33);
    assert_eq!(decode(&record, &FINGERPRINT, &step), Err(RecordFault::OtherCommands));
    record.truncate(32);
    assert_eq!(decode(&record, &FINGERPRINT, &step), Err(RecordFault::Unreadable));
}

#[test]
fn a_record_that_is_cut_or_goes_on_is_unreadable() {
    for (command, result) in table() {
        let step = step_of(vec![command]);
        let result = StepResult { status: Status::Ok, replayed: false, results: vec![result], error: None };
        let whole = encode(&FINGERPRINT, &result);
        for length in 0..whole.len() {
            let cut = decode(&whole[..length], &FINGERPRINT, &step);
            assert_eq!(cut, Err(RecordFault::Unreadable), "{length} of {} bytes", whole.len());
        }
        let longer = [whole.as_slice(), &[0]].concat();
        assert_eq!(decode(&longer, &FINGERPRINT, &step), Err(RecordFault::Unreadable));
        let other_version = [&[VERSION + 1], &whole[1..]].concat();
        assert_eq!(decode(&other_version, &FINGERPRINT, &step), Err(RecordFault::Unreadable));
    }
}

#[test]
fn an_xx_set_that_was_refused_has_nothing_to_show() {
    let set = Command::Set {
        key: key(),
        value: "v".into(),
        ttl_ms: Some(1000),
        mode: SetMode::Xx,
        keep_ttl: false,
    };
    let refused = CommandResult::Set { written: false, current: None };
    assert_eq!(round_trip(&step_of(vec![set]), vec![refused.clone()]).unwrap().results, [refused]);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        commands in prop::collection::vec(prop::sample::select(table()), 1..4),
    ) {
        let step = step_of(commands.into_iter().map(|(command, _)| command).collect());
        let record = [&[VERSION], FINGERPRINT.as_slice(), &bytes].concat();
        if let Ok(result) = decode(&record, &FINGERPRINT, &step) {
            prop_assert_eq!(result.results.len(), step.commands.len());
        }
        let _ = decode(&bytes, &FINGERPRINT, &step);
    }

    #[test]
    fn small_numbers_of_either_sign_are_short(number in any::<i64>()) {
        prop_assert_eq!(unzigzag(zigzag(number)), number);
        prop_assert!(zigzag(number >> 58) < 128);
    }
}
