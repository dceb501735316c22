//! `kv.*`: results, lives and modes, on records that are absent, live and expired.

use tidegate_protocol::{Command, CommandResult, request::SetMode};

use crate::{
    harness::{ABSENT, Bench, WRITTEN, check, counted, digest, get, increment, refused, value},
    rig::Rig,
};

const MINUTE_MS: u64 = 60_000;

fn set(value: &str) -> Command {
    Command::set(digest("k"), value, MINUTE_MS)
}

/// A set with every option.
fn put(value: &str, mode: SetMode, ttl_ms: Option<u64>, keep_ttl: bool) -> Command {
    Command::Set { key: digest("k"), value: value.to_owned(), ttl_ms, mode, keep_ttl }
}

fn ttl() -> Command {
    Command::ttl(digest("k"))
}

fn ttl_is(ttl_ms: Option<u64>) -> CommandResult {
    CommandResult::Ttl { ttl_ms }
}

#[tokio::test]
async fn a_record_lives_until_exactly_its_expiry() {
    check(&[
        (0, get("k"), ABSENT),
        (0, ttl(), ttl_is(None)),
        (0, set("v"), WRITTEN),
        (0, get("k"), value("v", MINUTE_MS)),
        (1, ttl(), ttl_is(Some(MINUTE_MS - 1))),
        (59_999, get("k"), value("v", 1)),
        (59_999, ttl(), ttl_is(Some(1))),
        (60_000, get("k"), ABSENT),
        (60_000, ttl(), ttl_is(None)),
    ])
    .await;
}

#[tokio::test]
async fn values_come_back_as_they_were() {
    let long = "é".repeat(1024);
    let table = ["", "0", "-0", "007", " a ", "\u{0}", "line\nline", "\"\\", long.as_str()];
    for text in table {
        check(&[(0, set(text), WRITTEN), (0, get("k"), value(text, MINUTE_MS))]).await;
    }
}

#[tokio::test]
async fn each_mode_on_absent_live_and_expired() {
    let fresh = Some(MINUTE_MS);
    let done = WRITTEN;
    let table: [(SetMode, CommandResult, CommandResult, CommandResult); 3] = [
        (SetMode::Always, done.clone(), done.clone(), done.clone()),
        (SetMode::Nx, done.clone(), refused(Some("old")), done.clone()),
        (SetMode::Xx, refused(None), done, refused(None)),
    ];
    for (mode, absent, live, expired) in table {
        let command = put("new", mode, fresh, false);
        check(&[(0, command.clone(), absent)]).await;
        check(&[(0, set("old"), WRITTEN), (59_999, command.clone(), live)]).await;
        check(&[(0, set("old"), WRITTEN), (60_000, command, expired)]).await;
    }
}

#[tokio::test]
async fn a_set_gives_a_new_life_unless_it_keeps_the_old_one() {
    let half = Some(30_000);
    let (always, xx) = (SetMode::Always, SetMode::Xx);
    let table = [
        ("no keep_ttl", put("new", always, half, false), 30_000),
        ("keep_ttl on a live record", put("new", always, half, true), 50_000),
        ("keep_ttl and xx", put("new", xx, half, true), 50_000),
        ("keep_ttl and xx, no ttl_ms", put("new", xx, None, true), 50_000),
    ];
    for (what, command, left_ms) in table {
        let bench = Bench::new();
        bench.command(set("old")).await;
        bench.at(10_000);
        assert_eq!(bench.command(command).await, WRITTEN, "{what}");
        assert_eq!(bench.command(get("k")).await, value("new", left_ms), "{what}");
    }
}

#[tokio::test]
async fn keep_ttl_serves_an_absent_record_with_its_ttl() {
    let keep = put("new", SetMode::Always, Some(30_000), true);
    check(&[(0, keep.clone(), WRITTEN), (0, get("k"), value("new", 30_000))]).await;
    check(&[(0, set("old"), WRITTEN), (60_000, keep, WRITTEN), (60_000, get("k"), value("new", 30_000))])
        .await;
    let keep_or_leave = put("new", SetMode::Xx, None, true);
    check(&[(0, keep_or_leave, refused(None)), (0, get("k"), ABSENT)]).await;
}

