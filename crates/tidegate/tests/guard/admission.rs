//! What a request may spend before any of its steps runs: families and their budgets, and who has to say who
//! calls.

use serde_json::{Value, json};

use crate::support::{
    message::{hit, incr, one_step},
    server::{Server, Setup},
    spending::{assert_refused, budgeted, carrying, looks, split},
};

#[test]
fn without_a_split_four_families_share_the_daily_budget() {
    // The rounded part goes to nobody.
    for (daily_budget, expected) in [
        (None, [600_000, 100_000, 200_000, 100_000]),
        (Some(1_000), [600, 100, 200, 100]),
        (Some(9), [5, 0, 1, 0]),
    ] {
        let setup = daily_budget.map_or_else(Setup::new, |budget: u64| {
            Setup::new().set("guard.daily_budget", budget.to_string())
        });
        let server = setup.start();
        let families = server.state()["families"].clone();
        let names: Vec<_> = families.as_object().unwrap().keys().cloned().collect();
        assert_eq!(names, ["offline", "password", "proxy", "replay"]);
        let budgets = ["offline", "replay", "proxy", "password"].map(|name| families[name]["budget"].clone());
        assert_eq!(budgets, expected.map(|budget: u64| json!(budget)), "{daily_budget:?}");
    }
}

#[test]
fn a_family_that_the_split_does_not_name_gets_nothing() {
    let server =
        split(1_000, "offline=600, login=300").set("guard.families.login.requires", "principal").start();
    let state = server.state();
    for (name, budget, reserve) in
        [("offline", 600, 0), ("login", 300, 60), ("proxy", 0, 0), ("password", 0, 0), ("replay", 0, 0)]
    {
        let family = &state["families"][name];
        assert_eq!(
            (&family["budget"], &family["reserve_remaining"]),
            (&json!(budget), &json!(reserve)),
            "{name}"
        );
        let phase = if budget == 0 { "stopped" } else { "open" };
        assert_eq!(family["state"], phase, "{name}");
    }
    assert_refused(&server.rpc(&looks("proxy", 1)), "guard_stopped", "budget_exhausted");
    let login = carrying(looks("login", 1), "principal", "alice");
    assert_eq!(server.rpc(&login).status, 200);
    let unknown = server.rpc(&looks("logins", 1));
    assert_eq!((unknown.status, unknown.code().as_str()), (400, "bad_request"));
    assert!(
        unknown.message().starts_with("family: must be one of login, offline, "),
        "{}",
        unknown.message()
    );
}

#[test]
fn what_a_family_requires_has_to_be_there() {
    let server = Server::start();
    let table: [(&str, &[&str], Option<&str>); 9] = [
        ("offline", &[], None),
        ("proxy", &[], None),
        ("password", &[], Some("fairness.source")),
        ("password", &["principal", "network/24"], Some("fairness.source")),
        ("password", &["source"], None),
        ("replay", &[], Some("fairness.source")),
        ("replay", &["source"], Some("fairness.principal")),
        ("replay", &["principal"], Some("fairness.source")),
        ("replay", &["source", "principal"], None),
    ];
    for (family, axes, missing) in table {
        let request = axes.iter().fold(looks(family, 1), |request, axis| carrying(request, axis, "it"));
        let (before, reply) = (server.used(family), server.rpc(&request));
        let Some(place) = missing else {
            assert_eq!(reply.status, 200, "{family} {axes:?}: {}", reply.text());
            continue;
        };
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{family} {axes:?}");
        assert!(reply.message().starts_with(&format!("{place}: ")), "{family} {axes:?}: {}", reply.message());
        assert_eq!(server.used(family), before, "{family} {axes:?}");
    }
}

