//! What operators do: stop, resume, reset, forget, and what is left to read of it.

use tidegate_core::admission::{AUDIT_ROWS_MAX, Axis, DAY_MS, FamilyRules};
use tidegate_guard::{GuardOptions, Refusal};
use tidegate_protocol::{
    Command, Request,
    control::{Action, FairnessReset, Forget, Phase, Resume, Stop},
    request::{Budget, Window},
    response::StopReason,
};
use tokio::task::JoinSet;

use crate::harness::{Bench, START_MS, digest, family, get, increment};

const MINUTE_MS: u64 = 60_000;
const FROM: &str = "192.0.2.9";
const FENCED: Refusal = Refusal::Stopped { reason: StopReason::OperatorStop, retry_after_ms: 30_000 };

/// Two families of a hundred commands, five of them for each identity.
fn bench() -> Bench {
    let rules = FamilyRules::of_budget(100);
    Bench::guarding(GuardOptions::of(["password", "proxy"].map(|name| (family(name), rules.clone()))))
}

fn from_source(bench: &Bench, source: &str) -> Request {
    let mut request = bench.fresh().step(digest("alice"), [increment("k")]);
    request.fairness.source = Some(digest(source));
    request
}

fn of(families: &[&str]) -> Resume {
    Resume { families: Some(families.iter().map(|name| family(name)).collect()) }
}

fn because(reason: &str) -> Stop {
    Stop { reason: Some(reason.to_owned()) }
}

#[tokio::test]
async fn a_stop_stands_until_a_resume_and_both_say_how_it_stands() {
    let bench = bench();
    bench.at(DAY_MS / 4);
    let operator = bench.guard.operator();
    let fresh = operator.state().await.unwrap();
    assert_eq!((fresh.now_ms, fresh.next_reset_ms), (START_MS + DAY_MS / 4, DAY_MS / 4 * 3));
    assert_eq!((fresh.fence.stopped, fresh.fence.since_ms), (false, None));
    assert_eq!(fresh.families.keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["password", "proxy"]);

    let state = operator.stop(because("drill"), FROM).await.unwrap();
    assert_eq!((state.fence.stopped, state.fence.reason.as_deref()), (true, Some("drill")));
    assert_eq!(state.fence.since_ms, Some(bench.now_ms()));
    assert_eq!(bench.run(from_source(&bench, "it")).await, Err(FENCED));
    assert_eq!(operator.state().await.unwrap(), state);
    assert_eq!(bench.guard.probe().await, Ok(()), "the store itself is well");
    bench.at(200 * DAY_MS);
    assert_eq!(bench.run(from_source(&bench, "it")).await, Err(FENCED), "for as long as it takes");

    let state = operator.resume(Resume::default(), FROM).await.unwrap();
    assert_eq!((state.fence.stopped, state.fence.reason, state.fence.since_ms), (false, None, None));
    bench.respond(from_source(&bench, "it")).await;
}

#[tokio::test]
async fn once_a_stop_has_answered_nothing_executes() {
    for round in 0..20 {
        let bench = bench();
        let mut running = JoinSet::new();
        for number in 0..64 {
            let (guard, request) = (bench.guard.clone(), from_source(&bench, &format!("s{number}")));
            running.spawn(async move { guard.run(request).await });
        }
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        bench.guard.operator().stop(Stop::default(), FROM).await.unwrap();
        let admitted = bench.guard.operator().state().await.unwrap().families[&family("proxy")].used;
        let outcomes = running.join_all().await;
        let ok = outcomes.iter().filter(|outcome| outcome.is_ok()).count() as u64;
        assert_eq!(ok, admitted, "round {round}: who was admitted, was so before the stop answered");
        assert!(outcomes.into_iter().filter_map(Result::err).all(|refusal| refusal == FENCED));
        bench.guard.operator().resume(Resume::default(), FROM).await.unwrap();
        let counter = bench.counter("k").await.unwrap_or_default();
        assert_eq!(counter.cast_unsigned(), admitted, "round {round}");
    }
}

