//! A guard whose configuration has faults answers nobody, says why, and can be mended while it runs.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::support::{
    eventually,
    message::{incr, one_step},
    operator::call,
    server::{SECRET, Server, Setup},
    spending::{assert_refused, budgeted, carrying, looks},
    wire::{self, Reply, Wire},
};

#[test]
fn every_fault_of_the_guard_is_named_and_answers_503() {
    let with_space = format!("{SECRET} ");
    let table: [(&str, &str, &str); 21] = [
        ("guard.secrets", "short", "guard.secrets[0]"),
        ("guard.secrets", &with_space, "guard.secrets[0]"),
        ("guard.operator_token", "short", "guard.operator_token"),
        ("guard.operator_token", SECRET, "guard.operator_token"),
        ("guard.daily_budget", "0", "guard.daily_budget"),
        ("guard.daily_budget", "-1", "guard.daily_budget"),
        ("guard.daily_budget", "1e6", "guard.daily_budget"),
        ("guard.daily_budget", "a million", "guard.daily_budget"),
        ("guard.daily_budget", "9007199254740992", "guard.daily_budget"),
        ("guard.family_budgets", "offline", "guard.family_budgets"),
        ("guard.family_budgets", "offline=", "guard.family_budgets"),
        ("guard.family_budgets", "offline=-5", "guard.family_budgets"),
        ("guard.family_budgets", "offline=1.5", "guard.family_budgets"),
        ("guard.family_budgets", "offline=5,", "guard.family_budgets"),
        ("guard.family_budgets", "ofline=5", "guard.family_budgets"),
        ("guard.family_budgets", "offline=5,offline=5", "guard.family_budgets"),
        ("guard.family_budgets", "offline=600000,replay=400001", "guard.family_budgets"),
        ("guard.families.login.reserve_bp", "0", "guard.families.login"),
        ("guard.families.proxy.reserve_bp", "10001", "guard.families.proxy.reserve_bp"),
        ("guard.families.proxy.requires", "network/24", "guard.families.proxy.requires[0]"),
        ("guard.families.proxy.shares_bp", "source=10001", "guard.families.proxy.shares_bp"),
    ];
    for (key, value, named) in table {
        let setup = Setup::new().set(key, value).even_if_not_ready();
        let server = setup.start();
        let what = format!("{key} = {value:?}");
        assert_answers_nobody(&server, &what);
        server.wait_for_log(&format!("{named}: "));
        let log = server.log();
        assert!(log.contains("guard-misconfigured"), "{what}: {log}");
        let checked = setup.command(&["check"]).output().unwrap();
        let said = String::from_utf8([checked.stdout, checked.stderr].concat()).unwrap();
        assert_ne!(checked.status.code(), Some(0), "{what}: {said}");
        assert!(said.contains(&format!("{named}: ")), "{what}: {said}");
        for secret in [SECRET, &server.made_secret("operator_token")] {
            assert!(!log.contains(secret) && !said.contains(secret), "{what}: {log}{said}");
        }
    }
}

#[test]
fn a_check_names_every_fault_at_once() {
    let setup = Setup::new()
        .set("guard.secrets", "short")
        .set("guard.operator_token", "short too")
        .set("guard.daily_budget", "none")
        .set("guard.family_budgets", "nobody=5")
        .set("guard.families.proxy.reserve_bp", "10001");
    let checked = setup.command(&["check"]).output().unwrap();
    let said = String::from_utf8([checked.stdout, checked.stderr].concat()).unwrap();
    assert_ne!(checked.status.code(), Some(0), "{said}");
    for key in ["secrets[0]", "operator_token", "daily_budget", "family_budgets", "families.proxy.reserve_bp"]
    {
        assert!(said.contains(&format!("guard.{key}: ")), "{key}: {said}");
    }
    let server = setup.even_if_not_ready().start();
    assert_answers_nobody(&server, "five faults");
    for key in ["secrets[0]", "operator_token", "daily_budget", "family_budgets", "families.proxy.reserve_bp"]
    {
        server.wait_for_log(&format!("guard.{key}: "));
    }
}

/// Whoever copies a secret out of the data directory may take the wrong line.
#[test]
fn a_signing_secret_of_the_data_directory_is_no_operators_token_and_the_other_way_round() {
    for (key, made, other) in [
        ("guard.operator_token", "guard_secret", "operator_token"),
        ("guard.secrets", "operator_token", "guard_secret"),
    ] {
        let setup = Setup::new().unset("guard.secrets");
        let server = setup.start();
        let token = server.made_secret("operator_token");
        let line = |secret: &str| match key {
            "guard.secrets" => format!("secrets = [\"{secret}\"]\n"),
            _ => format!("operator_token = \"{secret}\"\n"),
        };
        let secret = server.made_secret(made);
        write(&server, &line(&secret));
        server.signal(Signal::HUP);
        server.wait_for_log("reload-refused");
        let state = Wire::tcp(server.guard).unwrap().exchange(&call(&token, "GET", "/control/state", ""));
        assert_eq!(state.unwrap().status, 200, "what is in force stays");
        drop(server);

        let server = setup.even_if_not_ready().start();
        assert_answers_nobody(&server, key);
        let said = format!("tidegate.toml:2: {key}: is the same as {made} of the data directory");
        server.wait_for_log(&said);
        let checked = server.setup().command(&["check"]).output().unwrap();
        let out = String::from_utf8(checked.stdout).unwrap();
        assert!(checked.status.code() == Some(78) && out.contains(&said), "{out}");
        assert!(!out.contains(&secret) && !server.log().contains(&secret), "{out}");

        // The one that is made for it is fine.
        reload(&server, &line(&server.made_secret(other)));
        assert_eq!(wire::get(server.guard, "/readyz").unwrap().status, 200);
    }
}