#[test]
fn three_reasons_to_be_stopped_are_told_apart() {
    let server = budgeted(10).start();
    assert_eq!(server.rpc(&looks("proxy", 7)).status, 200);
    assert_refused(&server.rpc(&looks("proxy", 4)), "guard_stopped", "budget_insufficient");
    assert_eq!(proxy(&server)["state"], "open", "too large a request stops nobody else");
    assert_eq!(server.rpc(&looks("proxy", 3)).status, 200, "to the last command");
    assert_refused(&server.rpc(&looks("proxy", 1)), "guard_stopped", "budget_exhausted");
    assert_refused(&server.rpc(&looks("proxy", 4)), "guard_stopped", "budget_exhausted");
    let seen = proxy(&server);
    assert_eq!(
        (&seen["used"], &seen["state"], &seen["warned"]),
        (&json!(10), &json!("stopped"), &json!(true))
    );
    server.order("/control/stop", "");
    for family in ["proxy", "offline"] {
        assert_refused(&server.rpc(&looks(family, 1)), "guard_stopped", "operator_stop");
    }
    assert_eq!(server.used("proxy"), 10, "refusals spend nothing");
    for (reason, count) in [("operator_stop", 1), ("budget_exhausted", 2), ("budget_insufficient", 1)] {
        let name = format!(r#"tidegate_guard_stops_total{{family="proxy",reason="{reason}"}}"#);
        assert_eq!(server.metric(&name), count, "{reason}");
    }
    assert_eq!(server.metric(r#"tidegate_guard_rpcs_total{ending="guard_stopped"}"#), 5);
}

#[test]
fn every_attempt_is_spent_whatever_becomes_of_its_steps() {
    let server = budgeted(100).start();
    let request = one_step("spent", json!([incr("k"), incr("k")]));
    server.ok(&request);
    assert_eq!(server.used("proxy"), 2);
    server.ok(&request);
    assert_eq!(server.used("proxy"), 4, "an answer from the record");
    let mut other = request;
    other["steps"][0]["commands"][1]["by"] = json!(5);
    assert_eq!(server.rpc(&other).status, 409);
    assert_eq!(server.used("proxy"), 6, "a conflict");
    let denied = hit("never", 0);
    let mut two_steps = one_step("spent", json!([denied]));
    let skipped = two_steps["steps"][0].clone();
    two_steps["steps"].as_array_mut().unwrap().push(skipped);
    assert_eq!(server.ok(&two_steps)["steps"][1]["status"], "skipped");
    assert_eq!(server.used("proxy"), 8, "a denied step and a skipped one");
    for (status, refused) in [(400, json!({"op": "short"})), (400, looks("nobody", 3))] {
        assert_eq!(server.rpc(&refused).status, status);
    }
    assert_eq!(server.post(&[b' '; 16 * 1024 + 1]).status, 413);
    assert_eq!(server.used("proxy"), 8, "what is not admitted spends nothing");
    assert_eq!(server.metric("tidegate_guard_commands_total"), 8);
    assert_eq!(server.metric(r#"tidegate_guard_family_spent{family="proxy"}"#), 8);
    assert_eq!(server.metric(r#"tidegate_guard_family_budget{family="proxy"}"#), 100);
}

#[test]
fn a_spent_budget_is_told_of_once_a_day() {
    let server = budgeted(10).start();
    let kinds = || ["budget-warning", "budget-exhausted"].map(|kind| lines(&server, kind));
    for _ in 0..7 {
        server.ok(&looks("proxy", 1));
    }
    assert_eq!(kinds(), [0, 0], "at 70 %");
    server.ok(&looks("proxy", 1));
    server.wait_for_log("budget-warning");
    server.ok(&looks("proxy", 1));
    assert_eq!(kinds(), [1, 0], "at 90 %");
    server.ok(&looks("proxy", 1));
    server.wait_for_log("budget-exhausted");
    for _ in 0..5 {
        assert_eq!(server.rpc(&looks("proxy", 1)).status, 503);
    }
    let server = server.kill_and_restart();
    assert_refused(&server.rpc(&looks("proxy", 1)), "guard_stopped", "budget_exhausted");
    assert_eq!(proxy(&server)["warned"], true);
    for kind in ["budget-warning", "budget-exhausted"] {
        assert_eq!(lines(&server, kind), 0, "{kind} was told of before the restart");
    }
    // A resume begins the day's usage afresh. The budget can be spent once more; the day has had its warning.
    server.order("/control/resume", r#"{"families":["proxy"]}"#);
    assert_eq!(proxy(&server)["warned"], true);
    server.ok(&looks("proxy", 10));
    server.wait_for_log("budget-exhausted");
    for (kind, count) in [("budget-warning", 0), ("budget-exhausted", 1)] {
        assert_eq!(lines(&server, kind), count, "{kind}");
        assert_eq!(
            server.metric(&format!(r#"tidegate_alerts_total{{kind="{kind}"}}"#)),
            count as u64,
            "{kind}"
        );
    }
}

fn proxy(server: &Server) -> Value {
    server.state()["families"]["proxy"].clone()
}

fn lines(server: &Server, kind: &str) -> usize {
    server.log().lines().filter(|line| line.contains(kind)).count()
}
