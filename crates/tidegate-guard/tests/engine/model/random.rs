//! Random requests over few keys, few partitions and short periods, so that they meet often.

use proptest::{collection::vec, prelude::*, sample::select};
use tidegate_protocol::{
    Command, Request, Step,
    identity::Digest,
    name::ReceiptId,
    request::{Budget, Mode, SetMode, Window},
};

use crate::harness::{Bench, digest, family, forged};

/// What happens next.
#[derive(Debug, Clone)]
pub(super) enum Action {
    /// Time passes.
    Wait(u64),
    /// A request under an operation id of its own.
    Send(Draft),
    /// An earlier request once more, counted from the last.
    Repeat(usize),
    /// Another request under an earlier one's operation id, counted from the last.
    Reuse(usize, Draft),
    /// An earlier request with its last step replaced.
    Alter(usize, Vec<Draw>),
}

/// A request whose receipts are still to be chosen among those that were given out.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    family: &'static str,
    independent: bool,
    steps: Vec<(&'static str, Vec<Draw>)>,
}

#[derive(Debug, Clone)]
pub(super) enum Draw {
    Command(Command),
    /// Of the n-th receipt there is, or a forged one.
    Refund(usize),
}

/// The requests so far.
#[derive(Default)]
pub(super) struct Sent(Vec<Request>);

impl Sent {
    /// The request that an action sends, if it sends one.
    pub(super) fn next(&mut self, action: &Action, bench: &Bench, receipts: &[ReceiptId]) -> Option<Request> {
        let earlier = |back: usize| self.0.iter().rev().cycle().nth(back % self.0.len().max(1)).cloned();
        let request = match action {
            Action::Wait(ms) => {
                bench.advance(*ms);
                return None;
            }
            Action::Send(draft) => draft.request(bench.fresh(), receipts),
            Action::Repeat(back) => earlier(*back)?,
            Action::Reuse(back, draft) => {
                draft.request(Request { op: earlier(*back)?.op, ..bench.fresh() }, receipts)
            }
            Action::Alter(back, commands) => {
                let mut request = earlier(*back)?;
                let last = request.steps.last_mut()?;
                last.commands = settled(commands, receipts);
                request
            }
        };
        self.0.push(request.clone());
        Some(request)
    }
}

impl Draft {
    fn request(&self, base: Request, receipts: &[ReceiptId]) -> Request {
        let step = |(partition, commands): &(&str, Vec<Draw>)| Step {
            partition: digest(partition),
            commands: settled(commands, receipts),
        };
        let mode = if self.independent { Mode::Independent } else { Mode::Sequential };
        Request { family: family(self.family), mode, steps: self.steps.iter().map(step).collect(), ..base }
    }
}

fn settled(commands: &[Draw], receipts: &[ReceiptId]) -> Vec<Command> {
    let settle = |draw: &Draw| match draw {
        Draw::Command(command) => command.clone(),
        Draw::Refund(number) if receipts.is_empty() || number % 7 == 6 => Command::refund(forged(1)),
        Draw::Refund(number) => Command::refund(receipts[number % receipts.len()]),
    };
    commands.iter().map(settle).collect()
}

pub(super) fn actions() -> impl Strategy<Value = Vec<Action>> {
    let wait = select(vec![1, 499, 999, 1000, 1001, 1999, 3000, 60_000, 179_999, 180_000]);
    let action = prop_oneof![
        3 => wait.prop_map(Action::Wait),
        10 => draft().prop_map(Action::Send),
        3 => (0..4_usize).prop_map(Action::Repeat),
        1 => (0..4_usize, draft()).prop_map(|(back, draft)| Action::Reuse(back, draft)),
        1 => (0..4_usize, commands()).prop_map(|(back, commands)| Action::Alter(back, commands)),
    ];
    vec(action, 1..40)
}

