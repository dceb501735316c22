//! The drill of an operator's stop under load: once it has answered, nothing is executed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tidegate_client::{Cause, GuardUnavailable, operation_id};
use tidegate_protocol::{
    control::{Resume, State, Stop},
    identity::{Digest, Purpose},
    name::Family,
    request::{Command, Fairness, Request},
    response::{CommandResult, Response, StopReason},
};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    DrillError,
    field::{Field, GroupId, Refused, judged},
    report::{Report, Verdict},
    target::Target,
};

/// Tasks that send at once, each counting on a counter of its own.
const TASKS: usize = 32;
/// Answers that must have come before the stop, of all tasks together.
const WARM_UP: usize = 4 * TASKS;
/// What each task still sends after the stop has answered.
const AFTER_STOP: u64 = 8;
/// A task sends no more than this, whatever becomes of the stop.
const TASK_RPCS_MAX: u64 = 1000;
/// Between two requests of a task, so that a stop which waits for another instance's lease is seen to answer.
const PAUSE: Duration = Duration::from_millis(4);
const FENCED: Option<StopReason> = Some(StopReason::OperatorStop);
/// The counters are gone soon after the drill.
const COUNTER_LIFE_MS: u64 = 600_000;

/// Commands of the open part that must be there at the start.
pub(super) const OPEN_NEEDED: u64 = 2 * WARM_UP as u64;

/// RPCs that the drill sends at most.
pub(super) const RPCS_NEEDED: u64 = TASKS as u64 * (TASK_RPCS_MAX + 2);

/// Runs it.
pub(super) async fn run<T: Target>(mut field: Field<T>) -> Result<Report, DrillError> {
    let (before, after) = (field.group("before the stop's answer"), field.group("after it"));
    let resumed = field.group("after the resume");
    field.note("the resume has begun the family's budget anew");
    let counters: Vec<Counter> = (0..TASKS).map(|place| Counter::on(&field, place)).collect();

    let (stopped, worked) = match stop_under_load(&field, &counters).await {
        Ok(done) => done,
        Err(error) => {
            // Whatever went wrong, the guard store is not left behind the fence.
            let _ = field.target.control().resume(Resume { families: Some(vec![field.family]) }).await;
            return Err(error);
        }
    };
    field.target.control().resume(Resume { families: Some(vec![field.family]) }).await?;

    let mut kept = Vec::new();
    for (counter, work) in counters.iter().zip(&worked) {
        let value = counter.value(&field).await?;
        let acknowledged = work.executed_before + work.executed_after;
        kept.push((acknowledged..=acknowledged + work.unknown).contains(&value));
        let went_on = counter.increment(&field.target, field.family).await;
        field.count_rpcs(resumed, 1, judged(went_on.map(drop))?);
    }
    for work in &worked {
        work.tell(&mut field, before, after);
    }
    field.look().await?;
    let verdicts = verdicts(&field, &stopped, &worked, &kept, resumed);
    Ok(field.report("stop-resume", verdicts))
}

/// Lets the tasks count, stops, and waits for all of them to have been refused.
async fn stop_under_load<T: Target>(
    field: &Field<T>,
    counters: &[Counter],
) -> Result<(State, Vec<Work>), DrillError> {
    let answered = Arc::new(AtomicBool::new(false));
    let (acknowledge, mut acknowledged) = mpsc::channel(WARM_UP);
    let mut tasks = JoinSet::new();
    for (place, counter) in counters.iter().enumerate() {
        let (target, counter, answered) = (field.target.clone(), *counter, Arc::clone(&answered));
        let (acknowledge, family) = (acknowledge.clone(), field.family);
        tasks.spawn(async move { (place, work(target, family, counter, answered, acknowledge).await) });
    }
    drop(acknowledge);
    for _ in 0..WARM_UP {
        // None: every task has ended already.
        if acknowledged.recv().await.is_none() {
            break;
        }
    }
    let stopped = field.target.control().stop(Stop { reason: Some("drill stop-resume".to_owned()) }).await?;
    // What is executed from now on shows a later instant.
    field.pass(1);
    answered.store(true, Ordering::SeqCst);
    let mut worked = vec![Work::default(); counters.len()];
    while let Some(ended) = tasks.join_next().await {
        let (place, work) = ended.map_err(|_| DrillError::Ended)?;
        worked[place] = work;
    }
    Ok((stopped, worked))
}

/// What became of a task's requests.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    /// Executed, of those that were sent before the stop had answered.
    executed_before: u64,
    /// Executed, of those that were sent after it.
    executed_after: u64,
    refused_before: u64,
    refused_after: u64,
    /// Refused for another reason, or without an answer: executed or not.
    unknown: u64,
    /// The store's clock at the last execution.
    last_ms: u64,
}

