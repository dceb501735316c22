//! Requests, stops, resumes, resets, days that pass and crashes in any order: nobody ever gets more than their
//! allowance, and what was acknowledged stays spent.
//!
//! The engine runs in process on a simulated disk, whose calls fail and which loses what was not flushed; the
//! model adds up what was acknowledged.

use std::{collections::BTreeMap, sync::Arc};

use tidegate_core::admission::{Axis, DAY_MS, FamilyRules};
use tidegate_guard::{Guard, GuardOptions, Metrics, Refusal};
use tidegate_protocol::{
    Command, Request,
    control::{FairnessReset, Resume, Stop},
    identity::Digest,
    name::{Family, OperationId},
    response::StopReason,
};
use tidegate_store::{
    Driver, DriverOptions,
    clock::{Clock, ManualClock},
};
use tidegate_store_embedded::{
    Durability, EmbeddedBackend, Options, Upkeep,
    testing::{Fault, Random, SimulatedDisk},
};

const SEEDS: u64 = 12;
const HAPPENINGS: u64 = 250;
const BUDGET: u64 = 60;
const OPEN: u64 = 48;
/// 20 % of the budget.
const SHARE: u64 = 12;

#[test]
fn nobody_gets_more_than_their_allowance_whatever_happens() {
    for durability in [Durability::Fsync, Durability::Process] {
        live(durability, &SimulatedDisk::new);
    }
}

/// The control: what was acknowledged on a disk whose flushes do nothing is lost with the power.
#[test]
#[should_panic(expected = "seed")]
fn a_disk_that_lies_is_found_out() {
    live(Durability::Fsync, &|| {
        let disk = SimulatedDisk::new();
        disk.lie();
        disk
    });
}

fn live(durability: Durability, disk: &dyn Fn() -> SimulatedDisk) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime starts");
    for seed in 0..SEEDS {
        runtime.block_on(World::new(durability, seed, disk()).live());
    }
}

/// A guard over a disk, and what it has acknowledged.
struct World {
    durability: Durability,
    seed: u64,
    random: Random,
    disk: SimulatedDisk,
    clock: Arc<ManualClock>,
    running: Option<(Guard, Driver<EmbeddedBackend>)>,
    operations: u64,
    day: u64,
    /// Acknowledged, and possibly done without an acknowledgement, since the day began or usage was reset.
    spent: Range,
    spent_by: BTreeMap<u64, Range>,
    /// What is known of the fence.
    fenced: Option<bool>,
}

/// How much was spent: at least what was acknowledged, at most that and what had no answer.
#[derive(Debug, Clone, Copy, Default)]
struct Range {
    least: u64,
    most: u64,
}

impl Range {
    fn add(&mut self, commands: u64, acknowledged: bool) {
        self.most += commands;
        self.least += if acknowledged { commands } else { 0 };
    }
}

impl World {
    fn new(durability: Durability, seed: u64, disk: SimulatedDisk) -> Self {
        let clock = Arc::new(ManualClock::at(1_764_460_800_000));
        Self {
            durability,
            seed,
            random: Random::new(seed),
            disk,
            day: clock.now_ms() / DAY_MS,
            clock,
            running: None,
            operations: 0,
            spent: Range::default(),
            spent_by: BTreeMap::new(),
            fenced: Some(false),
        }
    }

    async fn live(mut self) {
        for _ in 0..HAPPENINGS {
            match self.random.below(40) {
                0 => self.crash(),
                1 => self.disk.fail_call(self.random.below(6), Fault::Io),
                2 => self.pass(DAY_MS / 5),
                3 => self.stop().await,
                4 => self.resume().await,
                5 => self.reset().await,
                _ => self.request().await,
            }
        }
    }

    /// The guard, opened if it is not there, or has stopped after a failure of its disk.
    fn guard(&mut self) -> Guard {
        if let Some((guard, _)) = &self.running {
            return guard.clone();
        }
        let options = Options {
            durability: self.durability,
            segment_bytes: 16 * 1024,
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            disk: Some(Arc::new(self.disk.clone())),
            upkeep: Upkeep::Caller,
            ..Options::at("simulated")
        };
        // A call of the disk that fails on purpose may fail the opening, too.
        let backend = EmbeddedBackend::open(&options).or_else(|_| {
            self.disk.kill();
            EmbeddedBackend::open(&options)
        });
        let backend = backend.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        let driver = Driver::start(backend, DriverOptions::new("model", 10_000));
        let mut rules = FamilyRules { reserve_bp: 2_000, ..FamilyRules::of_budget(BUDGET) };
        rules.shares_bp[Axis::Source as usize] = 2_000;
        let metrics = Arc::new(Metrics::register(&mut prometheus_client::registry::Registry::default()));
        let options = GuardOptions::of([(family(), rules)]);
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let guard = Guard::new(Arc::new(driver.clone()), clock, options, metrics);
        self.running = Some((guard.clone(), driver));
        guard
    }

