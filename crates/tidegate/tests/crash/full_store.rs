//! A store with as many rows as it may hold.

use tidegate_protocol::{Command, CommandResult, Response, request::Window, response::Status};

use crate::{
    caller::{Caller, body_of, executed, fresh_id, is_unavailable, key, partition_of, request},
    support::{
        eventually,
        server::{Server, Setup},
    },
};

const ROWS_MAX: usize = 1000;
/// Records whose lives are cut short, so that there is room again.
const SHORT: usize = 64;
const SHORT_MS: u64 = 1000;
const LONG_MS: u64 = 3_600_000;
/// As many commands as an RPC takes.
const AT_ONCE: usize = 32;
/// And as many as a step takes.
const COMMANDS: usize = 8;
/// The known counter and window with their operation record, and the row that `/readyz` writes.
const OTHERS: usize = 4;

#[test]
fn a_full_store_refuses_new_keys_counts_known_ones_and_has_room_again() {
    let server = Setup::new().set("store.max_entries", ROWS_MAX.to_string()).start();
    let mut caller = Caller::to(server.guard);
    let count = || Command::increment(key("known"), 1, LONG_MS);
    let hit = || Command::hit([Window::sliding(key("known"), 1_000_000, 50 * 24 * LONG_MS)]);
    caller.step("known", [count(), hit()]);
    let keep = |name: &str| Command::set(key(name), "kept", LONG_MS);
    assert!(many(&mut caller, "short", SHORT, keep).is_ok(), "64 of 1000");

    let stored = fill(&mut caller);
    assert!(stored + SHORT + 2 <= ROWS_MAX, "{stored} are more than there is room for");
    let operations = (stored + SHORT) / COMMANDS;
    let held = stored + SHORT + operations + OTHERS;
    assert!(held + AT_ONCE > ROWS_MAX, "{stored} records: refused though there was room");
    let single = (0..AT_ONCE).take_while(|name| new_key(&mut caller, &name.to_string()).is_ok()).count();
    assert!(single < AT_ONCE, "as many as were refused at once fit one by one");
    server.wait_for_log("limit-store-filling");
    server.wait_for_log("limit-store-full");
    assert_eq!(server.log().matches("limit-store-full").count(), 1, "at most once a minute");

    for more in 2..20 {
        let step = caller.step("known", [count(), hit()]);
        assert_eq!(step.status, Status::Ok);
        assert!(
            matches!(step.results[0], CommandResult::Increment { value, .. } if value == more),
            "{step:?}"
        );
    }
    assert_eq!(caller.record("long 0", "0").0.as_deref(), Some("kept"), "nothing live was removed");
    let refused = new_key(&mut caller, "refused");
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(caller.record("new", "refused").0, None);

    let cut_short = |name: &str| Command::expire(key(name), SHORT_MS);
    many(&mut caller, "short", SHORT, cut_short).expect("records that it holds can be changed");
    eventually("room where lives have ended", || new_key(&mut caller, "later").ok());
    assert_eq!(caller.record("new", "later").0.as_deref(), Some("kept"));
    assert_eq!(count_stored(&server, stored), stored, "nothing live was removed");
}

/// Writes long records until they are refused; answers how many there are.
fn fill(caller: &mut Caller) -> usize {
    for batch in 0.. {
        let keep = |name: &str| Command::set(key(name), "kept", LONG_MS);
        if many(caller, &format!("long {batch}"), AT_ONCE, keep).is_err() {
            return batch * AT_ONCE;
        }
        assert!(batch * AT_ONCE <= ROWS_MAX, "the store takes more than it may hold");
    }
    unreachable!("a store is full some time")
}

/// Does the same to `count` records of a partition, as many at once as an RPC takes: all of those or none.
fn many(
    caller: &mut Caller,
    partition: &str,
    count: usize,
    command: impl Fn(&str) -> Command,
) -> Result<(), String> {
    for first in (0..count).step_by(AT_ONCE) {
        let steps = (first..count.min(first + AT_ONCE)).step_by(COMMANDS);
        let asked = steps.fold(request(fresh_id()), |asked, first| {
            let commands = (first..first + COMMANDS).map(|name| command(&name.to_string()));
            asked.step(partition_of(partition), commands)
        });
        answered(caller, &body_of(&asked))?;
    }
    Ok(())
}

fn new_key(caller: &mut Caller, name: &str) -> Result<Response, String> {
    let set = Command::set(key(name), "kept", LONG_MS);
    answered(caller, &body_of(&request(fresh_id()).step(partition_of("new"), [set])))
}

/// The response, or the one refusal that there may be.
#[track_caller]
fn answered(caller: &mut Caller, body: &[u8]) -> Result<Response, String> {
    let reply = caller.post(body).expect("an answer");
    if reply.status == 200 {
        return Ok(executed(&reply).expect("a response"));
    }
    assert!(is_unavailable(&reply), "{reply:?}");
    Err(reply.text())
}

/// How many of the long records are there.
fn count_stored(server: &Server, stored: usize) -> usize {
    let mut caller = Caller::to(server.guard);
    let names =
        (0..stored).map(|number| (format!("long {}", number / AT_ONCE), (number % AT_ONCE).to_string()));
    names.filter(|(partition, name)| caller.record(partition, name).0.is_some()).count()
}