impl Work {
    fn tell<T: Target>(&self, field: &mut Field<T>, before: GroupId, after: GroupId) {
        let refused = Err(Refused::Stopped(FENCED));
        field.count_rpcs(before, self.executed_before, Ok(()));
        field.count_rpcs(before, self.refused_before, refused);
        field.count_rpcs(before, self.unknown, Err(Refused::Unavailable));
        field.count_rpcs(after, self.executed_after, Ok(()));
        field.count_rpcs(after, self.refused_after, refused);
    }
}

async fn work<T: Target>(
    target: T,
    family: Family,
    counter: Counter,
    answered: Arc<AtomicBool>,
    acknowledge: mpsc::Sender<()>,
) -> Work {
    let (mut work, mut sent_after) = (Work::default(), 0);
    for _ in 0..TASK_RPCS_MAX {
        let after = answered.load(Ordering::SeqCst);
        sent_after += u64::from(after);
        match counter.increment(&target, family).await {
            Ok(response) => {
                let executed = if after { &mut work.executed_after } else { &mut work.executed_before };
                *executed += 1;
                work.last_ms = work.last_ms.max(response.now_ms);
                // A full line or no reader: enough have been acknowledged.
                let _ = acknowledge.try_send(());
            }
            Err(GuardUnavailable { cause: Cause::Stopped { reason, .. } }) if reason == FENCED => {
                let refused = if after { &mut work.refused_after } else { &mut work.refused_before };
                *refused += 1;
            }
            Err(_) => work.unknown += 1,
        }
        if sent_after >= AFTER_STOP {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    work
}

fn verdicts<T: Target>(
    field: &Field<T>,
    stopped: &State,
    worked: &[Work],
    kept: &[bool],
    resumed: GroupId,
) -> Vec<Verdict> {
    let sum = |count: fn(&Work) -> u64| worked.iter().map(count).sum::<u64>();
    let (executed, refused) = (sum(|work| work.executed_after), sum(|work| work.refused_after));
    let late = worked.iter().filter(|work| work.last_ms > stopped.now_ms).count();
    let right = kept.iter().filter(|kept| **kept).count();
    let tally = field.tally(resumed);
    vec![
        Verdict::of(
            executed == 0 && refused > 0,
            format!("sent after the stop had answered: {executed} executed, {refused} refused"),
        ),
        Verdict::of(
            late == 0,
            format!("in flight at the stop: {late} of {TASKS} tasks saw one executed after it"),
        ),
        Verdict::of(
            right == kept.len(),
            format!("{right} of {} counters hold what was acknowledged", kept.len()),
        ),
        Verdict::of(
            tally.all_admitted(),
            format!("after the resume: {} of {} go on", tally.admitted, tally.asked),
        ),
    ]
}

/// A counter that nobody else counts on.
#[derive(Debug, Clone, Copy)]
struct Counter {
    partition: Digest,
    key: Digest,
}

impl Counter {
    fn on<T: Target>(field: &Field<T>, place: usize) -> Self {
        let digest = |purpose| field.digest(purpose, &format!("counter {place}"));
        Self { partition: digest(Purpose::Partition), key: digest(Purpose::Key) }
    }

    async fn increment<T: Target>(&self, target: &T, family: Family) -> Result<Response, GuardUnavailable> {
        self.run(target, family, Command::increment(self.key, 1, COUNTER_LIFE_MS)).await
    }

    async fn value<T: Target>(&self, field: &Field<T>) -> Result<u64, DrillError> {
        let response = self.run(&field.target, field.family, Command::get(self.key)).await?;
        let result = response.steps.into_iter().next().and_then(|step| step.results.into_iter().next());
        match result {
            Some(CommandResult::Get { value: Some(value), .. }) => {
                value.parse().map_err(|_| DrillError::Unexpected)
            }
            Some(CommandResult::Get { value: None, .. }) => Ok(0),
            _ => Err(DrillError::Unexpected),
        }
    }

    async fn run<T: Target>(
        &self,
        target: &T,
        family: Family,
        command: Command,
    ) -> Result<Response, GuardUnavailable> {
        let op = operation_id()?;
        // Somebody else each time, so that no quota is spent on the way.
        let somebody = |purpose| target.client().digest(purpose, &format!("drill {op}"));
        let fairness =
            Fairness::default().source(somebody(Purpose::Source)).principal(somebody(Purpose::Principal));
        let request = Request::new(op, family).fairness(fairness).step(self.partition, [command]);
        target.client().run(&request).await
    }
}
