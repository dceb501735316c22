//! Where a drill takes place: a family of a target, callers that nobody else is, and a tally of what became
//! of their requests.

use std::collections::BTreeMap;

use tidegate_client::{Cause, GuardUnavailable, operation_id};
use tidegate_core::admission::{DAY_MS, FamilyRules, Phase};
use tidegate_protocol::{
    bounds::{RPC_COMMANDS_MAX, STEP_COMMANDS_MAX},
    control::{Axis, FamilyState},
    identity::{Digest, Purpose},
    name::Family,
    request::{Command, Fairness, Request},
    response::StopReason,
};
use tokio::task::JoinSet;

use super::{
    DrillError,
    report::{Group, Report, Rules, Turn, Verdict},
    target::Target,
};
use crate::cli::{control::phase_name, words::Utc};

/// Where a drill takes place.
pub(crate) struct Field<T> {
    pub(super) target: T,
    pub(super) family: Family,
    /// What the family is run with.
    pub(super) rules: FamilyRules,
    /// What it is configured with; a variation for the sake of the drill is not.
    pub(super) configured: FamilyRules,
    /// Makes this run's callers different from those of any other.
    run: String,
    groups: Vec<Group>,
    timeline: Vec<Turn>,
    notes: Vec<String>,
    rpcs_left: u64,
}

/// Somebody who sends requests.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) fairness: Fairness,
    pub(super) partition: Digest,
}

/// A place in the tally.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupId(usize);

/// A request that is to be sent: of commands that change nothing.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) group: GroupId,
    pub(super) caller: Caller,
    /// 1 to 32.
    pub(super) commands: u64,
    /// Whether the caller vouches for its identities.
    pub(super) good: bool,
}

/// Why a request was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// A quota is spent.
    Limited(Option<Axis>),
    /// A budget is spent, or an operator has stopped everything.
    Stopped(Option<StopReason>),
    /// No answer in time, or none at all.
    Unavailable,
}

/// Requests that are on their way at once.
pub(super) const IN_FLIGHT_MAX: usize = 32;

impl<T: Target> Field<T> {
    /// Looks whether a drill can take place: the fence is down, and the family has at least `open_min`
    /// commands of its open part left. At most `rpcs_max` RPCs are sent.
    pub(super) async fn enter(
        target: T,
        family: Family,
        configured: FamilyRules,
        rules: FamilyRules,
        rpcs_max: u64,
        open_min: u64,
    ) -> Result<Self, DrillError> {
        let mut field = Self {
            target,
            family,
            rules,
            configured,
            run: operation_id()?.as_str().to_owned(),
            groups: Vec::new(),
            timeline: Vec::new(),
            notes: Vec::new(),
            rpcs_left: rpcs_max,
        };
        if field.target.control().state().await?.fence.stopped {
            return Err(DrillError::Fenced);
        }
        let left = field.look().await?.open_remaining;
        if left < open_min {
            let family = family.as_str().to_owned();
            return Err(DrillError::TooLittle { family, left, needed: open_min });
        }
        Ok(field)
    }

    pub(super) fn group(&mut self, name: &str) -> GroupId {
        self.groups.push(Group::called(name));
        GroupId(self.groups.len() - 1)
    }

