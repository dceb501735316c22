//! What the tests share: a guard over rows in memory, a clock that the test moves, short names.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tidegate_core::{INTEGER_MAX, admission::FamilyRules};
use tidegate_guard::{Guard, GuardOptions, Metrics, Refusal};
use tidegate_protocol::{
    Command, CommandResult, Request, Response, StepResult,
    identity::Digest,
    name::{Family, OperationId, ReceiptId},
    response::{Status, Usage},
};
use tidegate_store::{
    Backend as _, Driver, DriverOptions, MemoryBackend,
    clock::{Clock, ManualClock},
};
use tokio::task::JoinSet;

use crate::rig::{Rig, Rigged};

/// A UTC midnight, so that every window of whole seconds, minutes or hours begins here.
pub(crate) const START_MS: u64 = 1_764_460_800_000;

/// A guard, its store and its clock.
pub(crate) struct Bench {
    pub(crate) guard: Guard,
    pub(crate) metrics: Arc<Metrics>,
    clock: Arc<ManualClock>,
    store: Driver<Rigged>,
    calls: AtomicU64,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(Rig::Sound, 1024)
    }

    /// Over a store that breaks a promise.
    pub(crate) fn rigged(rig: Rig) -> Self {
        Self::with(rig, 1024)
    }

    /// With at most `batch_jobs_max` updates in one load and commit.
    pub(crate) fn with(rig: Rig, batch_jobs_max: usize) -> Self {
        Self::start(rig, DriverOptions { batch_jobs_max, ..DriverOptions::new("engine", 100_000) })
    }

    /// With room for so many rows.
    pub(crate) fn with_room(max_entries: u64) -> Self {
        Self::start(Rig::Sound, DriverOptions::new("engine", max_entries))
    }

    /// With these families, and a memory of so many refusals.
    pub(crate) fn guarding(options: GuardOptions) -> Self {
        Self::start_with(Rig::Sound, DriverOptions::new("engine", 100_000), options)
    }

    fn start(rig: Rig, options: DriverOptions) -> Self {
        let roomy = FamilyRules { shares_bp: [10_000; 5], ..FamilyRules::of_budget(INTEGER_MAX) };
        let families = ["proxy", "password"].map(|name| (family(name), roomy.clone()));
        Self::start_with(rig, options, GuardOptions::of(families))
    }

    fn start_with(rig: Rig, options: DriverOptions, guard: GuardOptions) -> Self {
        let clock = Arc::new(ManualClock::at(START_MS));
        let backend = Rigged::new(MemoryBackend::new(Arc::clone(&clock) as Arc<dyn Clock>), rig, false);
        let store = Driver::start(backend, options);
        let metrics = Arc::new(Metrics::register(&mut prometheus_client::registry::Registry::default()));
        let shared = Arc::new(store.clone());
        let guard = Guard::new(shared, Arc::clone(&clock) as Arc<dyn Clock>, guard, Arc::clone(&metrics));
        Self { guard, metrics, clock, store, calls: AtomicU64::new(0) }
    }

    /// Moves the clock to `ms` after the start.
    pub(crate) fn at(&self, ms: u64) {
        assert!(self.clock.now_ms() <= START_MS + ms, "the clock of a store never goes back");
        self.clock.advance_to(START_MS + ms);
    }

    pub(crate) fn advance(&self, by_ms: u64) {
        self.clock.advance(by_ms);
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// A request under an operation id of its own.
    pub(crate) fn fresh(&self) -> Request {
        request(op(self.calls.fetch_add(1, Ordering::SeqCst)))
    }

    pub(crate) async fn run(&self, request: Request) -> Result<Response, Refusal> {
        self.guard.run(request).await
    }

    /// Runs a request that is not refused.
    pub(crate) async fn respond(&self, request: Request) -> Response {
        let response = self.run(request.clone()).await.expect("the request is within bounds, the store well");
        assert_eq!(response.op, request.op);
        assert_eq!(response.now_ms, self.now_ms());
        assert_eq!(response.steps.len(), request.steps.len());
        let denied = response.steps.iter().any(|step| step.status == Status::Denied);
        assert_eq!(response.denied, denied);
        response
    }

    /// The statuses of a request's steps.
    pub(crate) async fn statuses(&self, request: Request) -> Vec<Status> {
        self.respond(request).await.steps.iter().map(|step| step.status).collect()
    }

    /// A step of its own in Alice's partition.
    pub(crate) async fn step(&self, commands: impl IntoIterator<Item = Command>) -> StepResult {
        self.step_in("alice", commands).await
    }

    pub(crate) async fn step_in(
        &self,
        partition: &str,
        commands: impl IntoIterator<Item = Command>,
    ) -> StepResult {
        let response = self.respond(self.fresh().step(digest(partition), commands)).await;
        response.steps.into_iter().next().expect("one step was sent")
    }

    /// A command of its own in Alice's partition, which does not fail.
    pub(crate) async fn command(&self, command: Command) -> CommandResult {
        self.command_in("alice", command).await
    }

    pub(crate) async fn command_in(&self, partition: &str, command: Command) -> CommandResult {
        let step = self.step_in(partition, [command]).await;
        step.results.into_iter().next().expect("a step that ran has a result for its command")
    }

    /// The counter called `key`, read as a record.
    pub(crate) async fn counter(&self, key: &str) -> Option<i64> {
        let CommandResult::Get { value, .. } = self.command(get(key)).await else { return None };
        value.map(|value| value.parse().expect("a counter is an integer"))
    }

    /// Runs all of them at once, each in its own task.
    pub(crate) async fn all_at_once(
        &self,
        requests: impl IntoIterator<Item = Request>,
    ) -> Vec<Result<Response, Refusal>> {
        let mut running = JoinSet::new();
        for request in requests {
            let guard = self.guard.clone();
            running.spawn(async move { guard.run(request).await });
        }
        running.join_all().await
    }

    /// How many rows the store holds, expired ones included and those of families aside.
    pub(crate) async fn rows(&self) -> u64 {
        let backend = self.store.backend();
        backend.count().await.expect("memory counts") - backend.families()
    }

    /// How many batches the store has loaded.
    pub(crate) fn loads(&self) -> u64 {
        self.store.backend().loads()
    }

    /// How many rows were written or removed so far.
    pub(crate) fn writes(&self) -> u64 {
        self.store.backend().writes()
    }

    /// From now on the store keeps or breaks another promise.
    pub(crate) fn rig(&self, rig: Rig) {
        self.store.backend().rig(rig);
    }
}

