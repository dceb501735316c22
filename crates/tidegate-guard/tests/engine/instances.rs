//! Several guards over one store, as instances of a service hold it: budgets to the last command, one stop for
//! all of them, one winner, one effect.

use std::sync::Arc;

use tidegate_core::admission::{DAY_MS, FamilyRules};
use tidegate_guard::{Guard, GuardOptions, Metrics, Refusal};
use tidegate_protocol::{
    Command, CommandResult, Request,
    control::{FairnessReset, Resume, State, Stop},
    response::StopReason,
};
use tidegate_store::{
    Driver, DriverOptions, MemoryBackend,
    clock::{Clock, ManualClock},
};
use tokio::task::JoinSet;

use crate::{
    harness::{START_MS, digest, family, get, increment, op, request},
    rig::{Rig, Rigged},
};

const FROM: &str = "::1";

/// A store, and guards that know nothing of each other.
struct Site {
    clock: Arc<ManualClock>,
    stores: Vec<Driver<Rigged>>,
    rules: FamilyRules,
    guards: Vec<Guard>,
    calls: u64,
}

impl Site {
    fn new(instances: usize, rules: FamilyRules) -> Self {
        let clock = Arc::new(ManualClock::at(START_MS));
        let backend = Rigged::new(MemoryBackend::new(Arc::clone(&clock) as Arc<dyn Clock>), Rig::Sound, true);
        let store = Driver::start(backend, DriverOptions::new("shared", 100_000));
        let mut site = Self { clock, stores: vec![store], rules, guards: Vec::new(), calls: 0 };
        (0..instances).for_each(|_| {
            let guard = site.guard();
            site.guards.push(guard);
        });
        site
    }

    /// Another instance, whose own clock may be off.
    fn guard(&self) -> Guard {
        let metrics = Arc::new(Metrics::register(&mut prometheus_client::registry::Registry::default()));
        let skew_ms = (self.guards.len() as u64 % 5) * 7_000;
        let clock = Arc::new(ManualClock::at(self.clock.now_ms() + skew_ms));
        let options = GuardOptions::of([(family("proxy"), self.rules.clone())]);
        Guard::new(Arc::new(self.stores[0].clone()), clock, options, metrics)
    }

    fn fresh(&mut self) -> Request {
        self.calls += 1;
        request(op(self.calls)).step(digest("alice"), [increment("k")])
    }

    /// Many requests at once, spread over the instances; how many were admitted.
    async fn spread(&mut self, count: usize) -> usize {
        let mut running = JoinSet::new();
        for number in 0..count {
            let guard = self.guards[number % self.guards.len()].clone();
            let request = self.fresh();
            running.spawn(async move { guard.run(request).await });
        }
        running.join_all().await.iter().filter(|outcome| outcome.is_ok()).count()
    }

    async fn state(&self) -> State {
        self.guards[0].operator().state().await.expect("the store is well")
    }

    async fn used(&self) -> u64 {
        self.state().await.families[&family("proxy")].used
    }
}

fn unshared(budget: u64) -> FamilyRules {
    FamilyRules { shares_bp: [10_000; 5], ..FamilyRules::of_budget(budget) }
}

#[tokio::test]
async fn many_instances_spend_the_budget_to_the_last_command() {
    for instances in [2, 3, 16] {
        let mut site = Site::new(instances, unshared(5_000));
        let mut admitted = 0;
        for round in 0..60 {
            admitted += site.spread(100).await;
            assert_eq!(site.used().await, admitted as u64, "{instances} instances, round {round}");
        }
        assert_eq!(admitted, 5_000, "{instances} instances");
        let refused = site.guards[1].run(request(op(0)).step(digest("alice"), [increment("k")])).await;
        let exhausted = Refusal::Stopped { reason: StopReason::BudgetExhausted, retry_after_ms: DAY_MS };
        assert_eq!(refused, Err(exhausted));
    }
}

#[tokio::test]
async fn what_a_crashed_instance_had_leased_is_not_lost() {
    let mut site = Site::new(4, unshared(4_000));
    let mut admitted = 0;
    for crashing in 0..40 {
        admitted += site.spread(90).await;
        // It is gone with whatever it had leased, and another one takes its place.
        site.guards[crashing % 4] = site.guard();
        assert_eq!(site.used().await, admitted as u64);
    }
    admitted += site.spread(2_000).await;
    assert_eq!(admitted, 4_000);
}

