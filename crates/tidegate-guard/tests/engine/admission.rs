//! Who is admitted: budgets, the reserve, quotas of every axis, and what a refusal costs.

use std::collections::BTreeMap;

use tidegate_core::admission::{Axis, DAY_MS, FamilyRules};
use tidegate_guard::{GuardOptions, Refusal};
use tidegate_protocol::{
    Command, CommandResult, Request,
    control::{FamilyState, Phase},
    request::{Budget, Network, Window},
    response::{Status, StopReason},
};

use crate::harness::{Bench, digest, family, increment};

const MINUTE_MS: u64 = 60_000;

fn guarding(rules: FamilyRules) -> Bench {
    Bench::guarding(GuardOptions::of([(family("proxy"), rules)]))
}

/// A budget that one identity may spend alone.
fn unshared(budget: u64) -> FamilyRules {
    FamilyRules { shares_bp: [10_000; 5], ..FamilyRules::of_budget(budget) }
}

fn commands(bench: &Bench, count: usize) -> Request {
    let commands = vec![increment("k"); count];
    commands.chunks(8).fold(bench.fresh(), |request, step| request.step(digest("alice"), step.to_vec()))
}

fn from_source(bench: &Bench, source: &str) -> Request {
    let mut request = commands(bench, 1);
    request.fairness.source = Some(digest(source));
    request
}

async fn state(bench: &Bench) -> FamilyState {
    let state = bench.guard.operator().state().await.expect("the store is well");
    state.families[&family("proxy")]
}

async fn used(bench: &Bench) -> u64 {
    state(bench).await.used
}

fn stopped(reason: StopReason, retry_after_ms: u64) -> Refusal {
    Refusal::Stopped { reason, retry_after_ms }
}

fn exhausted() -> Refusal {
    stopped(StopReason::BudgetExhausted, DAY_MS)
}

const INSUFFICIENT: Refusal =
    Refusal::Stopped { reason: StopReason::BudgetInsufficient, retry_after_ms: 30_000 };

/// How often each outcome came.
fn tally(outcomes: &[Result<tidegate_protocol::Response, Refusal>]) -> (usize, BTreeMap<String, usize>) {
    let mut refusals = BTreeMap::new();
    for refusal in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        *refusals.entry(refusal.to_string()).or_default() += 1;
    }
    (outcomes.iter().filter(|outcome| outcome.is_ok()).count(), refusals)
}

#[tokio::test]
async fn many_callers_at_once_spend_the_budget_to_the_last_command() {
    // (budget, commands of a request, admitted of 320)
    for (budget, size, admitted) in [(100, 1, 100), (100, 3, 33), (320, 1, 320), (31, 32, 0), (32, 32, 1)] {
        let bench = guarding(unshared(budget));
        let requests: Vec<_> = (0..320).map(|_| commands(&bench, size)).collect();
        let (ok, refusals) = tally(&bench.all_at_once(requests).await);
        assert_eq!(ok, admitted, "requests of {size} under {budget}: {refusals:?}");
        assert_eq!(used(&bench).await, (admitted * size) as u64);
        let whole = (admitted * size) as u64 == budget;
        assert_eq!(state(&bench).await.state, if whole { Phase::Stopped } else { Phase::Open });
        let refused = bench.run(commands(&bench, size)).await.unwrap_err();
        assert_eq!(refused, if whole { exhausted() } else { INSUFFICIENT });
    }
}

#[tokio::test]
async fn at_the_edge_of_the_reserve_strangers_stop_and_known_good_ones_go_on_to_the_end() {
    let bench = guarding(FamilyRules { reserve_bp: 2_000, ..unshared(100) });
    let mut vouched = from_source(&bench, "friend");
    vouched.good = true;
    bench.respond(vouched).await;
    let strangers: Vec<_> = (0..200).map(|number| from_source(&bench, &format!("s{number}"))).collect();
    let (ok, refusals) = tally(&bench.all_at_once(strangers).await);
    assert_eq!((ok, refusals.into_values().sum::<usize>()), (79, 121));
    let seen = state(&bench).await;
    assert_eq!((seen.open_remaining, seen.reserve_remaining, seen.state), (0, 20, Phase::Reserve));
    assert!(seen.warned);
    assert_eq!(bench.run(from_source(&bench, "stranger")).await, Err(exhausted()));
    assert_eq!(bench.run(commands(&bench, 1)).await, Err(exhausted()), "nobody in particular");
    let friends: Vec<_> = (0..200).map(|_| from_source(&bench, "friend")).collect();
    let (ok, _) = tally(&bench.all_at_once(friends).await);
    assert_eq!(ok, 20);
    assert_eq!(state(&bench).await.state, Phase::Stopped);
    assert_eq!(bench.run(from_source(&bench, "friend")).await, Err(exhausted()));
}