#[tokio::test]
async fn a_resume_clears_usage_and_keeps_quotas() {
    let bench = bench();
    let operator = bench.guard.operator();
    for _ in 0..5 {
        bench.respond(from_source(&bench, "it")).await;
    }
    for number in 0..95 {
        bench.respond(from_source(&bench, &format!("s{number}"))).await;
    }
    let other = Request { family: family("password"), ..from_source(&bench, "it") };
    bench.respond(other).await;
    let state = operator.state().await.unwrap();
    assert_eq!(state.families[&family("proxy")].state, Phase::Stopped);

    let state = operator.resume(of(&["proxy"]), FROM).await.unwrap();
    let proxy = state.families[&family("proxy")];
    assert_eq!((proxy.used, proxy.state), (0, Phase::Open));
    assert!(proxy.warned, "the warning of the day was given");
    assert_eq!(state.families[&family("password")].used, 1, "it was not named");
    let refused = bench.run(from_source(&bench, "it")).await;
    assert!(matches!(refused, Err(Refusal::Limited { axis: Axis::Source, .. })));
    bench.respond(from_source(&bench, "fresh")).await;

    let refused = operator.resume(of(&["proxy", "nobody"]), FROM).await;
    assert!(matches!(refused, Err(Refusal::BadRequest(_))), "{refused:?}");
}

#[tokio::test]
async fn a_resume_clears_the_families_that_it_names() {
    // What is named, whether proxy and password begin anew, and how many entries the audit has.
    type Row = (Option<&'static [&'static str]>, [bool; 2], usize);
    let table: [Row; 5] = [
        (None, [true, true], 1),
        (Some(&[]), [false, false], 1),
        (Some(&["proxy"]), [true, false], 1),
        (Some(&["proxy", "proxy"]), [true, false], 1),
        (Some(&["password", "proxy", "password"]), [true, true], 2),
    ];
    for (named, anew, entries) in table {
        let bench = bench();
        let operator = bench.guard.operator();
        bench.respond(from_source(&bench, "it")).await;
        bench.respond(Request { family: family("password"), ..from_source(&bench, "it") }).await;
        operator.stop(Stop::default(), FROM).await.unwrap();
        let resume = named.map_or_else(Resume::default, of);
        let state = operator.resume(resume, FROM).await.unwrap();
        assert!(!state.fence.stopped, "{named:?}");
        let found = ["proxy", "password"].map(|name| state.families[&family(name)].used == 0);
        assert_eq!(found, anew, "{named:?}");
        let audit = operator.audit(10).await.unwrap().entries;
        assert_eq!(audit.len(), 1 + entries, "{named:?}");
        assert_eq!(audit[0].reason.is_some(), named == Some(&[]), "an audit of no family says so");
    }
}

#[tokio::test]
async fn a_stop_while_stopped_changes_the_reason_at_most() {
    let bench = bench();
    let operator = bench.guard.operator();
    let since_ms = bench.now_ms();
    let table = [(Some("first"), "first"), (None, "first"), (Some("second"), "second"), (None, "second")];
    for (minute, (reason, stands)) in (0..).zip(table) {
        bench.at(minute * MINUTE_MS);
        let stop = Stop { reason: reason.map(str::to_owned) };
        let fence = operator.stop(stop, FROM).await.unwrap().fence;
        assert_eq!((fence.since_ms, fence.reason.as_deref()), (Some(since_ms), Some(stands)), "{reason:?}");
        let newest = operator.audit(1).await.unwrap().entries.remove(0);
        assert_eq!((newest.action, newest.reason.as_deref()), (Action::Stop, reason));
    }
    operator.resume(Resume::default(), FROM).await.unwrap();
    let fence = operator.stop(Stop::default(), FROM).await.unwrap().fence;
    assert_eq!((fence.since_ms, fence.reason), (Some(bench.now_ms()), None), "another stop");
}

#[tokio::test]
async fn a_fairness_reset_lets_in_whom_it_names() {
    let table = [
        (None, None, [true, true]),
        (Some(Axis::Source), None, [true, true]),
        (Some(Axis::Principal), None, [false, false]),
        (Some(Axis::Source), Some("it"), [true, false]),
        (None, Some("it"), [true, false]),
        (Some(Axis::Network24), Some("it"), [false, false]),
    ];
    for (axis, identity, admitted) in table {
        let bench = bench();
        for source in ["it", "other"] {
            for _ in 0..5 {
                bench.respond(from_source(&bench, source)).await;
            }
            assert!(bench.run(from_source(&bench, source)).await.is_err(), "now it is remembered");
        }
        let reset = FairnessReset { family: family("proxy"), axis, identity: identity.map(digest) };
        bench.guard.operator().reset_fairness(reset, FROM).await.unwrap();
        let mut found = [false; 2];
        for (found, source) in found.iter_mut().zip(["it", "other"]) {
            *found = bench.run(from_source(&bench, source)).await.is_ok();
        }
        assert_eq!(found, admitted, "{axis:?} {identity:?}");
        let entries = bench.guard.operator().audit(10).await.unwrap().entries;
        assert_eq!((entries.len(), entries[0].action), (1, Action::FairnessReset));
        assert_eq!((entries[0].axis, entries[0].identity), (axis, identity.map(digest)));
    }
}