#[tokio::test]
async fn most_requests_write_no_row_that_all_instances_write() {
    let mut site = Site::new(4, unshared(1_000_000));
    site.spread(400).await;
    // The family's row is written to take a lease, and then left alone.
    let loads = site.stores[0].backend().loads();
    assert_eq!(site.spread(4_000).await, 4_000);
    assert!(site.stores[0].backend().loads() - loads < 100);
}

/// A store that can't lock what is absent lets the batches that found it so take turns.
#[tokio::test]
async fn requests_rely_on_no_absent_row_that_all_instances_watch() {
    let mut site = Site::new(4, unshared(1_000_000));
    site.spread(400).await;
    let before = site.stores[0].backend().absences();
    assert_eq!(site.spread(4_000).await, 4_000);
    assert_eq!(site.stores[0].backend().absences(), before);
    let absent = site.fresh().step(digest("alice"), [get("absent")]);
    site.guards[0].run(absent).await.unwrap();
    assert_eq!(site.stores[0].backend().absences(), before + 1);
}

#[tokio::test]
async fn a_stop_anywhere_is_a_stop_everywhere() {
    for round in 0..20 {
        let mut site = Site::new(3, unshared(1_000_000));
        site.spread(30).await;
        let mut running = JoinSet::new();
        for number in 0..60 {
            let (guard, request) = (site.guards[number % 3].clone(), site.fresh());
            running.spawn(async move { guard.run(request).await });
        }
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        site.guards[0].operator().stop(Stop::default(), FROM).await.unwrap();
        let admitted = site.used().await;
        let outcomes = running.join_all().await;
        assert_eq!(30 + outcomes.iter().filter(|outcome| outcome.is_ok()).count() as u64, admitted);
        assert_eq!(site.spread(30).await, 0, "whoever holds a lease is stopped, too");
        site.guards[1].operator().resume(Resume::default(), FROM).await.unwrap();
        assert_eq!(site.used().await, 0);
        assert_eq!(site.spread(30).await, 30);
        assert_eq!(site.used().await, 30, "leases from before the resume are worth nothing");
    }
}

#[tokio::test]
async fn a_reset_on_one_instance_is_found_out_by_the_others() {
    let mut site = Site::new(2, FamilyRules::of_budget(100));
    let from_source = |site: &mut Site| {
        let mut request = site.fresh();
        request.fairness.source = Some(digest("it"));
        request
    };
    for _ in 0..5 {
        let request = from_source(&mut site);
        site.guards[1].run(request).await.unwrap();
    }
    let request = from_source(&mut site);
    assert!(matches!(site.guards[1].run(request).await, Err(Refusal::Limited { .. })));
    let reset = FairnessReset { family: family("proxy"), axis: None, identity: Some(digest("it")) };
    site.guards[0].operator().reset_fairness(reset, FROM).await.unwrap();
    let request = from_source(&mut site);
    site.guards[0].run(request).await.unwrap();
    // A fresh instance has no memory; the old one forgets within seconds.
    let request = from_source(&mut site);
    site.guard().run(request).await.unwrap();
}

#[tokio::test]
async fn one_winner_and_one_effect_over_all_instances() {
    let mut site = Site::new(3, unshared(1_000_000));
    let mut running = JoinSet::new();
    for number in 0..50 {
        let guard = site.guards[number % 3].clone();
        let claim = Command::claim(digest("job"), "mine", 60_000);
        site.calls += 1;
        let request = request(op(site.calls)).step(digest("alice"), [claim]);
        running.spawn(async move { guard.run(request).await.unwrap() });
    }
    let written = |response: &tidegate_protocol::Response| {
        matches!(response.steps[0].results[0], CommandResult::Set { written: true, .. })
    };
    assert_eq!(running.join_all().await.iter().filter(|response| written(response)).count(), 1);

    let same = site.fresh();
    let mut running = JoinSet::new();
    for number in 0..20 {
        let (guard, request) = (site.guards[number % 3].clone(), same.clone());
        running.spawn(async move { guard.run(request).await.unwrap() });
    }
    let answers = running.join_all().await;
    assert_eq!(answers.iter().filter(|response| !response.steps[0].replayed).count(), 1);
    assert!(answers.iter().all(|response| response.steps[0].results == answers[0].steps[0].results));
}

#[tokio::test]
async fn a_new_day_begins_for_every_instance() {
    let mut site = Site::new(3, unshared(1_000));
    assert_eq!(site.spread(2_000).await, 1_000);
    site.clock.advance(DAY_MS);
    assert_eq!(site.used().await, 0);
    assert_eq!(site.spread(2_000).await, 1_000);
}
