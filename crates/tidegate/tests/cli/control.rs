//! `tidegate control`: each of the operator's verbs against a running server.

use serde_json::json;

use crate::{
    shell::{start, tidegate, unconfigured, write},
    support::server::Setup,
};

#[test]
fn a_stop_stops_and_a_resume_resumes() {
    let server = start(&unconfigured());
    let setup = server.setup();
    tidegate(setup, "control state").assert(0, &["The fence is down", "proxy", "200000", "open"]);
    let stopped = tidegate(setup, "control stop --reason drill");
    stopped.assert(0, &["Stopped", "tidegate control resume", "The fence is UP", ": drill"]);
    tidegate(setup, "call kv.get p k").assert(2, &["guard_stopped (503)", "operator"]);
    let state = tidegate(setup, "control state --json").json();
    assert_eq!((&state["fence"]["stopped"], &state["fence"]["reason"]), (&json!(true), &json!("drill")));
    tidegate(setup, "control resume proxy").assert(0, &["Resumed", "budget of proxy", "The fence is down"]);
    tidegate(setup, "call kv.get p k").assert(0, &["no record"]);
    let audit = tidegate(setup, "control audit --json").json();
    let actions: Vec<_> =
        audit["entries"].as_array().expect("entries").iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["resume", "stop"], "the newest first");
    let audit = tidegate(setup, "control audit --limit 1");
    audit.assert(0, &["resume", "127.0.0.1", "family proxy"]);
    assert!(!audit.out.contains("stop"), "{audit:?}");
}

#[test]
fn a_reset_lets_an_address_in_again() {
    let server = start(&unconfigured().set("guard.family_budgets", "proxy=100,password=0"));
    let setup = server.setup();
    let call = "call kv.get p k --source 192.0.2.7";
    for _ in 0..5 {
        tidegate(setup, call).assert(0, &[]);
    }
    tidegate(setup, call).assert(2, &["guard_limited (429)", "source"]);
    tidegate(setup, "control reset proxy --axis source --identity 192.0.2.8").assert(0, &["this source"]);
    tidegate(setup, call).assert(2, &["guard_limited (429)"]);
    let reset = "control reset proxy --axis source --identity ::ffff:192.0.2.7";
    tidegate(setup, reset).assert(0, &["What this source has spent of proxy today is cleared"]);
    tidegate(setup, call).assert(0, &[]);
    tidegate(setup, "control reset proxy --json").assert(0, &["{\"reset\":true}"]);
    tidegate(setup, "control reset unknown").assert(2, &["bad_request (400)"]);
    let audit = tidegate(setup, "control audit");
    audit.assert(0, &["fairness_reset", "family proxy, axis source, identity "]);
    assert!(!audit.out.contains("192.0.2"), "digests only: {audit:?}");
    tidegate(setup, "control state").assert(0, &["proxy", "password", "stopped"]);
}

#[test]
fn who_is_forgotten_may_try_again() {
    let server = start(&unconfigured());
    let setup = server.setup();
    let attempt = "call win.hit login:alice 1/50d";
    tidegate(setup, attempt).assert(0, &["allowed"]);
    tidegate(setup, attempt).assert(1, &["denied"]);
    tidegate(setup, "control forget login:bob").assert(0, &["nothing to forget"]);
    tidegate(setup, "control forget login:alice 50d").assert(0, &["forgotten"]);
    tidegate(setup, attempt).assert(0, &["allowed"]);
    tidegate(setup, "control forget login:alice").assert(0, &["forgotten", "audit"]);
    tidegate(setup, attempt).assert(0, &["allowed"]);
    tidegate(setup, "control audit").assert(0, &["forget", "identity ", "key "]);
}

#[test]
fn a_token_is_asked_for_and_never_shown() {
    let server = start(&unconfigured());
    let setup = server.setup().clone();
    let token = server.made_secret("operator_token");
    write(&setup, "wrong", "not-the-operator-token-of-this-server\n");
    write(&setup, "right", &token);
    write(&setup, "short", "short");
    for (line, code, said) in [
        ("control state --token-file wrong", 2, "unauthenticated (401)"),
        ("control state --token-file wrong --json", 2, "\"unauthenticated\""),
        ("control state --token-file right", 0, "The fence is down"),
        ("control state --token-file short", 2, "has 5 characters"),
        ("control state --token-file missing", 2, "reading the token file \"missing\""),
        ("control stop --url http://guard.example", 2, "must be https"),
        ("control state --data-dir elsewhere", 2, "no operator token"),
    ] {
        let ran = tidegate(&setup, line);
        ran.assert(code, &[said]);
        assert!(!ran.said().contains(&token), "{line}");
    }
    // All that an operator elsewhere has is a URL and a token.
    let url = format!("http://{}", server.guard);
    let elsewhere = Setup::new();
    write(&elsewhere, "token", &token);
    tidegate(&elsewhere, &format!("control state --url {url} --token-file token")).assert(0, &["proxy"]);
    assert!(!server.log().contains(&token), "the token was logged");
    server.terminate();
    tidegate(&setup, "control state").assert(2, &["tidegate: ", "unavailable"]);
}