#[tokio::test]
async fn who_is_known_to_be_good() {
    let attempt = |bench: &Bench| {
        bench.fresh().step(digest("bob"), [Command::reserve([Budget::new(digest("k"), 9, MINUTE_MS)])])
    };
    // After which request a source (or principal) is good, and whether it still is so many days later.
    for (how, days, good) in [
        ("a visit", 0, false),
        ("a vouch", 0, true),
        ("a vouch", 29, true),
        ("a vouch", 30, false),
        ("a refund", 1, true),
        ("a refund that came too late", 0, false),
        ("a principal's vouch", 3, true),
    ] {
        let bench = guarding(FamilyRules { reserve_bp: 5_000, ..unshared(20) });
        let mut request = from_source(&bench, "it");
        match how {
            "a visit" => drop(bench.respond(request).await),
            "a vouch" => {
                request.good = true;
                bench.respond(request).await;
            }
            "a principal's vouch" => {
                request.good = true;
                request.fairness.source = None;
                request.fairness.principal = Some(digest("it"));
                bench.respond(request).await;
            }
            _ => {
                let reserved = bench.respond(attempt(&bench)).await;
                let CommandResult::Reserved { receipt: Some(receipt), .. } = reserved.steps[0].results[0]
                else {
                    unreachable!("there is room");
                };
                if how != "a refund" {
                    bench.advance(MINUTE_MS);
                }
                let mut refund = bench.fresh().step(digest("bob"), [Command::refund(receipt)]);
                refund.fairness.source = Some(digest("it"));
                bench.respond(refund).await;
            }
        }
        bench.advance(days * DAY_MS);
        let open = state(&bench).await.open_remaining;
        for _ in 0..open {
            bench.respond(commands(&bench, 1)).await;
        }
        let mut request = from_source(&bench, "it");
        request.fairness.principal = Some(digest("it"));
        assert_eq!(bench.run(request).await.is_ok(), good, "{how}, {days} days ago");
    }
}

#[tokio::test]
async fn every_axis_has_its_share_and_a_refusal_spends_nothing() {
    let shares_bp = [500, 1_500, 1_000, 2_500, 700];
    let bench = guarding(FamilyRules { shares_bp, ..FamilyRules::of_budget(1_000) });
    let carrying = |axis: Axis| {
        let mut request = commands(&bench, 1);
        let network = |prefix| vec![Network { prefix, digest: digest("it") }];
        match axis {
            Axis::Source => request.fairness.source = Some(digest("it")),
            Axis::Network24 => request.fairness.networks = network(24),
            Axis::Network56 => request.fairness.networks = network(56),
            Axis::Network48 => request.fairness.networks = network(48),
            Axis::Principal => request.fairness.principal = Some(digest("it")),
        }
        request
    };
    let mut spent = 0;
    for (axis, allowance) in Axis::ALL.into_iter().zip([50, 150, 100, 250, 70]) {
        let requests: Vec<_> = (0..allowance + 10).map(|_| carrying(axis)).collect();
        let (ok, refusals) = tally(&bench.all_at_once(requests).await);
        assert_eq!((ok, refusals.len()), (allowance, 1), "{axis:?}: {refusals:?}");
        spent += allowance as u64;
        assert_eq!(used(&bench).await, spent, "{axis:?}");
        let (rows, writes) = (bench.rows().await, bench.writes());
        let refused = bench.run(carrying(axis)).await;
        assert_eq!(refused, Err(Refusal::Limited { axis, retry_after_ms: DAY_MS }));
        assert_eq!((bench.rows().await, bench.writes(), used(&bench).await), (rows, writes, spent));
    }
    // One spent identity refuses the whole request, and the others are not charged.
    let mut both = carrying(Axis::Source);
    both.fairness.source = Some(digest("fresh"));
    both.fairness.principal = Some(digest("it"));
    let rows = bench.rows().await;
    assert!(matches!(bench.run(both).await, Err(Refusal::Limited { axis: Axis::Principal, .. })));
    assert_eq!((bench.rows().await, used(&bench).await), (rows, spent));
}

/// Twenty sources and twenty principals try to spend a budget of 1 000 alone; what is left of it.
async fn left_by_one(source_bp: u64, principal_bp: u64, principal: bool) -> u64 {
    let mut rules = FamilyRules::of_budget(1_000);
    rules.shares_bp[Axis::Source as usize] = source_bp;
    rules.shares_bp[Axis::Principal as usize] = principal_bp;
    let bench = guarding(rules);
    let requests = (0..1_000).map(|number| {
        let mut request = commands(&bench, 1);
        // One that changes its address all the time, or one that changes its name all the time.
        let (source, name) = if principal {
            (format!("s{number}"), "it".to_owned())
        } else {
            ("it".into(), format!("p{number}"))
        };
        request.fairness.source = Some(digest(&source));
        request.fairness.principal = Some(digest(&name));
        request
    });
    let requests: Vec<_> = requests.collect();
    bench.all_at_once(requests).await;
    1_000 - used(&bench).await
}