/// Runs `(ms after the start, command, its result)` in turn, each in a step of its own.
pub(crate) async fn check(table: &[(u64, Command, CommandResult)]) {
    let bench = Bench::new();
    for (row, (at_ms, command, expected)) in table.iter().enumerate() {
        bench.at(*at_ms);
        assert_eq!(&bench.command(command.clone()).await, expected, "row {row}, at {at_ms} ms: {command:?}");
    }
}

pub(crate) fn request(op: OperationId) -> Request {
    Request::new(op, family("proxy"))
}

pub(crate) fn family(name: &str) -> Family {
    Family::parse(name).expect("the tests name families well")
}

/// The operation id with this number.
pub(crate) fn op(number: u64) -> OperationId {
    OperationId::from_random(u128::from(number).to_be_bytes())
}

/// A digest that reads like what it stands for.
pub(crate) fn digest(name: &str) -> Digest {
    Digest::parse(&format!("{name:_<43}")).expect("names are short and of letters")
}

/// A receipt that nobody gave out.
pub(crate) fn forged(number: u64) -> ReceiptId {
    ReceiptId::from_random(u128::from(number).to_le_bytes())
}

pub(crate) fn get(key: &str) -> Command {
    Command::get(digest(key))
}

pub(crate) fn increment(key: &str) -> Command {
    Command::increment(digest(key), 1, 60_000)
}

/// `used` of `limit`, until `reset_ms` from now.
pub(crate) fn usage(limit: u64, used: u64, reset_ms: u64) -> Usage {
    Usage { limit, used, remaining: limit.saturating_sub(used), reset_ms }
}

/// An allowed hit.
pub(crate) fn allowed(windows: impl IntoIterator<Item = Usage>) -> CommandResult {
    hit_result(Some(0), windows)
}

/// A hit that is denied for so long; `None` for ever.
pub(crate) fn denied(
    retry_after_ms: impl Into<Option<u64>>,
    windows: impl IntoIterator<Item = Usage>,
) -> CommandResult {
    hit_result(retry_after_ms.into(), windows)
}

fn hit_result(retry_after_ms: Option<u64>, windows: impl IntoIterator<Item = Usage>) -> CommandResult {
    let windows = windows.into_iter().collect();
    CommandResult::Hit { allowed: retry_after_ms == Some(0), windows, retry_after_ms }
}

pub(crate) fn value(value: &str, ttl_ms: u64) -> CommandResult {
    CommandResult::Get { value: Some(value.to_owned()), ttl_ms: Some(ttl_ms) }
}

pub(crate) const ABSENT: CommandResult = CommandResult::Get { value: None, ttl_ms: None };

pub(crate) fn counted(value: i64, ttl_ms: u64) -> CommandResult {
    CommandResult::Increment { value, ttl_ms }
}

pub(crate) const WRITTEN: CommandResult = CommandResult::Set { written: true, current: None };

pub(crate) fn refused(current: Option<&str>) -> CommandResult {
    CommandResult::Set { written: false, current: current.map(ToOwned::to_owned) }
}
