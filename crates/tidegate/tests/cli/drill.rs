//! `tidegate drill --live` and `tidegate canary` against a running server.

use std::{
    io::{BufRead, BufReader, Read},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::shell::{start, tidegate, unconfigured};

#[test]
fn a_live_stop_stops_everything_and_leaves_the_server_open() {
    let server = start(&unconfigured());
    let setup = server.setup();
    let ran = tidegate(setup, "drill stop-resume --live");
    ran.assert(0, &["up to", "real budget of the family proxy", "0 executed, 256 refused", "(live)"]);
    assert!(!ran.out.contains("FAIL"), "{}", ran.out);
    tidegate(setup, "control state").assert(0, &["The fence is down"]);
    tidegate(setup, "control audit").assert(0, &["resume", "stop", "drill stop-resume"]);
}

#[test]
fn live_drills_spend_a_real_budget() {
    let server = start(&unconfigured().set("guard.family_budgets", "replay=2000,password=0"));
    let setup = server.setup();
    tidegate(setup, "drill prefix-rotation --live").assert(2, &["too small"]);
    tidegate(setup, "drill shared-nat --live --users 10 --rpcs 10").assert(2, &["--rpcs allows 10"]);
    let report = tidegate(setup, "drill shared-nat --live --users 40 --json");
    assert_eq!(report.code, Some(1), "5 % of 2000 are too few for 160 commands: {report:?}");
    let passes = |report: &Value| -> Vec<bool> {
        let verdicts = report["verdicts"].as_array().expect("verdicts").iter();
        verdicts.map(|verdict| verdict["pass"].as_bool().expect("one or the other")).collect()
    };
    assert_eq!(passes(&report.json()), [false, true, true]);
    tidegate(setup, "drill sybil --live").assert(0, &["known-good after the open part is spent: 200 of 200"]);
    tidegate(setup, "drill sybil --live").assert(2, &["tidegate control resume replay"]);
    let state = tidegate(setup, "control state --json").json();
    assert_eq!(state["families"]["replay"]["state"], json!("reserve"));
}

#[test]
fn what_was_spent_stays_spent_over_a_real_restart() {
    let server = start(&unconfigured().set("guard.family_budgets", "proxy=2000"));
    let mut drill = server.setup().command(&["drill", "restart", "--live"]);
    let mut drill = drill.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it was built");
    let mut asked = BufReader::new(drill.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(asked.any(|line| line.contains("restart the server now")), "{:?}", drill.wait());
    let setup = server.setup().clone();
    server.terminate();
    // On a busy machine it would else be back before it was missed.
    assert!(asked.any(|line| line.contains("the server is down")), "{:?}", drill.wait());
    let _server = setup.start();
    let mut report = String::new();
    drill.stdout.take().expect("piped").read_to_string(&mut report).expect("text");
    let status = drill.wait().expect("it is our child");
    assert_eq!(status.code(), Some(0), "{report}{:?}", asked.collect::<Vec<_>>());
    assert!(report.contains("commands spent before the restart: 200, after it: 200"), "{report}");
}

#[test]
fn a_canary_measures_with_a_bounded_number_of_rpcs() {
    let server = start(&unconfigured());
    let setup = server.setup();
    let before = server.metric("tidegate_guard_commands_total");
    let ran = tidegate(setup, "canary --rpcs 200 --json");
    ran.assert(0, &[]);
    let figures = ran.json();
    assert_eq!(server.metric("tidegate_guard_commands_total") - before, 2 * 201, "one more to knock");
    let rounds = figures["rounds"].as_array().expect("rounds");
    for (round, connections) in rounds.iter().zip([1, 8]) {
        let number = |name: &str| round[name].as_f64().expect("a number");
        assert_eq!((&round["connections"], &round["answered"]), (&json!(connections), &json!(100)));
        assert!(number("p50_micros") > 0.0 && number("p50_micros") <= number("p99_micros"), "{round}");
        assert!(number("flushes_per_rpc") > 0.0 && number("written_bytes_per_rpc") > 0.0, "{round}");
    }
    tidegate(setup, "canary --rpcs 100").assert(0, &["connections", "p99", "flushes/RPC"]);
    tidegate(setup, "canary --rpcs 99").assert(2, &["100..=100000"]);
    let url = format!("canary --rpcs 100 --url http://localhost:{}", server.guard.port());
    tidegate(setup, &url).assert(0, &["note: row writes and flushes are only read from the server of this"]);
    tidegate(setup, "canary --rpcs 100 --family unknown").assert(2, &["must be one of"]);
}
