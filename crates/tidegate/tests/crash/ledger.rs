//! What clients were told, and what must therefore be there: every acknowledged operation once, every other one
//! once or not at all, nothing half.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_protocol::{Command, CommandResult, Response, response::Usage};

use crate::{
    caller::Caller,
    workload::{
        CLAIMS, COUNTER_LIFE_MS, COUNTERS, Effect, LONG_MS, Operation, SUBJECTS, attempts, hit, hits, pairs,
        reserve, totals,
    },
};

/// The sums of all rounds so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    paired: i64,
    hits: i64,
    reserved: i64,
}

/// What one round's operations add to a subject at least, and at most.
#[derive(Debug, Clone, Copy, Default)]
struct Range {
    least: Sums,
    most: Sums,
}

/// The account of a store over all its restarts.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    sums: [Sums; SUBJECTS],
}

/// What broke a promise, in sentences; empty if nothing did.
pub(crate) type Breaches = Vec<String>;

impl Ledger {
    /// Checks what a restarted server holds after `round`, sends all of it again, twice, and checks the sums.
    pub(crate) fn settle(&mut self, caller: &mut Caller, round: &mut [Operation]) -> Breaches {
        let mut breaches = Breaches::new();
        self.check_ranges(caller, round, &mut breaches);
        check_counters(caller, round, &mut breaches);
        for operation in round.iter_mut() {
            send_again(caller, operation, &mut breaches);
        }
        let by_effect = self.take_in(round);
        check_claims(caller, round, &mut breaches);
        check_same(&by_effect, &mut breaches);
        self.check_sums(caller, &mut breaches);
        breaches
    }

    /// Before anything is sent again: acknowledged is there, and no more than what was sent.
    fn check_ranges(&self, caller: &mut Caller, round: &[Operation], breaches: &mut Breaches) {
        for (subject, range) in ranges(round).iter().enumerate() {
            let found = look(caller, subject, breaches);
            let before = self.sums[subject];
            let columns = [
                ("paired", before.paired, range.least.paired, range.most.paired, found.paired),
                ("hits", before.hits, range.least.hits, range.most.hits, found.hits),
                ("reserved", before.reserved, range.least.reserved, range.most.reserved, found.reserved),
            ];
            for (what, before, least, most, found) in columns {
                if !(before + least..=before + most).contains(&found) {
                    breaches.push(format!(
                        "subject {subject}, {what}: {found} found; {before} before, {least} acknowledged, at most {most}"
                    ));
                }
            }
        }
    }

    /// After everything was sent again: each operation counts once.
    fn check_sums(&self, caller: &mut Caller, breaches: &mut Breaches) {
        for subject in 0..SUBJECTS {
            let (found, expected) = (look(caller, subject, breaches), self.sums[subject]);
            if found != expected {
                breaches.push(format!("subject {subject}, sent again: {found:?}; {expected:?} sent"));
            }
            let total = counter(caller, &totals(subject), "total", breaches);
            if total != expected.paired {
                breaches.push(format!(
                    "subject {subject}: the second steps sum to {total}, the first to {expected:?}"
                ));
            }
        }
    }

    /// Adds what is known to have been executed. Copies of one operation are one.
    fn take_in<'a>(&mut self, round: &'a [Operation]) -> BTreeMap<&'a str, Vec<&'a Response>> {
        let mut same: BTreeMap<&str, Vec<&Response>> = BTreeMap::new();
        for operation in round {
            let Some(response) = &operation.response else { continue };
            match &operation.effect {
                Effect::Pair { subject, by } => self.sums[*subject].paired += by,
                Effect::Hit { subject } => self.sums[*subject].hits += 1,
                Effect::Reserve { subject } => self.sums[*subject].reserved += 1,
                Effect::Refund { subject } => self.sums[*subject].reserved -= 1,
                Effect::Same { counter } => same.entry(counter).or_default().push(response),
                Effect::Claim { .. } | Effect::Fresh { .. } => {}
            }
        }
        same
    }
}

fn ranges(round: &[Operation]) -> [Range; SUBJECTS] {
    let mut ranges = [Range::default(); SUBJECTS];
    for operation in round {
        let known = operation.response.is_some();
        let (subject, column, by): (usize, fn(&mut Sums) -> &mut i64, i64) = match operation.effect {
            Effect::Pair { subject, by } => (subject, |sums| &mut sums.paired, by),
            Effect::Hit { subject } => (subject, |sums| &mut sums.hits, 1),
            Effect::Reserve { subject } => (subject, |sums| &mut sums.reserved, 1),
            Effect::Refund { subject } => (subject, |sums| &mut sums.reserved, -1),
            Effect::Claim { .. } | Effect::Fresh { .. } | Effect::Same { .. } => continue,
        };
        if known || by < 0 {
            *column(&mut ranges[subject].least) += by;
        }
        if known || by > 0 {
            *column(&mut ranges[subject].most) += by;
        }
    }
    ranges
}

