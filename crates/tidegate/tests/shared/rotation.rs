//! A new `store.secret`, rolled out one instance after the other: those on the old one go on with its rows, which
//! are nothing to those on the new one, and which a sweep of any instance removes once they expire.

use serde_json::{Value, json};
use tidegate_test_servers::{PostgresServer, RedisServer};

use crate::{
    AMPLE, OPERATOR, migrate,
    support::{
        eventually,
        message::{digest, fresh_op, incr, set, steps},
        server::Server,
        spending::budgeted,
    },
};

const ROWS_MAX: usize = 1_000;
/// Rows whose lives are cut short. A step takes eight.
const SHORT: usize = 64;
const ENTRIES: &str = "tidegate_store_entries";

#[test]
fn on_postgres() {
    let server = PostgresServer::start().expect("PostgreSQL starts");
    rolls_out("postgres", &server.url());
}

#[test]
fn on_redis() {
    let server = RedisServer::start(&[]).expect("Redis starts");
    rolls_out("redis", &server.url());
}

fn rolls_out(kind: &str, url: &str) {
    let (old_secret, new_secret) = (fresh_op(), fresh_op());
    let instance = |secret: &str| {
        budgeted(AMPLE)
            .set("store.kind", kind)
            .set("store.url", url)
            .set("store.secret", secret)
            .set("store.max_entries", ROWS_MAX.to_string())
            .set("guard.operator_token", OPERATOR)
    };
    migrate(&instance(&old_secret));
    let old = [instance(&old_secret).start(), instance(&old_secret).start()];
    assert_eq!([count(&old[0]), count(&old[1])], [1, 2], "both on one secret");
    write(&old[0], "short", 0..SHORT).expect("there is room");
    let stored = fill(&old[0]);
    assert!(write(&old[1], "refused", 0..8).is_err(), "full for the other one, too");

    // The first new one: it has all the room, reads nothing of the old rows, and they live on.
    let new = instance(&new_secret).start();
    assert_eq!(count(&new), 1, "another secret's row is read");
    write(&new, "short", 0..SHORT).expect("rows of the old secret do not count");
    assert!(entries(&new) < ROWS_MAX as u64 / 2, "{} rows", entries(&new));
    assert!(entries(&old[0]) >= (stored + SHORT) as u64, "the start's sweep removed rows that live");
    assert_eq!([count(&old[0]), count(&old[1])], [3, 4], "those on the old secret go on counting");
    assert_eq!(count(&new), 2);

    // What has expired is swept by the next new one at its start, although it can't read it. (The changes that cut
    // lives short leave a few records of their own.)
    let before = entries(&old[0]);
    expire(&old[0], "short", 0..SHORT);
    let [old, replaced] = old;
    drop(replaced);
    let second = eventually("a sweep of what has expired", || {
        let second = instance(&new_secret).start();
        let swept = || (entries(&old) + SHORT as u64 / 2 <= before).then_some(());
        // Its lives last a second; an instance that came too early swept nothing.
        (0..50).find_map(|_| swept()).map(|()| second)
    });
    assert_eq!(count(&old), 5, "and nothing that lives is gone");
    assert!(entries(&old) >= stored as u64);
    drop(old);
    assert_eq!([count(&second), count(&new)], [3, 4], "both on the new secret");
}

/// Counts one key up; answers what it is then.
#[track_caller]
fn count(server: &Server) -> i64 {
    server.run("rolling", incr("counted"))["value"].as_i64().expect("a counter")
}

/// How many rows the store holds of the instance's secret, as of the last update.
fn entries(server: &Server) -> u64 {
    server.counter("rolling", "counted");
    server.metric(ENTRIES)
}

/// Sends commands for the records of these numbers, eight in a step; errs at the first that is refused.
fn send(
    server: &Server,
    partition: &str,
    numbers: std::ops::Range<usize>,
    command: impl Fn(&str) -> Value,
) -> Result<(), String> {
    for first in numbers.step_by(8) {
        let commands: Vec<Value> = (first..first + 8).map(|number| command(&number.to_string())).collect();
        let reply = server.rpc(&steps(json!([{"partition": digest(partition), "commands": commands}])));
        if reply.status != 200 {
            assert_eq!(reply.code(), "guard_unavailable");
            return Err(reply.text());
        }
    }
    Ok(())
}

fn write(server: &Server, partition: &str, numbers: std::ops::Range<usize>) -> Result<(), String> {
    send(server, partition, numbers, |name| set(name, "kept", "always"))
}

fn expire(server: &Server, partition: &str, numbers: std::ops::Range<usize>) {
    let cut_short = |name: &str| json!({"cmd": "kv.expire", "key": digest(name), "ttl_ms": 1_000});
    send(server, partition, numbers, cut_short).expect("rows that are there can be changed");
}

/// Writes records until they are refused; answers how many there are.
fn fill(server: &Server) -> usize {
    let refused = (0..ROWS_MAX).step_by(8).find(|first| write(server, "long", *first..first + 8).is_err());
    refused.expect("more records than there is room for")
}