#[test]
fn reloads_apply_budgets_and_shares_and_keep_counts() {
    let server = in_file("daily_budget = 100\nfamily_budgets = \"proxy=100\"\n");
    let visit = |commands: usize| server.rpc(&carrying(looks("proxy", commands), "source", "it"));
    assert_eq!(visit(5).status, 200);
    server.ok(&looks("proxy", 32));
    for _ in 0..20 {
        reload(&server, "daily_budget = 100\nfamily_budgets = \"proxy=100\"\n");
    }
    assert_eq!(server.used("proxy"), 37, "twenty reloads of the same");
    assert_refused(&visit(1), "guard_limited", "source");

    // A larger share and a larger budget hold at once, for those who are known too.
    reload(
        &server,
        "daily_budget = 200\nfamily_budgets = \"proxy=200\"\nfamilies.proxy.shares_bp = \"source=1000\"\n",
    );
    let proxy = || server.state()["families"]["proxy"].clone();
    assert_eq!((&proxy()["budget"], &proxy()["used"]), (&json!(200), &json!(37)));
    assert_eq!((visit(15).status, visit(1).status), (200, 429), "a tenth of 200, of which 5 were spent");

    // And so do smaller ones.
    reload(&server, "daily_budget = 50\nfamily_budgets = \"proxy=50\"\n");
    assert_refused(&server.rpc(&looks("proxy", 1)), "guard_stopped", "budget_exhausted");
    assert_eq!((&proxy()["used"], &proxy()["state"]), (&json!(52), &json!("stopped")));
    reload(&server, "daily_budget = 60\nfamily_budgets = \"proxy=60\"\n");
    assert_eq!(server.rpc(&looks("proxy", 8)).status, 200, "it had not been spent to its end");
    assert_eq!(proxy()["state"], "stopped");

    // Once it has been, more budget alone does not let it go on.
    reload(&server, "daily_budget = 100\nfamily_budgets = \"proxy=100\"\n");
    assert_refused(&server.rpc(&looks("proxy", 1)), "guard_stopped", "budget_exhausted");
    server.order("/control/resume", r#"{"families":["proxy"]}"#);
    assert_eq!(server.rpc(&looks("proxy", 1)).status, 200);
}

#[test]
fn a_faulty_reload_changes_nothing_and_a_good_one_mends_a_faulty_start() {
    let server = in_file("daily_budget = 100\nfamily_budgets = \"proxy=100\"\n");
    server.ok(&looks("proxy", 32));
    write(&server, "daily_budget = 100\nfamily_budgets = \"proxy=101\"\n");
    server.signal(Signal::HUP);
    server.wait_for_log("reload-refused");
    server.wait_for_log("hands out 101 commands");
    let proxy = server.state()["families"]["proxy"].clone();
    assert_eq!((&proxy["budget"], &proxy["used"]), (&json!(100), &json!(32)));
    assert_eq!(server.rpc(&looks("proxy", 1)).status, 200);

    // The same file at a start leaves a guard that answers nobody, until it is mended.
    let setup = server.setup().clone().even_if_not_ready();
    drop(server);
    let server = setup.start();
    assert_answers_nobody(&server, "a split over the whole");
    reload(&server, "daily_budget = 101\nfamily_budgets = \"proxy=101\"\n");
    assert_eq!(server.rpc(&looks("proxy", 1)).status, 200);
    assert_eq!(server.used("proxy"), 34);
}

/// A server whose `[guard]` is in a file, so that it can be reloaded.
fn in_file(guard: &str) -> Server {
    let setup = budgeted(1).unset("guard.daily_budget").unset("guard.family_budgets");
    fs::write(setup.folder().join("tidegate.toml"), format!("[guard]\n{guard}")).unwrap();
    setup.start()
}

fn write(server: &Server, guard: &str) {
    fs::write(server.setup().folder().join("tidegate.toml"), format!("[guard]\n{guard}")).unwrap();
}

#[track_caller]
fn reload(server: &Server, guard: &str) {
    let reloads = || server.log().matches("configuration reloaded").count();
    let before = reloads();
    write(server, guard);
    server.signal(Signal::HUP);
    eventually("the reload", || (reloads() > before).then_some(()));
}

/// Every RPC and every operator's call is unavailable, while the process lives.
#[track_caller]
fn assert_answers_nobody(server: &Server, what: &str) {
    let calls = [
        server.rpc(&looks("proxy", 1)),
        server.rpc(&one_step("nobody", json!([incr("k")]))),
        server.control("GET", "/control/state", ""),
        server.control("GET", "/control/audit", ""),
        server.control("POST", "/control/stop", ""),
        server.control("POST", "/control/resume", ""),
    ];
    for reply in &calls {
        assert_unavailable(reply, what);
    }
    assert_eq!(["/healthz", "/readyz"].map(|path| wire::get(server.guard, path).unwrap().status), [200, 503]);
}

#[track_caller]
fn assert_unavailable(reply: &Reply, what: &str) {
    assert_eq!((reply.status, reply.code().as_str()), (503, "guard_unavailable"), "{what}");
    assert_eq!(reply.header("retry-after"), Some("30"), "{what}");
    let error = &reply.json()["error"];
    assert_eq!((&error["retry_after_ms"], &error["reason"]), (&json!(30_000), &json!(null)), "{what}");
}
