//! kill -9 under load, again and again on one data directory.

use std::{
    io,
    net::SocketAddr,
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread,
};

use tidegate_protocol::{Command, CommandResult, Response};

use crate::{
    caller::{Caller, key},
    ledger::{Breaches, Ledger},
    support::{
        DEADLINE,
        server::{Server, Setup},
    },
    workload::{Choices, Effect, LONG_MS, Operation, Random, pairs},
};

const KILLS: usize = 20;
const CLIENTS: usize = 6;
/// A kill comes after up to so many acknowledgements: at once in some rounds, amid full batches in others.
const ACKNOWLEDGED_MAX: usize = 120;

#[test]
fn twenty_kills_lose_nothing_that_was_flushed() {
    twenty_kills("fsync");
}

#[test]
fn twenty_kills_lose_nothing_that_the_system_has() {
    twenty_kills("process");
}

/// The control of the two above: a store that keeps nothing, under the same load and the same checks.
#[test]
fn the_ledger_notices_a_store_that_loses_everything() {
    for setup in [Setup::new().set("store.kind", "memory"), Setup::new().set("store.durability", "none")] {
        let mut killed = Killed::start(&setup, 7);
        let breaches = killed.round(0, ACKNOWLEDGED_MAX);
        let says = |text: &str| breaches.iter().any(|breach| breach.contains(text));
        assert!(says("acknowledged") && says("became"), "{breaches:#?}");
    }
}

/// And the control for halves and for what counts twice.
#[test]
fn the_ledger_notices_half_a_step_and_what_nobody_sent() {
    let server = Setup::new().start();
    let mut caller = Caller::to(server.guard);
    let add = |name: &str| Command::increment(key(name), 1, LONG_MS);
    for (name, said) in
        [("left", "half of a step is there"), ("right", "1 found; 0 before, 0 acknowledged, at most 0")]
    {
        caller.one(&pairs(0), add(name));
        let breaches = Ledger::default().settle(&mut caller, &mut []);
        assert!(breaches.iter().any(|breach| breach.contains(said)), "{breaches:#?}");
    }
}

fn twenty_kills(durability: &str) {
    let seed = seed();
    let mut random = Random(seed);
    // A busy machine is no fault of the store.
    let setup = Setup::new().set("store.durability", durability).set("store.deadline_ms", "20000");
    let mut killed = Killed::start(&setup, seed);
    for round in 0..KILLS {
        let acknowledged = random.below(ACKNOWLEDGED_MAX);
        let breaches = killed.round(round, acknowledged);
        assert!(breaches.is_empty(), "CRASH_SEED={seed}, round {round}: {breaches:#?}");
    }
    assert!(killed.unanswered > 0, "CRASH_SEED={seed}: no kill met an operation on its way");
}

/// A server that is killed and started again.
struct Killed {
    server: Option<Server>,
    ledger: Ledger,
    seed: u64,
    unanswered: usize,
}

impl Killed {
    fn start(setup: &Setup, seed: u64) -> Self {
        Self { server: Some(setup.start()), ledger: Ledger::default(), seed, unanswered: 0 }
    }

    /// Kills the server after so many acknowledgements, starts it again, and checks.
    fn round(&mut self, round: usize, acknowledged: usize) -> Breaches {
        let server = self.server.take().expect("put back below");
        let (mut operations, server) = load_and_kill(server, self.seed, round, acknowledged);
        self.unanswered += operations.iter().filter(|operation| operation.response.is_none()).count();
        let breaches = self.ledger.settle(&mut Caller::to(server.guard), &mut operations);
        self.server = Some(server);
        breaches
    }
}

/// Everything that the clients sent, and the server that was started after the kill.
fn load_and_kill(server: Server, seed: u64, round: usize, acknowledged: usize) -> (Vec<Operation>, Server) {
    thread::scope(|scope| {
        let (told, acknowledgements) = channel();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (told, address) = (told.clone(), server.guard);
                scope.spawn(move || send_until_lost(address, &mut Choices::of(seed, round, client), &told))
            })
            .collect();
        drop(told);
        for _ in 0..acknowledged {
            match acknowledgements.recv_timeout(DEADLINE) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => panic!("CRASH_SEED={seed}, round {round}: no answers"),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("CRASH_SEED={seed}, round {round}: no client has a connection")
                }
            }
        }
        let server = server.kill_and_restart();
        let sent = clients.into_iter().flat_map(|client| client.join().expect("a client does not panic"));
        (sent.collect(), server)
    })
}

/// Sends until an answer is lost.
fn send_until_lost(address: SocketAddr, choices: &mut Choices, told: &Sender<()>) -> Vec<Operation> {
    let mut caller = Caller::to(address);
    let mut sent = Vec::new();
    loop {
        let mut operation = choices.next();
        let answered = caller.post(&operation.body).and_then(|reply| match reply.status {
            // Past its deadline: executed or not. A busy machine may be that slow.
            503 => Ok(None),
            _ => crate::caller::executed(&reply).map(Some),
        });
        let lost = answered.as_ref().err().map(io::Error::kind);
        operation.response = answered.ok().flatten();
        if let (Effect::Reserve { subject }, Some(receipt)) =
            (&operation.effect, operation.response.as_ref().and_then(receipt_of))
        {
            choices.keep(*subject, receipt);
        }
        let acknowledged = operation.response.is_some();
        sent.push(operation);
        if let Some(kind) = lost {
            assert_ne!(kind, io::ErrorKind::Other, "an answer that no guard store gives");
            return sent;
        }
        if acknowledged {
            // The test may have heard enough.
            let _ = told.send(());
        }
    }
}

fn receipt_of(response: &Response) -> Option<tidegate_protocol::name::ReceiptId> {
    match response.steps.first()?.results.first()? {
        CommandResult::Reserved { receipt, .. } => *receipt,
        _ => None,
    }
}

/// `CRASH_SEED`, to run again what failed, or another one each time.
fn seed() -> u64 {
    let given = std::env::var_os("CRASH_SEED").and_then(|seed| seed.to_str()?.parse().ok());
    given.unwrap_or_else(|| {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).expect("the system gives random numbers");
        u64::from_le_bytes(bytes)
    })
}
