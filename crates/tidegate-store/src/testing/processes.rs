//! The parts of the contract that two processes could break, with each handle in a process of its own.
//!
//! A test starts two children, its own binary again, in each of which [`take_part`] serves on a handle of the
//! child's own; [`check_processes`] tells both what to do at the same time, and compares what they saw.

use std::{
    env,
    io::{self, BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
};

use super::cases::{bump_all, count, counts, key};
use crate::{Key, LimitStore, LimitStoreExt, StoreError, View};

/// What begins a line that one process says to the other, beside whatever else a test binary prints.
const MARK: &str = "tidegate-contract:";
/// Calls at once in each process: together 50.
const CALLS: usize = 25;
const LIMIT: u64 = 5;
const ROUNDS: u64 = 20;
const KEYS: usize = 6;
const LONG_MS: u64 = 60 * 60 * 1000;

/// What both do at once, and the sum of what that comes to over both of them and all rounds.
const PARTS: [(&str, u64); 5] = [
    // A key's first attempts: exactly as many as the limit are admitted.
    ("attempts", ROUNDS * LIMIT),
    // Updates of all keys, named in orders that are in each other's way: how many were seen torn or refused.
    ("orders", 0),
    // The counters that these left behind.
    ("total", 2 * ROUNDS * (CALLS * KEYS) as u64),
    // Claims that are made and given back: how many callers had one while another did.
    ("claims", 0),
    // Sweeps at once over rows that live and rows that die: how many of those that live are missing after it.
    ("sweeps", 0),
];

/// Where a child finds its store.
const PLACE: &str = "TIDEGATE_CONTRACT_STORE";

/// Where the store is that this process shall [`take_part`] on; none where it is no child.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a child of a test, which is told so")]
pub fn place_of_child() -> Option<String> {
    env::var(PLACE).ok()
}

/// Serves in a child: does what the parent says on its standard input, each part on `store`, and says what came of
/// it, until the parent has heard enough.
///
/// # Errors
/// The store's, or those of the pipes to the parent.
pub async fn take_part(store: Arc<dyn LimitStore>) -> Result<(), Box<dyn std::error::Error>> {
    say("ready")?;
    for line in BufReader::new(io::stdin()).lines() {
        let line = line?;
        let (part, round) = line.split_once(' ').ok_or("a line that is no order")?;
        let seen = play(&store, part, round.parse()?).await?;
        say(&seen.to_string())?;
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "it is what the parent reads")]
fn say(what: &str) -> io::Result<()> {
    println!("{MARK}{what}");
    io::stdout().flush()
}

/// Starts this test binary twice more, with nothing but the test called `test`, which shall [`take_part`] on the
/// store at `place`, and has both keep the contract there.
///
/// # Errors
/// What they broke, or why it could not be seen.
pub fn check_processes(test: &str, place: &str) -> Result<(), String> {
    let mut players = Vec::new();
    for _ in 0..2 {
        players.push(Player::start(test, place).map_err(|error| format!("starting a process: {error}"))?);
    }
    for player in &mut players {
        player.hear()?;
    }
    for (part, right) in PARTS {
        let rounds = if part == "total" { 1 } else { ROUNDS };
        let mut sum = 0;
        for round in 0..rounds {
            let told = if part == "total" { &mut players[..1] } else { &mut players[..] };
            for player in &mut *told {
                player.tell(&format!("{part} {round}"))?;
            }
            for player in told {
                sum += player.hear()?.parse::<u64>().map_err(|_| "a process said no number".to_owned())?;
            }
        }
        if sum != right {
            return Err(format!("{part}: {sum}, not {right}"));
        }
    }
    Ok(())
}

/// A child, killed when it is dropped.
struct Player {
    child: Child,
    orders: ChildStdin,
    words: BufReader<ChildStdout>,
}

impl Player {
    fn start(test: &str, place: &str) -> io::Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["--exact", test, "--nocapture"]).env(PLACE, place);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(orders), Some(words)) = pipes else { return Err(io::ErrorKind::BrokenPipe.into()) };
        Ok(Self { child, orders, words: BufReader::new(words) })
    }

    fn tell(&mut self, order: &str) -> Result<(), String> {
        writeln!(self.orders, "{order}").map_err(|error| format!("telling a process {order:?}: {error}"))
    }

    fn hear(&mut self) -> Result<String, String> {
        let mut line = String::new();
        loop {
            line.clear();
            match self.words.read_line(&mut line) {
                Ok(0) => return Err("a process ended before it had an answer".to_owned()),
                Ok(_) => {}
                Err(error) => return Err(format!("hearing of a process: {error}")),
            }
            if let Some((_, said)) = line.split_once(MARK) {
                return Ok(said.trim().to_owned());
            }
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One process's part of a round.
async fn play(store: &Arc<dyn LimitStore>, part: &str, round: u64) -> Result<u64, StoreError> {
    let keys = || (0..KEYS).map(|number| key(format!("order {number}"))).collect::<Vec<Key>>();
    match part {
        "attempts" => {
            sum((0..CALLS).map(|_| attempt(Arc::clone(store), key(format!("attempt {round}"))))).await
        }
        "orders" => {
            let calls = (0..CALLS).map(|call| {
                let (store, mut keys) = (Arc::clone(store), keys());
                keys.rotate_left(call % KEYS);
                if call % 4 < 2 {
                    keys.reverse();
                }
                async move { store.update(keys, torn_or_bumped).await }
            });
            sum(calls).await
        }
        "total" => Ok(counts(store, keys()).await?.into_iter().sum()),
        "claims" => sum((0..CALLS).map(|_| claim(Arc::clone(store)))).await,
        _ => {
            let rows = || vec![key(format!("lives {round}")), key(format!("dies {round}"))];
            let put = store.update(rows(), |view| {
                view.put(0, b"x".as_slice(), view.now_ms() + LONG_MS);
                view.put(1, b"x".as_slice(), view.now_ms() + 1);
            });
            put.await?;
            store.sweep().await?;
            Ok(u64::from(store.read(rows()).await?[0].is_none()))
        }
    }
}

/// 1 if there was room under the limit.
async fn attempt(store: Arc<dyn LimitStore>, row: Key) -> Result<u64, StoreError> {
    let attempt = store.update(vec![row], |view| {
        let used = count(view.get(0));
        if used < LIMIT {
            view.put(0, (used + 1).to_le_bytes().as_slice(), view.now_ms() + LONG_MS);
        }
        u64::from(used < LIMIT)
    });
    attempt.await
}

/// Adds one to every counter; 1 if they were not all alike.
fn torn_or_bumped(view: &mut View<'_>) -> u64 {
    let first = count(view.get(0));
    let torn = (0..KEYS).any(|index| count(view.get(index)) != first);
    bump_all(view, KEYS);
    u64::from(torn)
}

/// Claims a row that is deleted when the claim is given back, with a second row that counts who has it: 1 if
/// another one had it, too.
async fn claim(store: Arc<dyn LimitStore>) -> Result<u64, StoreError> {
    let rows = || vec![key("claim"), key("holders")];
    let claimed = store.update(rows(), |view| {
        if view.get(0).is_some() {
            return None;
        }
        let holders = count(view.get(1)) + 1;
        view.put(0, b"mine".as_slice(), view.now_ms() + LONG_MS);
        view.put(1, holders.to_le_bytes().as_slice(), view.now_ms() + LONG_MS);
        Some(holders)
    });
    let Some(holders) = claimed.await? else { return Ok(0) };
    let given_back = store.update(rows(), |view| {
        view.delete(0);
        let holders = count(view.get(1)) - 1;
        view.put(1, holders.to_le_bytes().as_slice(), view.now_ms() + LONG_MS);
        holders
    });
    Ok(u64::from(holders != 1 || given_back.await? != 0))
}

/// Runs `calls` at once; the sum of their answers.
async fn sum<F>(calls: impl Iterator<Item = F>) -> Result<u64, StoreError>
where
    F: Future<Output = Result<u64, StoreError>> + Send + 'static,
{
    let mut tasks: tokio::task::JoinSet<_> = calls.collect();
    let mut sum = 0;
    while let Some(answer) = tasks.join_next().await {
        sum += answer.unwrap_or(Err(crate::Unavailable::Backend.into()))?;
    }
    Ok(sum)
}
