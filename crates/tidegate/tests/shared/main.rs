//! Instances of the real binary, two or three, over one store that they share: on PostgreSQL, Redis and MariaDB, each a real
//! server that the test starts. Budgets to the last command, one stop for all, one winner, one effect, and a
//! database that goes away and comes back.

#![allow(clippy::panic, reason = "a test fails by panicking and says why")]

#[path = "../support/mod.rs"]
mod support;

mod policies;
mod rotation;

use std::{
    os::unix::fs::PermissionsExt,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use serde_json::{Value, json};
use support::{
    eventually,
    message::{digest, fresh_op, get, incr, one_step, post_to, set},
    server::{SECRET, Server, Setup},
    spending::{assert_refused, split},
    wire::Reply,
};
use tidegate_test_servers::{MariaDb, PostgresServer, RedisServer};

/// More commands than a test sends.
const AMPLE: u64 = 100_000;
const OPERATOR: &str = "e2e-operator-token-0123456789abcdef-01";

/// Instances of one service.
struct Site {
    instances: Vec<Server>,
}

impl Site {
    /// So many of them over the store of this kind at this URL, each number of them on rows of its own, with a
    /// budget for the family `proxy`, and an ample one for `offline`.
    fn start(kind: &str, url: &str, instances: usize, budget: u64) -> Self {
        let instance = |_| {
            split(budget + AMPLE, &format!("proxy={budget},offline={AMPLE}"))
                .set("store.kind", kind)
                .set("store.url", url)
                .set("store.secret", format!("{instances} instances with a budget of {budget}"))
                .set("guard.families.proxy.shares_bp", "source=10000")
                .set("guard.operator_token", OPERATOR)
                .unset("store.durability")
        };
        let setups: Vec<Setup> = (0..instances).map(instance).collect();
        migrate(&setups[0]);
        Self { instances: setups.iter().map(Setup::start).collect() }
    }

    fn control(&self, number: usize, method: &str, target: &str) -> Value {
        control(&self.instances[number], method, target)
    }

    /// Sends the same number of requests to all at once, on several connections; all replies.
    fn at_once(&self, callers: usize, each: usize, request: impl Fn() -> Value + Sync) -> Vec<Reply> {
        thread::scope(|scope| {
            let (request, instances) = (&request, &self.instances);
            let send = move |server: &Server| post_to(server.guard, SECRET, request().to_string().as_bytes());
            let callers = (0..callers).map(|caller| {
                scope.spawn(move || {
                    let replies =
                        (0..each).map(|_| send(&instances[caller % instances.len()]).expect("an answer"));
                    replies.collect::<Vec<_>>()
                })
            });
            let callers: Vec<_> = callers.collect();
            callers.into_iter().flat_map(|caller| caller.join().expect("a caller ends")).collect()
        })
    }
}

fn control(server: &Server, method: &str, target: &str) -> Value {
    let call = support::operator::call(OPERATOR, method, target, "");
    let mut wire = support::wire::Wire::tcp(server.guard).expect("it listens");
    let reply = wire.exchange(&call).expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
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

/// Everything that so many instances owe each other.
fn keep_their_promises(kind: &str, url: &str, instances: usize) {
    let site = Site::start(kind, url, instances, 400);
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
    assert_eq!((winners.len(), winners.iter().filter(written).count()), (50, 1), "{kind}");

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
    stops_amid_load(&site, kind);
}

/// Whoever asks any instance after one has answered the stop is refused, and what was executed was answered.
fn stops_amid_load(site: &Site, kind: &str) {
    let (stopped, executed) = (AtomicBool::new(false), AtomicUsize::new(0));
    let request = |command: Value| {
        let mut request = one_step("p", json!([command]));
        request["family"] = json!("offline");
        request
    };
    let look = || request(get("amid load"));
    let before = site.at_once(1, 1, look)[0].json()["steps"][0]["results"][0]["value"].clone();
    assert_eq!(before, Value::Null);
    thread::scope(|scope| {
        for caller in 0..12 {
            let server = &site.instances[caller % site.instances.len()];
            let (stopped, executed) = (&stopped, &executed);
            scope.spawn(move || {
                loop {
                    let after = stopped.load(Ordering::SeqCst);
                    let counts = request(incr("amid load")).to_string();
                    let reply = post_to(server.guard, SECRET, counts.as_bytes()).expect("an answer");
                    if reply.status != 200 {
                        assert_refused(&reply, "guard_stopped", "operator_stop");
                        return;
                    }
                    assert!(!after, "{kind}: executed after the stop");
                    executed.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        eventually("some load", || (executed.load(Ordering::SeqCst) > 30).then_some(()));
        site.control(0, "POST", "/control/stop");
        stopped.store(true, Ordering::SeqCst);
    });
    site.control(1, "POST", "/control/resume");
    let executed = executed.load(Ordering::SeqCst).to_string();
    let after = site.at_once(1, 1, look)[0].json()["steps"][0]["results"][0]["value"].clone();
    assert_eq!(after, json!(executed), "{kind}");
}

/// What is answered while the database is away, and after it.
fn comes_back(kind: &str, url: &str, away: impl FnOnce(), back: impl FnOnce()) {
    let site = Site::start(kind, url, 2, 100_000);
    assert_eq!(admitted(&site.at_once(4, 5, counting)), 20);
    away();
    let replies = site.at_once(4, 1, counting);
    assert!(replies.iter().all(|reply| reply.code() == "guard_unavailable"), "{kind}: {replies:?}");
    back();
    for server in &site.instances {
        eventually("the database is back", || {
            let reply = post_to(server.guard, SECRET, counting().to_string().as_bytes()).ok()?;
            (reply.status == 200).then_some(())
        });
    }
    assert_eq!(admitted(&site.at_once(4, 5, counting)), 20);
}

/// What two and three instances do, and two whose database goes away.
macro_rules! on {
    ($kind:literal, $url:expr, $server:expr) => {{
        let mut server = $server.expect("the server starts");
        let url: String = $url(&server);
        keep_their_promises($kind, &url, 2);
        keep_their_promises($kind, &url, 3);
        let server = std::cell::RefCell::new(&mut server);
        let back = || server.borrow_mut().restart().expect("it starts");
        comes_back($kind, &url, || server.borrow_mut().kill(), back);
    }};
}

#[test]
fn on_postgres() {
    on!("postgres", PostgresServer::url, PostgresServer::start());
}

#[test]
fn on_redis() {
    on!("redis", RedisServer::url, RedisServer::start(&[]));
}

#[test]
fn on_mariadb() {
    let database = |server: &MariaDb| server.fresh_database().expect("a database");
    on!("mysql", database, MariaDb::start());
}

#[test]
fn on_sqlite_with_a_schema_that_is_missing() {
    // A first migration makes the directory, for its owner alone.
    let fresh = Setup::new().set("store.kind", "sqlite").set("store.path", "new/data");
    migrate(&fresh);
    let made = std::fs::metadata(fresh.folder().join("new/data")).expect("the data directory is there");
    assert_eq!(made.permissions().mode() & 0o777, 0o700);
    assert_eq!(fresh.start().ok(&counting())["steps"][0]["results"][0]["value"], 1);

    let setup = Setup::new().set("store.kind", "sqlite");
    let Err(ended) = setup.try_start() else { panic!("a store without tables was opened") };
    assert!(ended.log.contains("tidegate migrate"), "{}", ended.log);
    migrate(&setup);
    let server = setup.start();
    assert_eq!(server.ok(&counting())["steps"][0]["results"][0]["value"], 1);
    let server = server.kill_and_restart();
    assert_eq!(server.ok(&counting())["steps"][0]["results"][0]["value"], 2);
}
