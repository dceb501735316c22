use std::path::Path;

use clap::Parser;
use tidegate_client::{GuardClient, control::ControlClient};
use zeroize::Zeroizing;

use super::*;
use crate::{
    cli::{Cli, Verb},
    config::{self, FileText, Sources},
};

fn arguments(line: &str) -> Result<DrillArgs, clap::Error> {
    let cli = Cli::try_parse_from(["tidegate", "drill"].into_iter().chain(line.split_whitespace()))?;
    let Verb::Drill(arguments) = cli.verb else { panic!("{line}") };
    Ok(*arguments)
}

fn loaded(toml: &str) -> Loaded {
    let text = format!("store.path = \"/nowhere/at/all\"\n{toml}");
    let file = FileText { path: Path::new("tidegate.toml").into(), text: Zeroizing::new(text) };
    config::load(&Sources { file: Some(file), ..Sources::default() })
}

fn plan(line: &str) -> Plan {
    Plan::of(&arguments(line).unwrap(), &loaded("")).unwrap()
}

async fn simulated(line: &str) -> Report {
    plan(line).simulated().await.unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn passes(report: &Report) -> Vec<bool> {
    report.verdicts.iter().map(|verdict| verdict.pass).collect()
}

#[tokio::test]
async fn an_attacker_with_a_48_gets_its_share_and_nobody_else_is_locked_out() {
    let report = simulated("prefix-rotation").await;
    assert!(report.passed(), "{}", report.for_people());
    let attacker = report.group("attacker, one /48");
    assert_eq!((attacker.asked, attacker.spent), (100_800, 25_000));
    assert_eq!(attacker.refused, [("network/48", 75_800)].into());
    assert_eq!(report.group("strangers").admitted, 14_400, "all day");
    assert_eq!(report.group("known-good after it").refused, [].into(), "after the open part is spent");
    assert_eq!(report.group("strangers after it").admitted, 0);
    assert!(report.timeline.iter().all(|turn| turn.state == "open" || turn.at.starts_with("day 2")));
}

#[tokio::test]
async fn without_shares_of_networks_the_same_attacker_drains_the_family() {
    let report = simulated("prefix-rotation --tiers-off").await;
    assert_eq!(passes(&report), [false, false, true, true], "{}", report.for_people());
    let strangers = report.group("strangers");
    assert!(report.group("attacker, one /48").spent > 70_000 && strangers.admitted < strangers.asked / 2);
    let drained =
        report.timeline.iter().find(|turn| turn.state == "reserve").expect("the reserve is entered");
    assert!(drained.at.starts_with("day 1 04:"), "within the attack: {}", drained.at);
    assert!(report.for_people().contains("\nFAIL  the attacker spent "));
}

#[tokio::test]
async fn without_a_reserve_many_accounts_lock_everybody_out() {
    let report = simulated("sybil").await;
    assert!(report.passed(), "{}", report.for_people());
    assert_eq!(report.group("20 accounts, 20 sources").spent, 80_000 - 20, "all of the open part");
    assert_eq!(report.group("strangers after it").admitted, 0);

    let report = simulated("sybil --reserve-bp 0").await;
    assert_eq!(passes(&report), [false, false], "{}", report.for_people());
    assert_eq!(report.group("known-good after it").admitted, 0);
}

#[tokio::test]
async fn users_behind_one_address_are_locked_out_by_the_default_share_only() {
    let report = simulated("shared-nat").await;
    assert_eq!(passes(&report), [false, true, true, true], "{}", report.for_people());
    assert_eq!(report.group("users, visit 2").refused, [("source", 2500)].into());
    assert_eq!(report.group("the same after a reset").admitted, 2500);
    assert!(report.group("users, visit 2 (1000 bp)").all_admitted());

    let report = simulated("shared-nat --source-share-bp 1000").await;
    assert!(report.passed(), "{}", report.for_people());
    assert!(report.group("users, visit 2").all_admitted());
}

#[tokio::test]
async fn nothing_is_executed_after_a_stop_has_answered() {
    let report = simulated("stop-resume").await;
    assert!(report.passed(), "{}", report.for_people());
    let after = report.group("after it");
    assert_eq!((after.admitted, after.refused.clone()), (0, [("operator_stop", 32 * 8)].into()));
}

/// A guard store whose operator stops another one.
#[derive(Clone)]
struct Unstoppable {
    serving: Simulated,
    stopped: Simulated,
}

impl Target for Unstoppable {
    fn client(&self) -> &GuardClient {
        self.serving.client()
    }

    fn control(&self) -> &ControlClient {
        self.stopped.control()
    }

    fn simulated_from_ms(&self) -> Option<u64> {
        self.serving.simulated_from_ms()
    }

    fn pass(&self, by_ms: u64) {
        self.serving.pass(by_ms);
    }

    /// Forgets everything.
    async fn restart(self) -> Result<Self, DrillError> {
        Ok(Self { serving: self.stopped.clone(), stopped: self.stopped })
    }
}

#[tokio::test]
async fn the_drills_notice_a_stop_that_stops_nothing_and_a_restart_that_forgets() {
    let plan = plan("stop-resume");
    let another = || Simulated::in_memory(plan.simulated_families());
    let broken = Unstoppable { serving: another().unwrap(), stopped: another().unwrap() };
    let report = plan.run(plan.field(broken.clone(), 0).await.unwrap()).await.unwrap();
    assert_eq!(passes(&report), [false, false, true, true], "{}", report.for_people());

    let plan = Plan { name: DrillName::Restart, ..plan };
    let report = plan.run(plan.field(broken, 0).await.unwrap()).await.unwrap();
    assert!(!passes(&report)[1], "{}", report.for_people());
}

#[tokio::test]
async fn what_was_spent_stays_spent_over_a_restart() {
    let report = simulated("restart").await;
    assert!(report.passed(), "{}", report.for_people());
    assert_eq!(report.group("one that spends its share").spent, 10_000);
    assert_eq!(report.group("the same after the restart").refused, [("source", 1)].into());
    let nothing_kept = plan("restart");
    let target = Simulated::in_memory(nothing_kept.simulated_families()).unwrap();
    let ended = nothing_kept.run(nothing_kept.field(target, 0).await.unwrap()).await;
    assert!(matches!(ended, Err(DrillError::NothingKept)));
}

/// A drill ends with an error where it would send more RPCs than it said.
#[tokio::test]
async fn budgets_of_every_size() {
    for line in [
        "prefix-rotation --budget 200",
        "sybil --budget 100",
        "sybil --budget 20000 --principal-share-bp 10000 --source-share-bp 10000 --tiers-off",
        "shared-nat --budget 1000",
        "shared-nat --users 7 --family offline",
        "restart --budget 1000",
        "restart --source-share-bp 10000",
        "stop-resume --family password",
        "stop-resume --family replay",
    ] {
        let report = simulated(line).await;
        assert!(!report.verdicts.is_empty(), "{line}");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["groups"].as_array().unwrap().len(), report.groups.len());
    }
    let error = plan("prefix-rotation --budget 10").simulated().await.unwrap_err();
    assert!(matches!(error, DrillError::TooSmall { .. }), "{error}");
}

