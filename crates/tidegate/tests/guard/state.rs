//! The negative control: what says "nothing changed" tells when something did.

use serde_json::json;

use crate::support::{
    message::{digest, get, hit, incr, one_step},
    server::Server,
    state::{KEY, Watched},
};

#[test]
fn the_watch_tells_every_change_and_no_look() {
    let server = Server::start();
    let budget = json!({"key": digest(KEY), "limit": 100, "period_ms": 3_600_000});
    let changes = [
        ("a counter", incr(KEY)),
        ("a window", hit(KEY, 100)),
        ("a budget", json!({"cmd": "res.reserve", "budgets": [budget]})),
        ("a removal", json!({"cmd": "kv.del", "key": digest(KEY)})),
    ];
    for (index, (what, change)) in changes.into_iter().enumerate() {
        let partition = ["one", "two", "three", "four"][index];
        let watched = Watched::new(&server, partition);
        watched.assert_unchanged("the watch's own look");
        server.ok(&one_step(partition, json!([get(KEY)])));
        assert!(watched.is_unchanged(), "{what}: a look is no change");
        server.ok(&one_step(partition, json!([change])));
        assert!(!watched.is_unchanged(), "{what}");
    }
}
