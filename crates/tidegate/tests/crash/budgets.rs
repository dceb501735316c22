//! Budgets and shares over kill -9: never more than they are, and no answer that was given is forgotten.

use std::{
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use serde_json::Value;
use tidegate_protocol::{Command, Request, name::Family};

use crate::{
    caller::{Caller, body_of, fresh_id, key, partition_of, request},
    support::{
        eventually,
        server::{Server, Setup},
        spending::split,
    },
};

const BUDGET: u64 = 1_200;
/// A sixth of it.
const SHARE_BP: u64 = 1_666;
const CLIENTS: usize = 8;
/// A kill comes after each so many acknowledgements, and so somewhere in a batch.
const ACKNOWLEDGED: u64 = 90;

#[test]
fn a_budget_is_spent_once_however_often_the_process_is_killed() {
    for durability in ["fsync", "process"] {
        let breaches = spend_over_kills(&setup().set("store.durability", durability));
        assert!(breaches.is_empty(), "{durability}: {breaches:#?}");
    }
}

/// The control: a store that forgets hands the budget out again, and the same checks see it.
#[test]
fn the_checks_notice_a_store_that_forgets() {
    let breaches = spend_over_kills(&setup().set("store.kind", "memory"));
    assert!(breaches.iter().any(|breach| breach.contains("acknowledged")), "{breaches:#?}");
}

fn setup() -> Setup {
    // A busy machine is no fault of the store.
    split(BUDGET + 1_000, &format!("proxy={BUDGET},offline=1000"))
        .set("guard.families.proxy.shares_bp", format!("source={SHARE_BP}"))
        .set("store.deadline_ms", "20000")
}

/// What the clients were told.
#[derive(Default)]
struct Told {
    /// Requests that were acknowledged, by client.
    acknowledged: [AtomicU64; CLIENTS],
    /// Requests whose answer was lost.
    lost: AtomicU64,
    /// Refusals other than those that there may be.
    strange: Mutex<Vec<String>>,
}

impl Told {
    fn acknowledged(&self) -> u64 {
        self.acknowledged.iter().map(|count| count.load(Ordering::SeqCst)).sum()
    }
}

/// Clients, each with a source of its own, spend until nobody is admitted any more, while the process is killed
/// again and again. Answers what broke a promise.
fn spend_over_kills(setup: &Setup) -> Vec<String> {
    let (told, mut breaches) = (Told::default(), Vec::new());
    let mut server = setup.start();
    for round in 0..6 {
        let before = told.acknowledged();
        let address = server.guard;
        server = thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    scope.spawn({
                        let told = &told;
                        move || spend_until_lost(address, client, told)
                    })
                })
                .collect();
            eventually("acknowledgements, or the budget's end", || {
                let enough = told.acknowledged() >= before + ACKNOWLEDGED;
                (enough || clients.iter().all(thread::ScopedJoinHandle::is_finished)).then_some(())
            });
            server.kill_and_restart()
        });
        check(&server, &told, &format!("round {round}"), &mut breaches);
    }
    (0..CLIENTS).for_each(|client| spend_until_lost(server.guard, client, &told));
    check(&server, &told, "the end", &mut breaches);
    let state = server.kill_and_restart().state()["families"]["proxy"].clone();
    if state["used"] != BUDGET || state["state"] != "stopped" {
        breaches.push(format!("the end: {state}"));
    }
    if told.lost.into_inner() == 0 {
        breaches.push("no kill met a request on its way".to_owned());
    }
    breaches.append(&mut told.strange.into_inner().expect("no client has panicked"));
    breaches
}

/// Spent is at least what was acknowledged, at most what was sent, never over the budget, and exactly what was
/// executed.
fn check(server: &Server, told: &Told, when: &str, breaches: &mut Vec<String>) {
    let acknowledged = told.acknowledged();
    let most = BUDGET.min(acknowledged + told.lost.load(Ordering::SeqCst));
    let used = server.used("proxy");
    if !(acknowledged..=most).contains(&used) {
        breaches.push(format!("{when}: {used} used; {acknowledged} acknowledged, at most {most}"));
    }
    let executed = executed(server);
    if executed != used {
        breaches.push(format!("{when}: {used} used and {executed} executed"));
    }
    let allowance = BUDGET * SHARE_BP / 10_000;
    for (client, count) in told.acknowledged.iter().enumerate() {
        let count = count.load(Ordering::SeqCst);
        if count > allowance {
            breaches.push(format!("{when}: client {client} was admitted {count} times of {allowance}"));
        }
    }
}

/// Sends increments until an answer is lost or none is admitted.
fn spend_until_lost(address: SocketAddr, client: usize, told: &Told) {
    let mut caller = Caller::to(address);
    loop {
        match caller.post(&body_of(&increment(client))) {
            Ok(reply) if reply.status == 200 => {
                told.acknowledged[client].fetch_add(1, Ordering::SeqCst);
            }
            Ok(reply) => {
                let error = &reply.json()["error"];
                let why = [&error["reason"], &error["axis"]].into_iter().find_map(Value::as_str);
                if !matches!(why, Some("budget_exhausted" | "source")) {
                    told.strange.lock().expect("no client panics").push(reply.text());
                }
                return;
            }
            Err(_) => {
                told.lost.fetch_add(1, Ordering::SeqCst);
                return;
            }
        }
    }
}

fn increment(client: usize) -> Request {
    let add = Command::increment(key("executed"), 1, 3_600_000);
    let mut request = request(fresh_id()).step(partition_of("spent"), [add]);
    request.fairness.source = Some(key(&format!("client {client}")));
    request
}

/// The sum of what was executed, at the cost of another family.
fn executed(server: &Server) -> u64 {
    let mut look = request(fresh_id()).step(partition_of("spent"), [Command::get(key("executed"))]);
    look.family = Family::parse("offline").expect("a default family");
    let reply = Caller::to(server.guard).post(&body_of(&look)).expect("an answer").json();
    reply["steps"][0]["results"][0]["value"].as_str().map_or(0, |value| value.parse().expect("a counter"))
}