#[tokio::test]
async fn what_is_refused_before_anything_is_sent() {
    let families = "guard.family_budgets = \"replay=1000\"\n";
    let table = [
        ("sybil --family unknown", "", "--family takes one of offline, password, proxy, replay"),
        ("prefix-rotation --rpcs 1000", "", "--rpcs allows 1000"),
        ("prefix-rotation --budget 1000000000", "", "say --yes"),
        ("sybil --live --url https://guard.example", "", "another machine"),
        ("stop-resume --live --url http://guard.example --yes", "", "must be https"),
        ("sybil", "guard.daily_budget = 0", "guard.daily_budget"),
        ("prefix-rotation", families, "too small"),
    ];
    for (line, toml, said) in table {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let secrets = "client.secret = \"signing-secret-of-these-tests-0123456789\"\n\
                       client.key_pepper = \"pepper-of-these-tests-0123456789abcdef-01\"\n\
                       guard.operator_token = \"operator-token-of-these-tests-0123456789\"\n";
        let loaded = loaded(&format!("{secrets}{toml}"));
        let error = drill(arguments(line).unwrap(), &loaded, &mut out, &mut err).await.expect_err(line);
        assert!(error.to_string().contains(said), "{line}: {error}");
        assert!(out.is_empty(), "{line}");
    }
    for line in ["", "earthquake", "sybil --live --simulated", "sybil --live --tiers-off", "sybil --users 0"]
    {
        assert!(arguments(line).is_err(), "{line}");
    }
}