fn draft() -> impl Strategy<Value = Draft> {
    let families = prop_oneof![4 => Just("proxy"), 1 => Just("password")];
    let step = (select(vec!["alice", "alice", "bob"]), commands());
    (families, any::<bool>(), vec(step, 1..4)).prop_map(|(family, independent, steps)| Draft {
        family,
        independent,
        steps,
    })
}

fn commands() -> impl Strategy<Value = Vec<Draw>> {
    let command = prop_oneof![
        4 => hit().prop_map(Draw::Command),
        5 => record().prop_map(Draw::Command),
        3 => reserve().prop_map(Draw::Command),
        2 => any::<usize>().prop_map(Draw::Refund),
    ];
    vec(command, 1..5)
}

fn hit() -> impl Strategy<Value = Command> {
    // A bucket's limit belongs to its key: what it has used refills at the rate of the limit that was charged.
    let window = |key: Digest| {
        (0..3_usize, 0..5_u64, select(vec![1000, 2000, 3000])).prop_map(move |(kind, limit, period_ms)| {
            match kind {
                0 => Window::sliding(key, limit, period_ms),
                1 => Window::fixed(key, limit, period_ms),
                _ => Window::bucket(key, 3, period_ms),
            }
        })
    };
    let windows = prop_oneof![
        window(digest("a")).prop_map(|window| vec![window]),
        (window(digest("a")), window(digest("b"))).prop_map(|(a, b)| vec![a, b]),
        (window(digest("b")), window(digest("a")), window(digest("c"))).prop_map(|(b, a, c)| vec![b, a, c]),
    ];
    (windows, select(vec![0, 1, 1, 1, 2, 4])).prop_map(|(windows, cost)| Command::hit(windows).costing(cost))
}

fn key() -> impl Strategy<Value = Digest> {
    select(vec!["a", "b", "c"]).prop_map(digest)
}

fn record() -> impl Strategy<Value = Command> {
    let ttl_ms = || select(vec![1000, 2000, 60_000]);
    let mode = select(vec![SetMode::Always, SetMode::Nx, SetMode::Xx]);
    let text = select(vec!["5", "-1", "word", "", "9007199254740990", "-9007199254740991"]);
    let set = (key(), text, proptest::option::of(ttl_ms()), mode, any::<bool>());
    let set = set.prop_map(|(key, text, ttl_ms, mode, keep_ttl)| {
        let needed = !(keep_ttl && mode == SetMode::Xx);
        let ttl_ms = if needed { Some(ttl_ms.unwrap_or(1000)) } else { ttl_ms };
        Command::Set { key, value: text.to_owned(), ttl_ms, mode, keep_ttl }
    });
    let by = select(vec![1, 2, -1, 0, 9_007_199_254_740_991]);
    prop_oneof![
        2 => key().prop_map(Command::get),
        1 => key().prop_map(Command::ttl),
        1 => key().prop_map(Command::delete),
        1 => (key(), ttl_ms()).prop_map(|(key, ttl_ms)| Command::expire(key, ttl_ms)),
        3 => set,
        3 => (key(), by, ttl_ms()).prop_map(|(key, by, ttl_ms)| Command::increment(key, by, ttl_ms)),
    ]
}

fn reserve() -> impl Strategy<Value = Command> {
    let budget = |name: &'static str| {
        (0..5_u64, select(vec![1000, 3000, 60_000]))
            .prop_map(move |(limit, period_ms)| Budget::new(digest(name), limit, period_ms))
    };
    let budgets = prop_oneof![
        budget("a").prop_map(|a| vec![a]),
        (budget("b"), budget("a")).prop_map(|(b, a)| vec![b, a]),
        (budget("a"), budget("b"), budget("c")).prop_map(|(a, b, c)| vec![a, b, c]),
    ];
    (budgets, any::<usize>(), select(vec![0, 1, 1, 1, 2, 3])).prop_map(|(budgets, target, cost)| {
        let target = target % budgets.len();
        Command::Reserve { budgets, target, cost }
    })
}