#[tokio::test]
async fn a_forgotten_partition_or_key_is_as_if_it_had_never_been() {
    let once = |key: &str| Command::hit([Window::sliding(digest(key), 1, MINUTE_MS)]);
    let attempt = |key: &str| Command::reserve([Budget::new(digest(key), 1, MINUTE_MS)]);
    for (key, freed) in [(None, true), (Some("a"), false)] {
        let bench = bench();
        for name in ["a", "b"] {
            bench.step([once(name), attempt(name), increment(name)]).await;
            bench.step_in("bob", [once(name)]).await;
        }
        let forget = Forget { partition: digest("alice"), key: key.map(digest) };
        let forgotten = bench.guard.operator().forget(forget, FROM).await.unwrap().forgotten;
        // A window, a budget and a counter for each key; two receipts and two operation records.
        assert_eq!(forgotten, if key.is_none() { 10 } else { 3 });
        assert!(!bench.command(once("a")).await.is_denial());
        assert!(!bench.command(attempt("a")).await.is_denial());
        assert_eq!(bench.command(once("b")).await.is_denial(), !freed);
        assert_eq!(bench.command(get("b")).await != crate::harness::ABSENT, !freed);
        assert!(bench.command_in("bob", once("a")).await.is_denial(), "another partition");
        let entry = bench.guard.operator().audit(1).await.unwrap().entries.remove(0);
        assert_eq!(
            (entry.action, entry.identity, entry.key),
            (Action::Forget, Some(digest("alice")), key.map(digest))
        );
        assert_eq!(entry.from, FROM);
    }
}

#[tokio::test]
async fn the_audit_is_in_order_bounded_and_ninety_days_long() {
    let bench = bench();
    let operator = bench.guard.operator();
    for number in 0..300_u64 {
        bench.at(number * MINUTE_MS);
        operator.stop(because(&format!("number {number}")), FROM).await.unwrap();
    }
    let entries = operator.audit(250).await.unwrap().entries;
    let reasons: Vec<String> = entries.into_iter().filter_map(|entry| entry.reason).collect();
    assert_eq!(reasons, (50..300).rev().map(|number| format!("number {number}")).collect::<Vec<_>>());
    operator.resume(of(&["proxy", "password"]), FROM).await.unwrap();
    let entries = operator.audit(2).await.unwrap().entries;
    assert!(entries.iter().all(|entry| entry.action == Action::Resume && entry.family.is_some()));
    // The first hundred are older than ninety days.
    bench.at(99 * MINUTE_MS + 90 * DAY_MS);
    assert_eq!(operator.audit(1_000).await.unwrap().entries.len(), 202);
}

#[tokio::test]
async fn the_audit_never_takes_more_than_its_rows() {
    let bench = bench();
    let operator = bench.guard.operator();
    operator.stop(because("the first"), FROM).await.unwrap();
    for _ in 0..AUDIT_ROWS_MAX {
        operator.stop(because("more"), FROM).await.unwrap();
    }
    // With the fence and the head.
    assert_eq!(bench.rows().await, AUDIT_ROWS_MAX + 2);
}

#[tokio::test]
async fn operators_at_once_each_leave_an_entry() {
    let bench = bench();
    let mut running = JoinSet::new();
    for number in 0..10 {
        let guard = bench.guard.clone();
        running
            .spawn(async move { guard.operator().stop(because(&format!("{number}")), FROM).await.map(drop) });
    }
    let outcomes = running.join_all().await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let mut reasons: Vec<String> = bench
        .guard
        .operator()
        .audit(100)
        .await
        .unwrap()
        .entries
        .into_iter()
        .filter_map(|entry| entry.reason)
        .collect();
    reasons.sort();
    assert_eq!(reasons, (0..10).map(|number| number.to_string()).collect::<Vec<_>>());
}
