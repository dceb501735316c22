//! The cut-over from a legacy store, step by step.

use std::{collections::BTreeSet, io};

use super::{replay::fence, *};

const LATER_MS: u64 = 90 * 86_400_000;
/// `START_MS` and a day.
const DEADLINE: &str = "2025-12-01T00:00:00Z";
const DAY_MS: u64 = 86_400_000;

fn token(id: &str) -> Token<'_> {
    Token { id, ends_at_ms: START_MS + LATER_MS, principal: "alice" }
}

/// The legacy store, frozen: what was used before.
fn frozen(fence: ReplayFence) -> ReplayFence {
    let used = BTreeSet::from(["before".to_owned()]);
    fence.with_legacy_reader(move |id| {
        let is_used = used.contains(&id);
        async move { Ok(is_used) }
    })
}

#[tokio::test]
async fn read_through_until_the_deadline() {
    let bench = Bench::new();
    let fence = || frozen(fence(&bench)).with_legacy_until(DEADLINE);
    let replayed = Outcome::Refused(RefusalCode::TokenReplayed);
    let table = [
        ("before", 0, replayed, DecidedBy::Legacy),
        ("fresh", 0, Outcome::Allowed, DecidedBy::Store),
        ("before", DAY_MS - 1, replayed, DecidedBy::Legacy),
        ("fresh", DAY_MS - 1, replayed, DecidedBy::Store),
        // From here on only the guard store counts: what the legacy store knew has ended, if the deadline was
        // right.
        ("before", DAY_MS, Outcome::Allowed, DecidedBy::Store),
    ];
    for (id, at_ms, outcome, by) in table {
        bench.at(at_ms);
        // An instance of its own each time, which remembers nothing.
        let _ = fence().claim(token(id), caller(1)).await;
        assert_eq!(bench.told(), (outcome, by, false), "{id} at {at_ms}");
    }
}

/// What the read-through is for: without it, and without a new generation of tokens, a used one works again.
#[tokio::test]
async fn control_without_reading_through() {
    let bench = Bench::new();
    assert!(fence(&bench).claim(token("before"), caller(1)).await.is_allowed());
}

#[tokio::test]
async fn a_token_of_the_legacy_store_is_remembered_too() {
    let bench = Bench::new();
    let fence = frozen(fence(&bench)).with_legacy_until(DEADLINE);
    for by in [DecidedBy::Legacy, DecidedBy::Memory] {
        assert!(!fence.claim(token("before"), caller(1)).await.is_allowed());
        assert_eq!(bench.told().1, by);
    }
}

#[tokio::test(start_paused = true)]
async fn what_shuts_the_fence() {
    let bench = Bench::new();
    let read = |outcome: fn() -> Result<bool, LegacyError>| {
        fence(&bench).with_legacy_until(DEADLINE).with_legacy_reader(move |_| async move { outcome() })
    };
    let fails = || Err(io::Error::other("connection refused: refresh:used:before").into());
    let hangs = fence(&bench).with_legacy_until(DEADLINE).with_legacy_reader(|_| std::future::pending());
    let table = [
        ("an error of the legacy store", read(fails), false),
        ("no answer of it", hangs, false),
        ("a date is no deadline", frozen(fence(&bench)).with_legacy_until("2025-12-01"), false),
        ("nor is this", frozen(fence(&bench)).with_legacy_until("soon"), false),
        ("a deadline ahead, and nothing to read", fence(&bench).with_legacy_until(DEADLINE), false),
        ("a deadline that has passed", fence(&bench).with_legacy_until("2025-11-30T00:00:00Z"), true),
        ("no deadline, and something to read", read_never(&bench), true),
    ];
    for (what, fence, allowed) in table {
        let id = what.replace(' ', "-");
        let verdict = fence.claim(token(&id), caller(1)).await;
        assert_eq!(verdict.is_allowed(), allowed, "{what}");
        if let Verdict::Refused(refusal) = verdict {
            assert_eq!(refusal, Refusal::unavailable(), "{what}");
        }
        bench.told();
    }
}

/// Without a deadline the legacy store is not asked.
fn read_never(bench: &Bench) -> ReplayFence {
    fence(bench).with_legacy_reader(|_| async { panic!("asked without a deadline") })
}

#[tokio::test]
async fn the_environment_names_the_deadline() {
    let bench = Bench::new();
    let of = |until: &str| {
        let until = until.to_owned();
        let selection = Selection::from_variables(move |name| match name {
            "TIDEGATE_CLIENT_REPLAY_LEGACY_UNTIL" => Some(until.clone()),
            _ => None,
        });
        selection.replay_legacy_until().map(str::to_owned)
    };
    assert_eq!((of(DEADLINE).as_deref(), of("")), (Some(DEADLINE), None));
    // Rolled back: an unassigned family never reads the guard store, whatever the deadline says.
    let rolled_back = ReplayFence::new(&unassigned(), "refresh").unwrap().with_legacy_until("soon");
    let rolled_back =
        rolled_back.with_observer(bench.observer()).with_legacy(|token: LegacyToken| async move {
            assert_eq!((token.scope.as_str(), token.principal.as_str()), ("refresh", "alice"));
            Verdict::Allowed(TokenUse::First)
        });
    assert!(rolled_back.claim(token("after"), caller(1)).await.is_allowed());
    assert_eq!(bench.told(), (Outcome::Allowed, DecidedBy::Legacy, false));
}