    pub(super) fn tally(&self, group: GroupId) -> &Group {
        &self.groups[group.0]
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Somebody with a source of their own in these networks, and an account where the family requires one
    /// or `account` names one. What is hashed is no address and no account's name, so that no real caller is
    /// ever meant.
    pub(super) fn caller(&self, name: &str, networks: &[(u8, &str)], account: Option<&str>) -> Caller {
        let mut fairness = Fairness::default().source(self.digest(Purpose::Source, name));
        for (prefix, network) in networks {
            fairness =
                fairness.network(*prefix, self.digest(Purpose::Network, &format!("{prefix} {network}")));
        }
        let required = self.rules.requires.contains(&Axis::Principal).then_some(name);
        if let Some(account) = account.or(required) {
            fairness = fairness.principal(self.digest(Purpose::Principal, account));
        }
        Caller { fairness, partition: self.digest(Purpose::Partition, name) }
    }

    /// Somebody alone in a network of 256 addresses.
    pub(super) fn loner(&self, name: &str) -> Caller {
        self.caller(name, &[(24, name)], None)
    }

    pub(super) fn digest(&self, purpose: Purpose, name: &str) -> Digest {
        self.target.client().digest(purpose, &format!("drill {} {name}", self.run))
    }

    /// Lets time pass.
    pub(super) fn pass(&self, by_ms: u64) {
        self.target.pass(by_ms);
    }

    /// How the family stands; a change of state goes into the timeline.
    pub(super) async fn look(&mut self) -> Result<FamilyState, DrillError> {
        let state = self.target.control().state().await?;
        let Some(family) = state.families.get(&self.family).copied() else {
            let known = state.families.keys().map(|family| family.as_str().to_owned()).collect();
            return Err(DrillError::NoFamily { family: self.family.as_str().to_owned(), known });
        };
        let name = phase_name(family.state);
        if self.timeline.last().is_none_or(|turn| turn.state != name) {
            let at_ms = state.now_ms;
            self.timeline.push(Turn { at_ms, at: self.told(at_ms), state: name });
        }
        Ok(family)
    }

    /// Sends these, [`IN_FLIGHT_MAX`] at once; what became of each, in their order.
    pub(super) async fn send(&mut self, asks: Vec<Ask>) -> Result<Vec<Result<(), Refused>>, DrillError> {
        let sent = asks.len() as u64;
        self.rpcs_left = self.rpcs_left.checked_sub(sent).ok_or(DrillError::Bound)?;
        let mut outcomes = vec![Ok(()); asks.len()];
        let mut running: JoinSet<(usize, Result<(), GuardUnavailable>)> = JoinSet::new();
        for (index, ask) in asks.iter().enumerate() {
            if running.len() >= IN_FLIGHT_MAX
                && let Some(ended) = running.join_next().await
            {
                let (index, outcome) = ended.map_err(|_| DrillError::Ended)?;
                outcomes[index] = judged(outcome)?;
            }
            let request = self.request(ask)?;
            let target = self.target.clone();
            running.spawn(async move { (index, target.client().run(&request).await.map(drop)) });
        }
        while let Some(ended) = running.join_next().await {
            let (index, outcome) = ended.map_err(|_| DrillError::Ended)?;
            outcomes[index] = judged(outcome)?;
        }
        for (ask, outcome) in asks.iter().zip(&outcomes) {
            self.groups[ask.group.0].count(1, ask.commands, *outcome);
        }
        Ok(outcomes)
    }

    /// Spends what is left to a caller, at most `commands_max`, in as few RPCs as possible; answers how much
    /// it was.
    pub(super) async fn spend(
        &mut self,
        group: GroupId,
        caller: &Caller,
        commands_max: u64,
    ) -> Result<u64, DrillError> {
        let (mut spent, mut size, mut at_once) = (0, RPC_COMMANDS_MAX as u64, IN_FLIGHT_MAX as u64);
        while spent < commands_max && size > 0 {
            size = size.min(commands_max - spent);
            let count = ((commands_max - spent) / size).min(at_once);
            let ask = Ask { group, caller: caller.clone(), commands: size, good: false };
            let outcomes = self.send((0..count).map(|_| ask.clone()).collect()).await?;
            spent += size * outcomes.iter().filter(|outcome| outcome.is_ok()).count() as u64;
            if outcomes.contains(&Err(Refused::Stopped(Some(StopReason::BudgetExhausted)))) {
                break;
            }
            if outcomes.iter().any(Result::is_err) {
                (size, at_once) = (size / 2, 1);
            }
        }
        Ok(spent)
    }

    /// Counts RPCs of one command that a drill has sent by itself.
    pub(super) fn count_rpcs(&mut self, group: GroupId, rpcs: u64, outcome: Result<(), Refused>) {
        self.groups[group.0].count(rpcs, 1, outcome);
    }

    /// What the drill found, and what it says.
    pub(super) fn report(self, drill: &'static str, verdicts: Vec<Verdict>) -> Report {
        Report {
            drill,
            family: self.family.as_str().to_owned(),
            simulated: self.target.simulated_from_ms().is_some(),
            rules: Rules::of(&self.rules),
            groups: self.groups,
            timeline: self.timeline,
            notes: self.notes,
            verdicts,
        }
    }

    /// The same field over a guard store that was ended and started again.
    pub(super) async fn restarted(self) -> Result<Self, DrillError> {
        Ok(Self { target: self.target.restart().await?, ..self })
    }

    fn request(&self, ask: &Ask) -> Result<Request, DrillError> {
        let mut request = Request::new(operation_id()?, self.family).fairness(ask.caller.fairness.clone());
        let key = ask.caller.partition;
        let mut left = usize::try_from(ask.commands).unwrap_or(RPC_COMMANDS_MAX);
        while left > 0 {
            let commands = left.min(STEP_COMMANDS_MAX);
            request = request.step(ask.caller.partition, vec![Command::get(key); commands]);
            left -= commands;
        }
        Ok(if ask.good { request.good() } else { request })
    }

    /// An instant for people: a day and a time of a simulation, or UTC.
    fn told(&self, at_ms: u64) -> String {
        let Some(from_ms) = self.target.simulated_from_ms() else { return Utc(at_ms).to_string() };
        let (day, second) = ((at_ms - from_ms) / DAY_MS + 1, at_ms % DAY_MS / 1000);
        format!("day {day} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
    }
}

impl Group {
    fn count(&mut self, rpcs: u64, commands_each: u64, outcome: Result<(), Refused>) {
        if rpcs == 0 {
            return;
        }
        self.asked += rpcs;
        match outcome {
            Ok(()) => {
                self.admitted += rpcs;
                self.spent += rpcs * commands_each;
            }
            Err(refused) => *self.refused.entry(refused.as_str()).or_default() += rpcs,
        }
    }
}

impl Refused {
    /// The axis or the reason.
    fn as_str(self) -> &'static str {
        match self {
            Self::Limited(axis) => axis.map_or("guard_limited", Axis::as_str),
            Self::Stopped(reason) => reason.map_or("guard_stopped", StopReason::as_str),
            Self::Unavailable => "unavailable",
        }
    }
}

/// What an answer says of a request's admission. Answers that say something of the drill itself end it.
pub(super) fn judged(outcome: Result<(), GuardUnavailable>) -> Result<Result<(), Refused>, DrillError> {
    match outcome.map_err(|error| error.cause) {
        Ok(()) => Ok(Ok(())),
        Err(Cause::Limited { axis, .. }) => Ok(Err(Refused::Limited(axis))),
        Err(Cause::Stopped { reason, .. }) => Ok(Err(Refused::Stopped(reason))),
        Err(Cause::TimedOut | Cause::Transport(_) | Cause::Unavailable(_)) => Ok(Err(Refused::Unavailable)),
        Err(cause) => Err(GuardUnavailable::from(cause).into()),
    }
}

/// The rules of every family, by name.
pub(crate) type FamiliesRules = BTreeMap<Family, FamilyRules>;

/// Whether a family's open part is spent.
pub(super) fn is_open_part_spent(state: &FamilyState) -> bool {
    state.open_remaining == 0 || state.state != Phase::Open
}
