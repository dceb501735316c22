use tidegate_protocol::{Command, Request};

use super::*;

const HOUR_MS: u64 = 3_600_000;

pub(super) fn fence(bench: &Bench) -> ReplayFence {
    let fence = ReplayFence::new(&bench.selection(), "refresh").unwrap();
    fence.with_clock(bench.clock()).with_observer(bench.observer())
}

fn token(id: &str) -> Token<'_> {
    Token { id, ends_at_ms: START_MS + HOUR_MS, principal: "alice" }
}

const REPLAYED: Outcome = Outcome::Refused(RefusalCode::TokenReplayed);

#[tokio::test]
async fn grace_and_after_it() {
    let bench = Bench::new();
    let (winner, loser) = (fence(&bench), fence(&bench));
    assert_eq!(winner.claim(token("t"), caller(1)).await, Verdict::Allowed(TokenUse::First));
    assert_eq!(bench.told(), (Outcome::Allowed, DecidedBy::Store, false));
    let again = Verdict::Allowed(TokenUse::Grace { first_use_ms: START_MS });
    for at_ms in [0, 1, 10_000] {
        bench.at(at_ms);
        assert_eq!(loser.claim(token("t"), caller(2)).await, again, "at {at_ms}");
        assert_eq!(bench.told(), (Outcome::Grace, DecidedBy::Store, false), "nothing is remembered");
    }
    // Outside of it: proven once, then known until the token ends.
    let table = [
        (10_001, REPLAYED, DecidedBy::Store),
        (10_002, REPLAYED, DecidedBy::Memory),
        (HOUR_MS - 1, REPLAYED, DecidedBy::Memory),
        (HOUR_MS, Outcome::Refused(RefusalCode::TokenExpired), DecidedBy::Instance),
    ];
    for (at_ms, outcome, by) in table {
        bench.at(at_ms);
        assert!(!loser.claim(token("t"), caller(2)).await.is_allowed());
        assert_eq!(bench.told(), (outcome, by, false), "at {at_ms}");
    }
}

#[tokio::test]
async fn the_fence_outlives_its_token() {
    let bench = Bench::new();
    let ends_soon = Token { ends_at_ms: START_MS + 1, ..token("soon") };
    assert!(fence(&bench).claim(ends_soon, caller(1)).await.is_allowed());
    bench.at(60_000);
    // A lenient verifier that still takes it says that it ends later.
    let again = Token { ends_at_ms: START_MS + 60_001, ..token("soon") };
    assert!(!fence(&bench).with_grace(Duration::ZERO).claim(again, caller(1)).await.is_allowed());
    assert_eq!(bench.told.0.lock().unwrap().last(), Some(&(REPLAYED, DecidedBy::Store, false)));
}

#[tokio::test]
async fn a_token_that_outlives_every_fence_is_not_let_through() {
    const DAYS_120_MS: u64 = 10_368_000_000;
    let bench = Bench::new();
    let fence = fence(&bench);
    for (life_ms, allowed) in [(DAYS_120_MS, true), (DAYS_120_MS + 1, false), (u64::MAX - START_MS, false)] {
        let token = Token { ends_at_ms: START_MS + life_ms, ..token("long") };
        assert_eq!(fence.claim(token, caller(1)).await.is_allowed(), allowed);
    }
}

#[tokio::test]
async fn each_instance_limits_principals_and_sources_before_the_store() {
    let bench = Bench::new();
    let fence = fence(&bench);
    let claim = async |number: u32, principal: &str, from: u32| {
        let id = format!("t{number}");
        let ends_at_ms = START_MS + HOUR_MS;
        let verdict = fence.claim(Token { id: &id, ends_at_ms, principal }, caller(from)).await;
        verdict.into_result().map_err(|refusal| (refusal.code.status().as_u16(), refusal.retry_after_ms))
    };
    let full = Err((429, Some(60_000)));
    for number in 0..20 {
        assert_eq!(claim(number, "alice", 1).await, Ok(TokenUse::First));
    }
    assert_eq!(claim(20, "alice", 2).await, full, "the principal, wherever it comes from");
    // What was refused counted for nobody: forty more fit from the first source.
    for number in 100..140 {
        assert_eq!(claim(number, &format!("p{number}"), 1).await, Ok(TokenUse::First), "{number}");
    }
    assert_eq!(claim(140, "another", 1).await, full, "the source, whoever it is");
    assert_eq!(claim(141, "another", 2).await, Ok(TokenUse::First));
    // Each fence is an instance.
    assert!(self::fence(&bench).claim(token("t22"), caller(1)).await.is_allowed());
    bench.at(60_000);
    assert_eq!(claim(23, "alice", 1).await, Ok(TokenUse::First));
}

#[tokio::test]
async fn a_replay_from_memory_spends_nothing_of_its_owner() {
    let bench = Bench::new();
    let fence = fence(&bench).with_grace(Duration::ZERO);
    assert!(fence.claim(token("stolen"), caller(1)).await.is_allowed());
    bench.at(1);
    for _ in 0..1000 {
        assert!(!fence.claim(token("stolen"), caller(6)).await.is_allowed());
    }
    assert!(fence.claim(token("fresh"), caller(1)).await.is_allowed(), "the owner is not locked out");
}

#[tokio::test]
async fn a_record_that_holds_no_time_is_no_answer() {
    let bench = Bench::new();
    let (fence, client) = (fence(&bench), bench.client());
    for (number, text) in ["", "abc", "12x", "-1", "1e3", "{}"].into_iter().enumerate() {
        let id = format!("t{number}");
        let partition = fence.core.partition(&client, &[&id]);
        let set = Command::set(client.digest(Purpose::Key, "use"), text, HOUR_MS);
        let broken = Request::new(operation_id().unwrap(), Family::Replay.name()).step(partition, [set]);
        client.run(&broken).await.unwrap();
        let refusal = fence.claim(token(&id), caller(1)).await.into_result().unwrap_err();
        assert_eq!(refusal, Refusal::unavailable(), "neither used nor unused: {text:?}");
        bench.told();
    }
}
