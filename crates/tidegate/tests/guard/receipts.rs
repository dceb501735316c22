//! A receipt gives back once, what was taken, where it was taken.

use serde_json::{Value, json};

use crate::{
    races::at_once,
    support::{
        message::{digest, one_step},
        server::Server,
    },
};

const PARTITION: &str = "receipts";

#[test]
fn fifty_refunds_at_once_give_back_once() {
    let server = Server::start();
    reserve(&server, PARTITION, 2);
    let receipt = reserve(&server, PARTITION, 3);
    assert_eq!(used(&server, PARTITION), 5);
    let bodies = (0..50).map(|_| one_step(PARTITION, json!([refund(&receipt)])).to_string().into_bytes());
    let results: Vec<_> = at_once(server.guard, bodies.collect())
        .iter()
        .map(|reply| reply["steps"][0]["results"][0].clone())
        .collect();
    let done = results.iter().filter(|result| **result == json!({"refunded": true})).count();
    let again = json!({"refunded": false, "reason": "already_refunded"});
    let refused = results.iter().filter(|result| **result == again).count();
    assert_eq!((done, refused, used(&server, PARTITION)), (1, 49, json!(2)));
    for _ in 0..2 {
        assert_eq!(server.run(PARTITION, refund(&receipt)), again);
        assert_eq!(used(&server, PARTITION), 2);
    }
}

#[test]
fn a_receipt_that_is_not_one_of_this_partition() {
    let server = Server::start();
    let receipt = reserve(&server, PARTITION, 3);
    let foreign = reserve(&server, "another partition", 3);
    let first = receipt.as_bytes()[0];
    let changed = format!("{}{}", if first == b'A' { 'B' } else { 'A' }, &receipt[1..]);
    let unknown = json!({"refunded": false, "reason": "unknown_or_expired"});
    for forged in [&changed, &foreign, &"A".repeat(22)] {
        assert_eq!(server.run(PARTITION, refund(forged)), unknown, "{forged}");
    }
    let malformed = [
        json!({"cmd": "res.refund", "receipt": receipt[..21]}),
        json!({"cmd": "res.refund", "receipt": format!("{receipt}A")}),
        json!({"cmd": "res.refund", "receipt": ""}),
        json!({"cmd": "res.refund", "receipt": null}),
        json!({"cmd": "res.refund"}),
        // The receipt knows what it took, and from which budgets.
        json!({"cmd": "res.refund", "receipt": receipt, "cost": 5}),
        json!({"cmd": "res.refund", "receipt": receipt, "key": digest("another")}),
        json!({"cmd": "res.refund", "receipt": receipt, "budgets": []}),
    ];
    for command in malformed {
        let reply = server.rpc(&one_step(PARTITION, json!([command])));
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{command}");
    }
    assert_eq!((used(&server, PARTITION), used(&server, "another partition")), (json!(3), json!(3)));
    assert_eq!(server.run(PARTITION, refund(&receipt)), json!({"refunded": true}));
    assert_eq!((used(&server, PARTITION), used(&server, "another partition")), (json!(0), json!(3)));
}

fn command(cost: u64) -> Value {
    let budget = json!({"key": digest("budget"), "limit": 10, "period_ms": 3_600_000});
    json!({"cmd": "res.reserve", "budgets": [budget], "cost": cost})
}

#[track_caller]
fn reserve(server: &Server, partition: &str, cost: u64) -> String {
    let result = server.run(partition, command(cost));
    result["receipt"].as_str().expect("there is room").to_owned()
}

fn refund(receipt: &str) -> Value {
    json!({"cmd": "res.refund", "receipt": receipt})
}

#[track_caller]
fn used(server: &Server, partition: &str) -> Value {
    server.run(partition, command(0))["budgets"][0]["used"].clone()
}
