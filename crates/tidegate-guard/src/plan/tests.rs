use std::collections::HashSet;

use tidegate_protocol::{
    name::Family,
    request::{Budget, Window},
    response::{CommandResult, Status, StepResult, Usage},
};
use tidegate_store::KEYS_MAX;

use super::*;
use crate::{admission::How, operation};

fn digest(name: &str) -> Digest {
    Digest::parse(&format!("{name:_<43}")).unwrap()
}

fn request(steps: impl IntoIterator<Item = (&'static str, Vec<Command>)>) -> Request {
    let request = Request::new(OperationId::from_random([1; 16]), Family::parse("proxy").unwrap());
    steps
        .into_iter()
        .fold(request, |request, (partition, commands)| request.step(digest(partition), commands))
}

fn family() -> FamilyEntry {
    let metrics = crate::Metrics::register(&mut prometheus_client::registry::Registry::default());
    let rules = tidegate_core::admission::FamilyRules::of_budget(1_000);
    FamilyEntry::new(Family::parse("proxy").unwrap(), rules, 1, &metrics)
}

fn receipts(count: u8) -> Vec<ReceiptId> {
    (0..count).map(|number| ReceiptId::from_random([number; 16])).collect()
}

fn plan(request: &Request) -> Plan {
    Plan::of(request, &[], &receipts(32), &family(), &How::default())
}

/// One command for every kind of row.
fn one_of_each(key: Digest) -> Vec<Command> {
    vec![
        Command::hit([Window::sliding(key, 5, 1000)]),
        Command::hit([Window::fixed(key, 5, 1000)]),
        Command::hit([Window::bucket(key, 5, 1000)]),
        Command::hit([Window::bucket(key, 5, 2000)]),
        Command::increment(key, 1, 1000),
        Command::reserve([Budget::new(key, 5, 1000)]),
    ]
}

#[test]
fn rows_of_other_kinds_keys_and_partitions_have_other_names() {
    let steps = ["alice", "bob"]
        .into_iter()
        .flat_map(|partition| ["k", "l"].map(|key| (partition, one_of_each(digest(key)))));
    let plan = plan(&request(steps));
    // In each step six rows of the commands, one of a receipt and one of the record; the fence and the family.
    assert_eq!(plan.keys.len(), 4 * 8 + 2);
    assert_eq!(plan.keys.iter().collect::<HashSet<_>>().len(), plan.keys.len());
    let groups: HashSet<Group> = plan.keys.iter().map(Key::group).collect();
    assert_eq!(groups.len(), 4, "a partition's rows are one group");
}

#[test]
fn a_row_that_is_named_twice_is_planned_once() {
    let record = digest("k");
    let commands =
        || vec![Command::get(record), Command::increment(record, 1, 1000), Command::delete(record)];
    let plan = plan(&request([("alice", commands()), ("alice", commands()), ("bob", commands())]));
    let places: Vec<usize> =
        plan.steps.iter().flat_map(|step| step.commands.iter().map(|places| places[0])).collect();
    assert!(places[..6].iter().all(|place| *place == places[0]));
    assert!(places[6..].iter().all(|place| *place == places[6] && *place != places[0]));
    let records: HashSet<usize> = plan.steps.iter().map(|step| step.record[0]).collect();
    assert_eq!(records.len(), 3, "each step has a record of its own");
}

#[test]
fn another_limit_names_the_same_row() {
    let hit = |limit| Command::hit([Window::sliding(digest("k"), limit, 1000)]);
    let plan = plan(&request([("alice", vec![hit(1), hit(2)])]));
    assert_eq!(plan.steps[0].commands[0], plan.steps[0].commands[1]);
}

#[test]
fn a_read_only_step_looks_where_another_would_have_recorded() {
    let key = digest("k");
    let record_of = |commands| {
        let plan = plan(&request([("alice", commands)]));
        plan.steps[0].record.iter().map(|place| plan.keys[*place]).collect::<Vec<_>>()
    };
    let changing = record_of(vec![Command::increment(key, 1, 1000)]);
    assert_eq!(changing.len(), 1);
    assert_eq!(record_of(vec![Command::get(key); 8]), changing);
    assert_eq!(record_of(vec![Command::hit([Window::fixed(key, 1, 1000)]).costing(0)]), changing);
}

#[test]
fn a_refund_finds_its_receipt_and_the_budgets_that_it_charged() {
    let charged = [digest("a"), digest("b")].map(|key| Key::of(&[b"budget", key.as_bytes()]));
    let id = receipts(1)[0];
    let key = receipt_key(&digest("alice"), &id);
    let charges = charged.iter().map(|key| (*key, 1)).collect();
    let known = KnownReceipt { key, receipt: Some(Receipt { refunded: false, cost: 1, charges }) };
    let unknown = KnownReceipt { key: receipt_key(&digest("bob"), &id), receipt: None };
    let request = request([("alice", vec![Command::refund(id)]), ("bob", vec![Command::refund(id)])]);
    let plan = Plan::of(&request, &[known, unknown], &[], &family(), &How::default());
    let rows =
        |step: usize| plan.steps[step].commands[0].iter().map(|place| plan.keys[*place]).collect::<Vec<_>>();
    assert_eq!(rows(0), [key, charged[0], charged[1]]);
    assert_eq!(rows(1), [receipt_key(&digest("bob"), &id)]);
    assert_ne!(rows(0)[0], rows(1)[0], "a receipt is known in its partition only");
}

#[test]
fn a_reservation_finds_the_row_that_its_receipt_will_have() {
    let ids = receipts(2);
    let reserve = || Command::reserve([Budget::new(digest("a"), 5, 1000), Budget::new(digest("b"), 5, 1000)]);
    let plan =
        Plan::of(&request([("alice", vec![reserve(), reserve()])]), &[], &ids, &family(), &How::default());
    for (places, id) in plan.steps[0].commands.iter().zip(&ids) {
        assert_eq!(places.len(), 3);
        assert_eq!(plan.keys[places[2]], receipt_key(&digest("alice"), id));
    }
}

#[test]
fn the_largest_requests_are_within_a_stores_bound() {
    let budgets =
        |index: usize| (0..4).map(move |budget| Budget::new(digest(&format!("{index}_{budget}")), 5, 1000));
    let reserves = (0..16).map(|step| {
        ("alice", vec![Command::reserve(budgets(2 * step)), Command::reserve(budgets(2 * step + 1))])
    });
    let claims = (0..4).map(|step| {
        ("alice", (0..8).map(|index| Command::claim(digest(&format!("{step}_{index}")), "v", 1000)).collect())
    });
    for request in [request(reserves), request(claims)] {
        request.validate().unwrap();
        assert!(plan(&request).keys.len() <= KEYS_MAX);
    }
}

#[test]
fn the_longest_results_fit_into_the_planned_record() {
    let key = digest("k");
    let usage = Usage { limit: 1 << 53, used: u64::MAX, remaining: 0, reset_ms: u64::MAX };
    let windows: Vec<Window> =
        (0..4).map(|index| Window::fixed(digest(&format!("{index}")), 1 << 53, 1000)).collect();
    let budgets: Vec<Budget> =
        (0..4).map(|index| Budget::new(digest(&format!("{index}")), 1 << 53, 1000)).collect();
    let long = Some("x".repeat(VALUE_BYTES_MAX));
    let xx = Command::Set { key, value: "v".into(), ttl_ms: None, mode: SetMode::Xx, keep_ttl: true };
    let (written, deleted) =
        (CommandResult::Set { written: true, current: None }, CommandResult::Delete { deleted: true });
    let set_refused = CommandResult::Set { written: false, current: long.clone() };
    let hit = CommandResult::Hit { allowed: false, windows: vec![usage; 4], retry_after_ms: Some(u64::MAX) };
    let reserved = CommandResult::Reserved { receipt: Some(receipts(1)[0]), budgets: vec![usage; 4] };
    let not_reserved = CommandResult::NotReserved {
        denied_by: vec![0, 1, 2, 3],
        retry_after_ms: Some(u64::MAX),
        budgets: vec![usage; 4],
    };
    let table = [
        (Command::hit(windows), hit),
        (Command::get(key), CommandResult::Get { value: long, ttl_ms: Some(u64::MAX) }),
        (Command::claim(key, "v", 1000), set_refused.clone()),
        (xx, set_refused),
        (Command::set(key, "v", 1000), written),
        (Command::delete(key), deleted),
        (Command::ttl(key), CommandResult::Ttl { ttl_ms: Some(u64::MAX) }),
        (Command::increment(key, 1, 1000), CommandResult::Increment { value: i64::MIN, ttl_ms: u64::MAX }),
        (Command::reserve(budgets.clone()), reserved),
        (Command::reserve(budgets), not_reserved),
    ];
    for (command, result) in table {
        for count in 1..=8 {
            let step = Step { partition: key, commands: vec![command.clone(); count] };
            let results = vec![result.clone(); count];
            let result = StepResult { status: Status::Ok, replayed: false, results, error: None };
            let bytes = operation::encode(&[0; 32], &result).len();
            let planned = record_rows(&step) * ROW_BYTES_MAX;
            assert!(bytes <= planned, "{count} of {command:?}: {bytes} bytes in {planned}");
        }
    }
}
