//! Two instances of the real binary over one store that they share: on PostgreSQL, Redis and MariaDB, each a real
//! server that the test starts. Budgets to the last command, one stop for all, one winner, one effect, and a
//! database that goes away and comes back.

#![allow(clippy::panic, reason = "a test fails by panicking and says why")]

#[path = "../support/mod.rs"]
mod support;

use std::thread;

use serde_json::{Value, json};
use support::{
    eventually,
    message::{digest, fresh_op, incr, post_to, set},
    server::{SECRET, Server, Setup},
    spending::{assert_refused, budgeted},
    wire::Reply,
};
use tidegate_test_servers::{MariaDb, PostgresServer, RedisServer};

const OPERATOR: &str = "e2e-operator-token-0123456789abcdef-01";

/// Two instances of one service.
struct Site {
    first: Server,
    second: Server,
}

impl Site {
    /// Over the store of this kind at this URL, with a budget for the family `proxy`.
    fn start(kind: &str, url: &str, budget: u64) -> Self {
        let instance = || {
            budgeted(budget)
                .set("store.kind", kind)
                .set("store.url", url)
                .set("guard.families.proxy.shares_bp", "source=10000")
                .set("guard.operator_token", OPERATOR)
                .unset("store.durability")
        };
        let (first, second) = (instance(), instance());
        migrate(&first);
        Self { first: first.start(), second: second.start() }
    }

    fn instances(&self) -> [&Server; 2] {
        [&self.first, &self.second]
    }

    fn control(&self, number: usize, method: &str, target: &str) -> Value {
        let server = self.instances()[number];
        let call = support::operator::call(OPERATOR, method, target, "");
        let mut wire = support::wire::Wire::tcp(server.guard).expect("it listens");
        let reply = wire.exchange(&call).expect("an answer");
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    /// Sends the same number of requests to both at once, on several connections; all replies.
    fn at_once(&self, callers: usize, each: usize, request: impl Fn() -> Value + Sync) -> Vec<Reply> {
        thread::scope(|scope| {
            let (request, instances) = (&request, self.instances());
            let send = move |server: &Server| post_to(server.guard, SECRET, request().to_string().as_bytes());
            let callers = (0..callers).map(|caller| {
                scope.spawn(move || {
                    let replies = (0..each).map(|_| send(instances[caller % 2]).expect("an answer"));
                    replies.collect::<Vec<_>>()
                })
            });
            let callers: Vec<_> = callers.collect();
            callers.into_iter().flat_map(|caller| caller.join().expect("a caller ends")).collect()
        })
    }
}

fn migrate(setup: &Setup) {
    let ran = setup.command(&["migrate"]).output().expect("cargo has built the binary");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

fn counting() -> Value {
    json!({"op": fresh_op(), "family": "proxy", "steps": [{"partition": digest("p"), "commands": [incr("k")]}]})
}

fn admitted(replies: &[Reply]) -> usize {
    replies.iter().filter(|reply| reply.status == 200).count()
}

/// Everything that instances owe each other.
fn keeps_its_promises(kind: &str, url: &str) {
    let site = Site::start(kind, url, 400);
    let replies = site.at_once(16, 40, counting);
    assert_eq!(admitted(&replies), 400, "{kind}");
    let refused = replies.iter().find(|reply| reply.status != 200).expect("some were refused");
    assert_refused(refused, "guard_stopped", "budget_exhausted");
    let state = site.control(1, "GET", "/control/state");
    assert_eq!(state["families"]["proxy"]["used"], 400, "{state}");

    site.control(0, "POST", "/control/resume");
    let claim = || {
        json!({"op": fresh_op(), "family": "proxy", "steps": [
            {"partition": digest("p"), "commands": [set("claimed", "mine", "nx")]}]})
    };
    let winners = site.at_once(10, 5, claim);
    let written = |reply: &&Reply| reply.json()["steps"][0]["results"][0]["written"] == true;
    assert_eq!(winners.iter().filter(written).count(), 1, "{kind}");

    let same = counting();
    let answers = site.at_once(10, 2, || same.clone());
    let fresh = answers.iter().filter(|reply| reply.json()["steps"][0]["replayed"] == false);
    assert_eq!(fresh.count(), 1, "{kind}: one effect");

    site.control(1, "POST", "/control/stop");
    let stopped = site.at_once(8, 5, counting);
    assert!(stopped.iter().all(|reply| reply.status == 503), "{kind}: a stop is a stop everywhere");
    assert_refused(&stopped[0], "guard_stopped", "operator_stop");
    site.control(0, "POST", "/control/resume");
    assert_eq!(admitted(&site.at_once(8, 5, counting)), 40, "{kind}");
}

/// What is answered while the database is away, and after it.
fn comes_back(kind: &str, url: &str, away: impl FnOnce(), back: impl FnOnce()) {
    let site = Site::start(kind, url, 100_000);
    assert_eq!(admitted(&site.at_once(4, 5, counting)), 20);
    away();
    let replies = site.at_once(4, 1, counting);
    assert!(replies.iter().all(|reply| reply.code() == "guard_unavailable"), "{kind}: {replies:?}");
    back();
    for server in site.instances() {
        eventually("the database is back", || {
            let reply = post_to(server.guard, SECRET, counting().to_string().as_bytes()).ok()?;
            (reply.status == 200).then_some(())
        });
    }
    assert_eq!(admitted(&site.at_once(4, 5, counting)), 20);
}

#[test]
fn on_postgres() {
    let mut server = PostgresServer::start().expect("PostgreSQL starts");
    let url = server.url();
    keeps_its_promises("postgres", &url);
    server.kill();
    let mut server = PostgresServer::start().expect("PostgreSQL starts");
    let url = server.url();
    let server = std::cell::RefCell::new(&mut server);
    comes_back(
        "postgres",
        &url,
        || server.borrow_mut().kill(),
        || server.borrow_mut().restart().expect("it starts"),
    );
}

#[test]
fn on_redis() {
    let mut server = RedisServer::start(&["--appendonly", "yes"]).expect("Redis starts");
    let url = server.url();
    keeps_its_promises("redis", &url);
    let server = std::cell::RefCell::new(&mut server);
    comes_back(
        "redis",
        &url,
        || server.borrow_mut().kill(),
        || server.borrow_mut().restart().expect("it starts"),
    );
}

#[test]
fn on_mariadb() {
    let mut server = MariaDb::start().expect("MariaDB starts");
    let url = server.fresh_database().expect("a database");
    keeps_its_promises("mysql", &url);
    let url = server.fresh_database().expect("a database");
    let server = std::cell::RefCell::new(&mut server);
    comes_back(
        "mysql",
        &url,
        || server.borrow_mut().kill(),
        || server.borrow_mut().restart().expect("it starts"),
    );
}

#[test]
fn on_sqlite_with_a_schema_that_is_missing() {
    let setup = Setup::new().set("store.kind", "sqlite");
    let Err(ended) = setup.try_start() else { panic!("a store without tables was opened") };
    assert!(ended.log.contains("tidegate migrate"), "{}", ended.log);
    migrate(&setup);
    let server = setup.start();
    assert_eq!(server.ok(&counting())["steps"][0]["results"][0]["value"], 1);
    let server = server.kill_and_restart();
    assert_eq!(server.ok(&counting())["steps"][0]["results"][0]["value"], 2);
}
