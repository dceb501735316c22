//! The apps and the tokens from the command line, from the folder of a server and without flags.

use std::fs;

use crate::{
    shell::{bash, start, tidegate, unconfigured, write},
    support::wire::Wire,
};

#[test]
fn from_the_first_look_to_the_block() {
    let server = start(&unconfigured());
    let setup = server.setup();
    tidegate(setup, "apps list").assert(0, &["demo", "LogOnly"]);
    tidegate(setup, "apps abuse replay demo").assert(0, &["Nothing to replay"]);
    let visit = |count: usize| -> Vec<u16> {
        let mut wire = Wire::tcp_from([127, 0, 0, 66].into(), server.apps).expect("the app is there");
        let request = "GET /echo HTTP/1.1\r\nHost: demo\r\nUser-Agent: scraper\r\n\r\n";
        (0..count).map(|_| wire.exchange(request.as_bytes()).expect("an answer").status).collect()
    };
    visit(30);
    let replayed = tidegate(setup, "apps abuse replay demo --rps 0.001 --burst 10");
    replayed.assert(0, &["Replayed 30 requests", "20 would have been blocked (rate_limit 20)", "127.0.0.66"]);
    tidegate(setup, "apps abuse get demo").assert(0, &["version 0", "no limit"]);

    let set =
        "apps abuse set demo --rps 0.001 --burst 10 --deny-user-agent BadBot --deny-cidr 203.0.113.0/24";
    tidegate(setup, set).assert(0, &["version 1", "0.001 requests a second", "BadBot", "203.0.113.0/24"]);
    assert!(visit(30).iter().all(|status| *status == 200), "log only blocks nothing");
    tidegate(setup, "apps abuse enforce demo").assert(2, &["would have been blocked", "--yes"]);
    tidegate(setup, "apps abuse get demo --window minute")
        .assert(0, &["LogOnly", "would be blocked (rate_limit"]);
    tidegate(setup, "apps abuse enforce demo --yes")
        .assert(0, &["Replayed 60 requests", "Enforcing", "version 2"]);
    assert!(visit(5).contains(&429));
    let enforced = tidegate(setup, "apps abuse enforce demo --yes --json").json();
    assert_eq!(enforced["policy"]["mode"], "enforce", "{enforced}");
    assert_eq!(enforced["replay"]["requests"], 65, "{enforced}");
    let json = tidegate(setup, "apps abuse get demo --json").json();
    assert!(json["counters"]["blocked"]["rate_limit"].as_u64() > Some(0), "{json}");

    // What is not named stays; a file may say all of it.
    tidegate(setup, "apps abuse set demo --remove-cidr 203.0.113.0/24").assert(0, &["Enforcing", "BadBot"]);
    write(setup, "policy.json", r#"{"mode": "off"}"#);
    tidegate(setup, "apps abuse set demo --from policy.json").assert(0, &["Off", "version 5", "no limit"]);
    write(setup, "policy.json", r#"{"mode": "enforce", "rps": 1, "burst": 1}"#);
    tidegate(setup, "apps abuse set demo --from policy.json").assert(2, &["apps abuse enforce"]);
}

#[test]
fn refusals_say_what_is_wrong() {
    let server = start(&unconfigured());
    let setup = server.setup();
    let table = [
        ("apps abuse get nobody", "no_such_app (404)"),
        ("apps abuse set demo --burst 0 --rps 5", "burst"),
        ("apps abuse set demo --deny-cidr nowhere --deny-user-agent re:(", "deny_cidrs[0]"),
        ("apps abuse set demo --remove-cidr 10.0.0.0/8", "in neither list"),
        ("apps list --url http://192.0.2.1:9090", "by https only"),
        ("apps list --token-file missing", "reading the token file"),
        ("apps list --url http://127.0.0.1:1", "asking the admin API"),
    ];
    for (line, said) in table {
        tidegate(setup, line).assert(2, &[said]);
    }
    write(setup, "twice.json", r#"{"rps": 1, "burst": 1, "rps": 2}"#);
    tidegate(setup, "apps abuse set demo --from twice.json").assert(2, &["rps is there twice"]);
    tidegate(setup, "apps abuse get demo").assert(0, &["version 0"]);
}

#[test]
fn tokens_do_what_they_may_until_they_are_revoked() {
    let server = start(&unconfigured());
    let setup = server.setup();
    bash(setup, "umask 077; tidegate token create reader --abilities read > reader.token").assert(0, &[]);
    let token = fs::read_to_string(setup.folder().join("reader.token")).expect("just made");
    tidegate(setup, "token list").assert(0, &["reader", "admin", "first start"]);
    assert!(!tidegate(setup, "token list --json").out.contains(token.trim()));
    tidegate(setup, "apps list --token-file reader.token").assert(0, &["demo"]);
    for line in ["apps abuse set demo --rps 1 --burst 1", "token create more --abilities read"] {
        tidegate(setup, &format!("{line} --token-file reader.token")).assert(2, &["ability write"]);
    }
    let replay = "apps abuse replay demo --token-file reader.token";
    tidegate(setup, replay).assert(2, &["ability read:sensitive"]);

    let server = server.restart();
    let setup = server.setup();
    tidegate(setup, "apps list --token-file reader.token").assert(0, &["demo"]);
    tidegate(setup, "token revoke reader").assert(0, &["reader is revoked"]);
    tidegate(setup, "apps list --token-file reader.token").assert(2, &["unauthenticated (401)"]);
    tidegate(setup, "token revoke reader").assert(2, &["no_such_token (404)"]);
    assert!(!server.log().contains(token.trim()), "a token was logged");
}