    fn crash(&mut self) {
        // Handles of the process that ended are good for nothing, whenever it lets go of them.
        if self.durability == Durability::Fsync {
            self.disk.cut_power(&mut self.random);
        } else {
            self.disk.kill();
        }
        self.running = None;
    }

    fn pass(&mut self, by_ms: u64) {
        self.clock.advance(by_ms);
        let today = self.clock.now_ms() / DAY_MS;
        if today > self.day {
            self.day = today;
            self.spent = Range::default();
            self.spent_by.clear();
        }
    }

    async fn request(&mut self) {
        let (source, commands) = (self.random.below(8), 1 + self.random.below(4));
        let good = source == 0;
        self.operations += 1;
        let step = (0..commands).map(|_| Command::increment(digest(source), 1, 60_000));
        let op = OperationId::from_random(u128::from(self.operations).to_be_bytes());
        let mut request = Request::new(op, family()).step(digest(source), step);
        request.fairness.source = Some(digest(source));
        request.good = good;
        let guard = self.guard();
        let outcome = guard.run(request).await;
        let place = format!("{:?}, seed {}: {outcome:?}", self.durability, self.seed);
        let by = *self.spent_by.entry(source).or_default();
        let room = if good { BUDGET } else { OPEN };
        let has_room = |spent: u64, spent_by: u64| spent + commands <= room && spent_by + commands <= SHARE;
        match &outcome {
            Ok(_) => {
                assert!(has_room(self.spent.least, by.least), "more than there was: {place}");
                assert_ne!(self.fenced, Some(true), "executed behind the fence: {place}");
                self.charge(source, commands, true);
            }
            Err(Refusal::Unavailable) => {
                self.charge(source, commands, false);
                self.crash();
            }
            Err(Refusal::Stopped { reason: StopReason::OperatorStop, .. }) => {
                assert_ne!(self.fenced, Some(false), "refused without a fence: {place}");
            }
            Err(_) => assert!(!has_room(self.spent.most, by.most), "refused with room left: {place}"),
        }
    }

    fn charge(&mut self, source: u64, commands: u64, acknowledged: bool) {
        self.spent.add(commands, acknowledged);
        self.spent_by.entry(source).or_default().add(commands, acknowledged);
    }

    async fn stop(&mut self) {
        let guard = self.guard();
        let stopped = guard.operator().stop(Stop::default(), "::1").await;
        self.fenced = if stopped.is_ok() { Some(true) } else { self.fenced.filter(|fenced| *fenced) };
        self.crash_if(stopped.is_err());
    }

    async fn resume(&mut self) {
        let guard = self.guard();
        match guard.operator().resume(Resume::default(), "::1").await {
            Ok(state) => {
                assert_eq!(state.families[&family()].used, 0);
                self.fenced = Some(false);
                self.spent = Range::default();
            }
            Err(_) => {
                // It may have been done: what is spent may be less, down to nothing.
                self.fenced = self.fenced.filter(|fenced| !fenced);
                self.spent.least = 0;
                self.crash();
            }
        }
    }

    async fn reset(&mut self) {
        let source = self.random.below(8);
        let reset = FairnessReset { family: family(), axis: None, identity: Some(digest(source)) };
        let guard = self.guard();
        match guard.operator().reset_fairness(reset, "::1").await {
            Ok(_) => drop(self.spent_by.remove(&source)),
            Err(_) => {
                self.spent_by.entry(source).or_default().least = 0;
                self.crash();
            }
        }
    }

    fn crash_if(&mut self, failed: bool) {
        if failed {
            self.crash();
        }
    }
}

fn family() -> Family {
    Family::parse("proxy").expect("it is a name")
}

fn digest(number: u64) -> Digest {
    Digest::parse(&format!("{number:0>43}")).expect("43 digits")
}
