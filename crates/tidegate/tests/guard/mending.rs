//! What operators can give back: a share of a budget, and what is stored of a partition.

use serde_json::json;

use crate::support::{
    message::{digest, fresh_op, hit, incr},
    server::Server,
    spending::{budgeted, carrying, looks, split},
};

#[test]
fn a_locked_out_user_is_let_in_again() {
    let server = budgeted(100).start();
    let used = |partition: &str, key: &str| server.run(partition, hit(key, 1))["allowed"].clone();
    for partition in ["alice", "bob"] {
        assert_eq!(
            [used(partition, "minute"), used(partition, "minute"), used(partition, "day")],
            [true, false, true]
        );
    }
    let before = server.used("proxy");
    let key = json!({"partition": digest("alice"), "key": digest("minute")});
    assert_eq!(server.order("/control/forget", &key.to_string()), json!({"forgotten": 1}));
    assert_eq!(server.used("proxy"), before, "it spends no budget");
    assert_eq!([used("alice", "minute"), used("alice", "day")], [true, false], "one key of the two");
    // Two windows, and the operation records of the three hits that were allowed.
    let whole = json!({"partition": digest("alice")});
    assert_eq!(server.order("/control/forget", &whole.to_string()), json!({"forgotten": 5}));
    assert_eq!([used("alice", "minute"), used("alice", "day")], [true, true]);
    assert_eq!([used("bob", "minute"), used("bob", "day")], [false, false], "another partition's stay");
}

#[test]
fn a_reset_gives_a_share_back_to_whom_it_names() {
    // (what is reset, whether the source `it`, the source `other` and the principal `it` may go on)
    let it = digest("it");
    let table = [
        (json!({"family": "proxy"}), [true, true, true]),
        (json!({"family": "proxy", "axis": "source"}), [true, true, false]),
        (json!({"family": "proxy", "axis": "principal"}), [false, false, true]),
        (json!({"family": "proxy", "identity": it}), [true, false, true]),
        (json!({"family": "proxy", "axis": "source", "identity": it}), [true, false, false]),
        (json!({"family": "proxy", "axis": "network/24", "identity": it}), [false, false, false]),
        (json!({"family": "offline"}), [false, false, false]),
    ];
    for (reset, expected) in table {
        let server = split(200, "proxy=100,offline=100").start();
        let visit = |axis: &str, name: &str| server.rpc(&carrying(looks("proxy", 5), axis, name)).status;
        let visits = || [visit("source", "it"), visit("source", "other"), visit("principal", "it")];
        assert_eq!([visits(), visits(), visits()], [[200; 3], [429; 3], [429; 3]]);
        server.order("/control/fairness/reset", &reset.to_string());
        assert_eq!(visits(), expected.map(|open| if open { 200 } else { 429 }), "{reset}");
        let spent = 15 + 5 * expected.iter().filter(|open| **open).count() as u64;
        assert_eq!(server.used("proxy"), spent, "{reset}: the family's own usage stays");
    }
}

#[test]
fn a_forgotten_operation_is_not_known_any_more() {
    let server = Server::start();
    let partition = digest("claims");
    let claim = json!({"op": fresh_op(), "family": "proxy", "steps": [
        {"partition": partition, "commands": [incr("k")]}]});
    server.ok(&claim);
    assert_eq!(server.ok(&claim)["steps"][0]["replayed"], true);
    server.order("/control/forget", &json!({"partition": partition}).to_string());
    assert_eq!(
        server.ok(&claim)["steps"][0],
        json!({"status": "ok", "replayed": false,
        "results": [{"value": 1, "ttl_ms": 600_000}]})
    );
}
