//! Shares: what one identity may spend of a family's day, and what it costs to refuse it.

use serde_json::json;

use crate::support::{
    message::{digest, incr, one_step},
    server::{Server, Setup},
    spending::{assert_refused, budgeted, carrying, looks, split},
};

/// Every axis with its default share of 1 000 commands.
const AXES: [(&str, usize); 5] =
    [("source", 50), ("network/24", 150), ("network/56", 150), ("network/48", 250), ("principal", 50)];

#[test]
fn every_axis_has_its_share_and_a_refusal_spends_nothing() {
    let server = budgeted(1_000).start();
    let mut spent = 0;
    for (axis, allowance) in AXES {
        spend(&server, axis, "it", allowance - 3);
        spent += allowance as u64 - 3;
        let too_many = carrying(looks("proxy", 4), axis, "it");
        assert_refused(&server.rpc(&too_many), "guard_limited", axis);
        assert_eq!(server.used("proxy"), spent, "{axis}: a refusal spends nothing");
        assert_eq!(server.rpc(&carrying(looks("proxy", 3), axis, "it")).status, 200, "{axis}: what is left");
        spent += 3;
        assert_refused(&server.rpc(&carrying(looks("proxy", 1), axis, "it")), "guard_limited", axis);
        assert_eq!(server.rpc(&carrying(looks("proxy", 1), axis, "another")).status, 200, "{axis}");
        spent += 1;
        assert_eq!(server.used("proxy"), spent, "{axis}");
        let denials = format!(r#"tidegate_guard_denials_total{{family="proxy",axis="{axis}"}}"#);
        assert_eq!(server.metric(&denials), 2, "{axis}");
    }
    assert_eq!(server.rpc(&looks("proxy", 1)).status, 200, "nobody in particular has no share");
}

#[test]
fn one_spent_identity_refuses_the_request_and_charges_nobody() {
    let server = budgeted(1_000).start();
    spend(&server, "principal", "alice", 50);
    for _ in 0..60 {
        let request =
            carrying(carrying(looks("proxy", 1), "principal", "alice"), "source", "her new address");
        assert_refused(&server.rpc(&request), "guard_limited", "principal");
    }
    // The address has still all of its share, though it was refused more often than that.
    spend(&server, "source", "her new address", 50);
    assert_eq!(server.used("proxy"), 100);
}

#[test]
fn shares_are_set_for_each_family_and_axis() {
    let shares = "source=1000, principal=9, network/24=0";
    let server =
        split(2_000, "proxy=1000,offline=1000").set("guard.families.proxy.shares_bp", shares).start();
    spend(&server, "source", "it", 100);
    for (axis, commands) in [("source", 1), ("principal", 1), ("network/24", 1)] {
        // Nine basis points of 1 000 commands are none.
        let request = carrying(looks("proxy", commands), axis, "it");
        assert_refused(&server.rpc(&request), "guard_limited", axis);
        let elsewhere = carrying(looks("offline", commands), axis, "it");
        assert_eq!(server.rpc(&elsewhere).status, 200, "{axis}: another family's shares are others");
    }
}

/// Twenty sources at the default share use a family up; one can't, and neither can those of one network.
#[test]
fn how_many_identities_drain_a_family() {
    let table = [
        // (shares, what each of twenty sources carries beside itself, what is left of 1 000 commands)
        ("source=500", None, 0),
        ("source=500", Some("network/48"), 750),
        ("source=500", Some("network/56"), 850),
        ("source=500,network/24=10000", Some("network/24"), 0),
    ];
    for (shares, network, left) in table {
        let server = budgeted(1_000).set("guard.families.proxy.shares_bp", shares).start();
        for source in 0..20 {
            for _ in 0..10 {
                let request = carrying(looks("proxy", 5), "source", &format!("source {source}"));
                let request =
                    network.iter().fold(request, |request, axis| carrying(request, axis, "its network"));
                server.rpc(&request);
            }
        }
        assert_eq!(1_000 - server.used("proxy"), left, "{shares} {network:?}");
    }
}

/// The control: without a share a single caller drains it.
#[test]
fn a_source_with_the_whole_for_its_share_drains_the_family() {
    for (share, left) in [("500", 950), ("10000", 0)] {
        let server = budgeted(1_000).set("guard.families.proxy.shares_bp", format!("source={share}")).start();
        for _ in 0..100 {
            server.rpc(&carrying(looks("proxy", 10), "source", "it"));
        }
        assert_eq!(1_000 - server.used("proxy"), left, "a share of {share}");
    }
}

#[test]
fn denials_are_told_of_once_a_minute_and_remembered() {
    let server = split(2_000, "proxy=1000,offline=1000").start();
    for family in ["proxy", "offline"] {
        for axis in ["source", "principal"] {
            let request = |name: &str| carrying(looks(family, 25), axis, name);
            for name in ["it", "another"] {
                let statuses: Vec<_> = (0..6).map(|_| server.rpc(&request(name)).status).collect();
                assert_eq!(statuses, [200, 200, 429, 429, 429, 429]);
            }
        }
    }
    server.wait_for_log("fairness-denied");
    let log = server.log();
    let told: Vec<_> = log.lines().filter(|line| line.contains("fairness-denied")).collect();
    assert_eq!(told.len(), 4, "one for each family and axis: {told:?}");
    assert_eq!(server.metric(r#"tidegate_alerts_total{kind="fairness-denied"}"#), 4);
    assert_eq!(server.metric(r#"tidegate_guard_rpcs_total{ending="guard_limited"}"#), 32);
    // The first denial of each of the eight was looked up; the others were not.
    assert_eq!(server.metric("tidegate_guard_denials_remembered_total"), 24);

    // A restart forgets whom it has refused, and not what they have spent.
    let server = server.kill_and_restart();
    for _ in 0..2 {
        assert_refused(&server.rpc(&carrying(looks("proxy", 1), "source", "it")), "guard_limited", "source");
    }
    assert_eq!(server.metric("tidegate_guard_denials_remembered_total"), 1);
}

#[test]
fn nobody_is_named_where_people_look() {
    let setup = budgeted(100).set("log.level", "debug").set("guard.families.proxy.reserve_bp", "2000");
    let server = setup.start();
    let names = ["alice@example.com", "192.0.2.7/32", "2001:db8::/48", "bob@example.com"];
    let request = |good: bool| {
        let mut request = carrying(looks("proxy", 1), "principal", names[0]);
        for (axis, name) in [("source", names[1]), ("network/48", names[2])] {
            request = carrying(request, axis, name);
        }
        request["good"] = json!(good);
        request
    };
    let series = || server.metrics().lines().filter(|line| !line.starts_with('#')).count();
    server.rpc(&request(true));
    let before = series();
    let statuses: Vec<_> = (0..8).map(|_| server.rpc(&request(false)).status).collect();
    assert_eq!((statuses[0], statuses[7]), (200, 429));
    for number in 0..100 {
        server.rpc(&carrying(looks("proxy", 1), "source", &format!("stranger {number}")));
    }
    let partition = digest(names[3]);
    server.order("/control/forget", &json!({"partition": partition}).to_string());
    let reset = json!({"family": "proxy", "identity": digest(names[1])});
    server.order("/control/fairness/reset", &reset.to_string());
    assert_eq!(series(), before, "callers make no series");
    let (metrics, ended) = (server.metrics(), server.terminate());
    for name in names {
        for (text, place) in [(&ended.log, "the log"), (&metrics, "the metrics")] {
            assert!(!text.contains(name) && !text.contains(&digest(name)), "{name} is in {place}: {text}");
        }
    }
    for kind in ["fairness-denied", "budget-warning", "reserve-entered"] {
        assert!(ended.log.contains(kind), "{kind} was logged: {}", ended.log);
    }
}

#[test]
fn identities_are_no_part_of_what_an_operation_is() {
    let server = Setup::new().start();
    let request = one_step("op", json!([incr("k")]));
    server.ok(&request);
    let again = server.ok(&carrying(request, "source", "another address"));
    assert_eq!(again["steps"][0]["replayed"], true);
}

/// Spends so many commands of an identity.
#[track_caller]
fn spend(server: &Server, axis: &str, name: &str, commands: usize) {
    for first in (0..commands).step_by(32) {
        let request = carrying(looks("proxy", 32.min(commands - first)), axis, name);
        let reply = server.rpc(&request);
        assert_eq!(reply.status, 200, "{axis} {name}, after {first}: {}", reply.text());
    }
}