#[tokio::test]
async fn a_refused_set_leaves_value_and_life() {
    check(&[
        (0, set("old"), WRITTEN),
        (10_000, put("new", SetMode::Nx, Some(MINUTE_MS), false), refused(Some("old"))),
        (10_000, put("new", SetMode::Nx, Some(MINUTE_MS), true), refused(Some("old"))),
        (10_000, get("k"), value("old", 50_000)),
    ])
    .await;
}

#[tokio::test]
async fn deleting_and_expiring() {
    let delete = || Command::delete(digest("k"));
    let expire = |ttl_ms| Command::expire(digest("k"), ttl_ms);
    let deleted = |deleted| CommandResult::Delete { deleted };
    let updated = |updated| CommandResult::Expire { updated };
    check(&[
        (0, delete(), deleted(false)),
        (0, expire(1000), updated(false)),
        (0, set("v"), WRITTEN),
        (0, delete(), deleted(true)),
        (0, get("k"), ABSENT),
        (0, delete(), deleted(false)),
        (0, set("v"), WRITTEN),
        (30_000, expire(90_000), updated(true)),
        (30_000, get("k"), value("v", 90_000)),
        (30_000, expire(1000), updated(true)),
        (30_999, get("k"), value("v", 1)),
        (31_000, expire(1000), updated(false)),
        (31_000, delete(), deleted(false)),
        (31_000, get("k"), ABSENT),
    ])
    .await;
}

#[tokio::test]
async fn only_a_new_counter_takes_the_ttl() {
    check(&[
        (0, increment("k"), counted(1, MINUTE_MS)),
        (30_000, increment("k"), counted(2, 30_000)),
        (59_000, Command::increment(digest("k"), 40, 120_000), counted(42, 1000)),
        (59_999, Command::increment(digest("k"), -43, 1000), counted(-1, 1)),
        (59_999, get("k"), value("-1", 1)),
        (60_000, Command::increment(digest("k"), 5, 1000), counted(5, 1000)),
    ])
    .await;
}

#[tokio::test]
async fn a_counter_is_a_record() {
    let by_zero = Command::increment(digest("k"), 0, 1000);
    check(&[
        (0, set("41"), WRITTEN),
        (10_000, increment("k"), counted(42, 50_000)),
        (10_000, by_zero, counted(42, 50_000)),
        (10_000, get("k"), value("42", 50_000)),
        (10_000, put("7", SetMode::Xx, None, true), WRITTEN),
        (20_000, increment("k"), counted(8, 40_000)),
    ])
    .await;
}

#[tokio::test]
async fn other_keys_and_other_partitions_are_other_records() {
    let bench = Bench::new();
    bench.command(set("v")).await;
    assert_eq!(bench.command(get("other")).await, ABSENT);
    assert_eq!(bench.command_in("bob", get("k")).await, ABSENT);
    bench.command_in("bob", set("his")).await;
    assert_eq!(bench.command(get("k")).await, value("v", MINUTE_MS));
}

/// The value 60 s after a counter was made to live for 60 s: the next increment starts anew.
async fn counter_at_its_expiry(bench: &Bench) -> CommandResult {
    bench.command(increment("k")).await;
    bench.advance(MINUTE_MS);
    bench.command(increment("k")).await
}

#[tokio::test]
async fn the_instant_of_expiry_belongs_to_the_next_life() {
    assert_eq!(counter_at_its_expiry(&Bench::new()).await, counted(1, MINUTE_MS));
    // A store whose rows live 1 ms too long would be noticed.
    assert_eq!(counter_at_its_expiry(&Bench::rigged(Rig::ExpiresLate)).await, counted(2, 1));
}

#[tokio::test]
async fn fifty_claims_have_one_winner_whose_value_the_losers_see() {
    let bench = Bench::with(Rig::Sound, 3);
    let claim = |number: u32| Command::claim(digest("k"), format!("caller {number}"), MINUTE_MS);
    let requests = (0..50).map(|number| bench.fresh().step(digest("alice"), [claim(number)]));
    let results: Vec<CommandResult> = bench
        .all_at_once(requests.collect::<Vec<_>>())
        .await
        .into_iter()
        .map(|response| response.expect("the store is well").steps[0].results[0].clone())
        .collect();
    assert_eq!(results.iter().filter(|result| **result == WRITTEN).count(), 1);
    let CommandResult::Get { value: Some(winner), .. } = bench.command(get("k")).await else {
        unreachable!("the winner's record is there");
    };
    let losers = results.iter().filter(|result| **result == refused(Some(&winner))).count();
    assert_eq!(losers, 49);
}
