//! What the clients of a killed server send: operations of every kind whose effect can be told afterwards.

use tidegate_protocol::{
    Command, Request, Response,
    name::{OperationId, ReceiptId},
    request::{Budget, Window},
};

use crate::caller::{body_of, key, partition_of, request};

/// Rows that all clients share.
pub(crate) const SUBJECTS: usize = 3;
/// Longer than any test: what is lost was not lost by expiring.
pub(crate) const LONG_MS: u64 = 3_600_000;
/// The life of counters that are made in the round, as an application would have it.
pub(crate) const COUNTER_LIFE_MS: u64 = 60_000;
/// No window of these tests ends while they run.
const PERIOD_MS: u64 = 60 * 24 * 3_600_000;
const LIMIT: u64 = 1_000_000_000;

/// What an operation does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Adds to two counters in one step, and to a third one in the next step.
    Pair { subject: usize, by: i64 },
    /// Charges a fixed and a sliding window.
    Hit { subject: usize },
    /// Takes 1 from two budgets.
    Reserve { subject: usize },
    /// Gives it back.
    Refund { subject: usize },
    /// Claims a record that others want too.
    Claim { record: String, value: String },
    /// Makes a counter.
    Fresh { counter: String },
    /// Adds 1 to a counter, under an operation id that all clients send.
    Same { counter: String },
}

/// An operation as it is sent, and what came back.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) effect: Effect,
    pub(crate) body: Vec<u8>,
    /// None: it may or may not have been executed.
    pub(crate) response: Option<Response>,
}

/// A client's choices: a function of the seed, the round and the client.
pub(crate) struct Choices {
    random: Random,
    round: usize,
    client: usize,
    made: usize,
    receipts: Vec<(usize, ReceiptId)>,
}

/// SplitMix64: enough for choices, and the same on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }

    fn id(&mut self) -> OperationId {
        let mut bits = [0; 16];
        bits[..8].copy_from_slice(&self.next().to_le_bytes());
        bits[8..].copy_from_slice(&self.next().to_le_bytes());
        OperationId::from_random(bits)
    }
}

impl Choices {
    pub(crate) fn of(seed: u64, round: usize, client: usize) -> Self {
        let mixed = Random(seed ^ ((round as u64) << 32) ^ (client as u64 + 1)).next();
        Self { random: Random(mixed), round, client, made: 0, receipts: Vec::new() }
    }

    /// The next operation of this client.
    pub(crate) fn next(&mut self) -> Operation {
        self.made += 1;
        let (round, client, made) = (self.round, self.client, self.made);
        let subject = self.random.below(SUBJECTS);
        let op = self.random.id();
        match self.random.below(7) {
            0 => {
                let by = i64::try_from(1 + self.random.below(9)).expect("small");
                operation(Effect::Pair { subject, by }, &pair(op, subject, by))
            }
            1 => operation(Effect::Hit { subject }, &one(op, &hits(subject), hit(1))),
            2 => operation(Effect::Reserve { subject }, &one(op, &attempts(subject), reserve(1))),
            3 => match self.receipts.pop() {
                Some((subject, receipt)) => {
                    let refund = Command::refund(receipt);
                    operation(Effect::Refund { subject }, &one(op, &attempts(subject), refund))
                }
                None => operation(Effect::Reserve { subject }, &one(op, &attempts(subject), reserve(1))),
            },
            4 => {
                let record = format!("claim {round} {}", self.random.below(10));
                let value = format!("client {client}, its {made}.");
                let claim = Command::claim(key(&record), value.as_str(), LONG_MS);
                operation(Effect::Claim { record, value }, &one(op, CLAIMS, claim))
            }
            5 => {
                let counter = format!("fresh {round} {client} {made}");
                let count = Command::increment(key(&counter), 1, COUNTER_LIFE_MS);
                operation(Effect::Fresh { counter }, &one(op, COUNTERS, count))
            }
            _ => {
                // The same bytes from every client that comes to this place.
                let counter = format!("same {round} {}", made % 8);
                let op = Random(round as u64 * 8 + made as u64 % 8).id();
                let count = Command::increment(key(&counter), 1, LONG_MS);
                operation(Effect::Same { counter }, &one(op, COUNTERS, count))
            }
        }
    }

    /// A receipt to give back later.
    pub(crate) fn keep(&mut self, subject: usize, receipt: ReceiptId) {
        self.receipts.push((subject, receipt));
    }
}

/// Where claims are.
pub(crate) const CLAIMS: &str = "claims";
/// Where counters that are made in the rounds are.
pub(crate) const COUNTERS: &str = "counters";

pub(crate) fn pairs(subject: usize) -> String {
    format!("pair {subject}")
}

pub(crate) fn totals(subject: usize) -> String {
    format!("total {subject}")
}

pub(crate) fn hits(subject: usize) -> String {
    format!("hits {subject}")
}

pub(crate) fn attempts(subject: usize) -> String {
    format!("attempts {subject}")
}

/// Both windows of a subject; a cost of 0 looks.
pub(crate) fn hit(cost: u64) -> Command {
    let windows =
        [Window::fixed(key("fixed"), LIMIT, PERIOD_MS), Window::sliding(key("sliding"), LIMIT, PERIOD_MS)];
    Command::hit(windows).costing(cost)
}

/// Both budgets of a subject; a cost of 0 looks.
pub(crate) fn reserve(cost: u64) -> Command {
    let budgets =
        [Budget::new(key("source"), LIMIT, PERIOD_MS), Budget::new(key("target"), LIMIT, PERIOD_MS)];
    Command::reserve(budgets).costing(cost)
}

fn pair(op: OperationId, subject: usize, by: i64) -> Request {
    let add = |name: &str| Command::increment(key(name), by, LONG_MS);
    request(op)
        .step(partition_of(&pairs(subject)), [add("left"), add("right")])
        .step(partition_of(&totals(subject)), [add("total")])
}

fn one(op: OperationId, partition: &str, command: Command) -> Request {
    request(op).step(partition_of(partition), [command])
}

fn operation(effect: Effect, request: &Request) -> Operation {
    Operation { effect, body: body_of(request), response: None }
}