/// A subject's rows; those that one step writes must agree.
fn look(caller: &mut Caller, subject: usize, breaches: &mut Breaches) -> Sums {
    let left = counter(caller, &pairs(subject), "left", breaches);
    let right = counter(caller, &pairs(subject), "right", breaches);
    let hits = used(caller, &hits(subject), hit(0));
    let reserved = used(caller, &attempts(subject), reserve(0));
    for (what, one, two) in
        [("counters", left, right), ("windows", hits[0], hits[1]), ("budgets", reserved[0], reserved[1])]
    {
        if one != two {
            breaches.push(format!("subject {subject}: half of a step is there: {what} of {one} and {two}"));
        }
    }
    Sums { paired: left, hits: hits[0], reserved: reserved[0] }
}

fn used(caller: &mut Caller, partition: &str, command: Command) -> [i64; 2] {
    match caller.one(partition, command) {
        CommandResult::Hit { windows: usages, .. } | CommandResult::Reserved { budgets: usages, .. } => {
            let used = |usage: &Usage| i64::try_from(usage.used).expect("within the bounds of the protocol");
            [used(&usages[0]), used(&usages[1])]
        }
        other => panic!("a look answered {other:?}"),
    }
}

/// A counter, which is 0 where there is none, and must end some time where there is one.
fn counter(caller: &mut Caller, partition: &str, name: &str, breaches: &mut Breaches) -> i64 {
    let (value, ttl_ms) = caller.record(partition, name);
    if value.is_some() != ttl_ms.is_some_and(|ttl_ms| (1..=LONG_MS).contains(&ttl_ms)) {
        breaches.push(format!("{partition}, {name}: {value:?} lives another {ttl_ms:?} ms"));
    }
    value.map_or(0, |value| value.parse().expect("a counter is an integer"))
}

/// Counters that were made in the round: 1 or absent, never without an end.
fn check_counters(caller: &mut Caller, round: &[Operation], breaches: &mut Breaches) {
    for operation in round {
        let Effect::Fresh { counter } = &operation.effect else { continue };
        let (value, ttl_ms) = caller.record(COUNTERS, counter);
        let good = match (value.as_deref(), ttl_ms) {
            (Some("1"), Some(ttl_ms)) => (1..=COUNTER_LIFE_MS).contains(&ttl_ms),
            (None, None) => operation.response.is_none(),
            _ => false,
        };
        if !good {
            breaches
                .push(format!("{counter}: {value:?} lives another {ttl_ms:?} ms; {:?}", operation.response));
        }
    }
}

/// Sends an operation twice more: the answer that was given stands, and what was not answered has one now.
fn send_again(caller: &mut Caller, operation: &mut Operation, breaches: &mut Breaches) {
    for _ in 0..2 {
        let response = match caller.run(&operation.body) {
            Ok(response) => response,
            Err(error) => {
                breaches.push(format!("{:?}, sent again: {error}", operation.effect));
                return;
            }
        };
        if let Some(first) = &operation.response {
            let same = first
                .steps
                .iter()
                .map(|step| &step.results)
                .eq(response.steps.iter().map(|step| &step.results));
            let replayed = !is_recorded(first) || response.steps.iter().all(|step| step.replayed);
            if !same || !replayed {
                breaches.push(format!("{:?}: {first:?} became {response:?}", operation.effect));
            }
        }
        operation.response = Some(response);
    }
}

/// Whether something changed: only then is there a record to answer from.
fn is_recorded(response: &Response) -> bool {
    let refused = |result: &CommandResult| {
        matches!(
            result,
            CommandResult::Set { written: false, .. } | CommandResult::Refund { refunded: false, .. }
        )
    };
    !response.steps.iter().flat_map(|step| &step.results).any(refused)
}

/// One winner each, whose value stands.
fn check_claims(caller: &mut Caller, round: &[Operation], breaches: &mut Breaches) {
    let mut winners: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for operation in round {
        let Effect::Claim { record, value } = &operation.effect else { continue };
        let result = operation.response.as_ref().and_then(|response| response.steps[0].results.first());
        let winners = winners.entry(record).or_default();
        if matches!(result, Some(CommandResult::Set { written: true, .. })) {
            winners.insert(value);
        }
    }
    for (record, winners) in winners {
        let (value, ttl_ms) = caller.record(CLAIMS, record);
        let stands = value.as_deref().is_some_and(|value| winners.contains(value));
        if winners.len() != 1 || !stands || ttl_ms.is_none() {
            breaches.push(format!("{record}: {value:?} stands ({ttl_ms:?} ms), {winners:?} won"));
        }
    }
}

/// However many clients sent it, whenever: counted once.
fn check_same(same: &BTreeMap<&str, Vec<&Response>>, breaches: &mut Breaches) {
    for (counter, responses) in same {
        let once = |response: &&&Response| {
            !matches!(response.steps[0].results[..], [CommandResult::Increment { value: 1, .. }])
        };
        if let Some(other) = responses.iter().find(once) {
            breaches.push(format!("{counter}, one operation: {other:?}"));
        }
    }
}