#[tokio::test]
async fn one_source_or_one_principal_leaves_most_of_the_budget_to_others() {
    assert_eq!(left_by_one(500, 500, false).await, 950);
    assert_eq!(left_by_one(500, 500, true).await, 950);
    // With the fairness of its axis off, each of them drains the budget.
    assert_eq!(left_by_one(10_000, 500, false).await, 0);
    assert_eq!(left_by_one(500, 10_000, true).await, 0);
}

/// How many batches the store works off for a hundred requests of an identity that has spent its share.
async fn batches_of_refusals(refusals_max: usize) -> u64 {
    let families = [(family("proxy"), FamilyRules::of_budget(100))];
    let bench = Bench::guarding(GuardOptions { refusals_max, ..GuardOptions::of(families) });
    for _ in 0..5 {
        bench.respond(from_source(&bench, "it")).await;
    }
    let loads = bench.loads();
    for _ in 0..100 {
        let refused = bench.run(from_source(&bench, "it")).await;
        assert_eq!(refused, Err(Refusal::Limited { axis: Axis::Source, retry_after_ms: DAY_MS }));
    }
    bench.loads() - loads
}

#[tokio::test]
async fn a_refused_identity_that_goes_on_costs_the_store_nothing() {
    assert_eq!(batches_of_refusals(10_000).await, 1);
    assert_eq!(batches_of_refusals(0).await, 100, "without the memory each of them is looked up");
}

#[tokio::test]
async fn a_refusal_is_remembered_for_what_it_refused_and_until_the_day_ends() {
    let bench = guarding(FamilyRules::of_budget(100));
    let asking = |count: usize| {
        let mut request = commands(&bench, count);
        request.fairness.source = Some(digest("it"));
        request
    };
    bench.respond(asking(3)).await;
    bench.advance(DAY_MS / 2);
    let limited = Err(Refusal::Limited { axis: Axis::Source, retry_after_ms: DAY_MS / 2 });
    assert_eq!(bench.run(asking(3)).await, limited);
    assert_eq!(bench.run(asking(3)).await, limited);
    bench.respond(asking(2)).await;
    assert!(bench.run(asking(1)).await.is_err());
    bench.at(DAY_MS);
    bench.respond(asking(5)).await;
}

#[tokio::test]
async fn what_an_attempt_costs() {
    let bench = guarding(unshared(1_000));
    let replayed = commands(&bench, 2);
    bench.respond(replayed.clone()).await;
    assert!(bench.respond(replayed.clone()).await.steps[0].replayed);
    assert_eq!(used(&bench).await, 4, "a replay is an attempt too");
    let conflict = Request { steps: commands(&bench, 3).steps, ..replayed };
    assert!(matches!(bench.run(conflict).await, Err(Refusal::Conflict { step: 0 })));
    assert_eq!(used(&bench).await, 7, "so is a conflict");
    let never = Command::hit([Window::fixed(digest("w"), 0, MINUTE_MS)]);
    let denied = bench.fresh().step(digest("alice"), [never]).step(digest("bob"), [increment("k")]);
    assert_eq!(bench.statuses(denied).await, [Status::Denied, Status::Skipped]);
    assert_eq!(used(&bench).await, 9, "and what is denied or skipped");
    let unknown = Request { family: family("nobody"), ..commands(&bench, 1) };
    assert!(matches!(bench.run(unknown).await, Err(Refusal::BadRequest(_))));
    assert_eq!(used(&bench).await, 9);
}

#[tokio::test]
async fn what_a_family_requires_has_to_be_there() {
    let requires = vec![Axis::Source, Axis::Principal];
    let bench = guarding(FamilyRules { requires, ..unshared(100) });
    for (source, principal, place) in [
        (false, false, Some("fairness.source")),
        (true, false, Some("fairness.principal")),
        (false, true, Some("fairness.source")),
        (true, true, None),
    ] {
        let mut request = commands(&bench, 1);
        request.fairness.source = source.then(|| digest("s"));
        request.fairness.principal = principal.then(|| digest("p"));
        let refused = bench.run(request).await.err().map(|refusal| match refusal {
            Refusal::BadRequest(fault) => fault.place,
            other => other.to_string(),
        });
        assert_eq!(refused.as_deref(), place);
    }
    assert_eq!(used(&bench).await, 1);
}

#[tokio::test]
async fn a_new_utc_day_begins_with_everything() {
    let bench = guarding(unshared(10));
    bench.at(DAY_MS - 1);
    bench.respond(commands(&bench, 10)).await;
    assert_eq!(bench.run(commands(&bench, 1)).await, Err(stopped(StopReason::BudgetExhausted, 1)));
    bench.at(DAY_MS);
    bench.respond(commands(&bench, 10)).await;
    bench.at(DAY_MS + DAY_MS / 2);
    assert_eq!(bench.run(commands(&bench, 1)).await, Err(stopped(StopReason::BudgetExhausted, DAY_MS / 2)));
    bench.at(2 * DAY_MS);
    assert_eq!(state(&bench).await.used, 0);
}
