//! The verbs that need no server, and the demo.

use crate::{
    shell::{Ran, bash, start, tidegate, unconfigured},
    support::server::Setup,
};

#[test]
fn every_verb_has_help_that_says_what_it_does() {
    let setup = Setup::new();
    let verbs = [
        ("", "Abuse protection"),
        ("serve", "Run the reverse proxy"),
        ("check", "Name every fault"),
        ("config", "effective configuration"),
        ("call", "Send one command"),
        ("call win.hit", "Charge rate windows"),
        ("call kv.get", "Read a record"),
        ("call kv.set", "Write a record"),
        ("call kv.del", "Remove a record"),
        ("call kv.ttl", "How long"),
        ("call kv.expire", "from now"),
        ("call kv.incr", "Add to a counter"),
        ("call res.reserve", "Reserve an attempt"),
        ("call res.refund", "Give a reservation back"),
        ("control", "operator's calls"),
        ("control state", "every family's budget"),
        ("control stop", "no RPC executes a step"),
        ("control resume", "Take the fence down"),
        ("control reset", "Clear what identities have spent"),
        ("control forget", "locked out"),
        ("control audit", "newest first"),
        ("apps", "abuse defense"),
        ("apps list", "last hour"),
        ("apps abuse get", "what it counted"),
        ("apps abuse set", "what is not named stays"),
        ("apps abuse enforce", "Replay the policy"),
        ("apps abuse replay", "changes nothing"),
        ("token", "dashboard"),
        ("token create", "this once"),
        ("token list", "without the tokens"),
        ("token revoke", "refused at once"),
        ("drill", "shared-nat"),
        ("canary", "Measure"),
        ("keygen", "fresh secret"),
        ("demo", "at work"),
        ("completions", "completion script"),
        ("store", "embedded store"),
        ("store verify", "changes nothing"),
        ("store repair", "Cut damage out"),
    ];
    for (verb, said) in verbs {
        let help = tidegate(&setup, &format!("{verb} --help"));
        help.assert(0, &[said, "Usage: tidegate", "--config"]);
        assert!(help.err.is_empty(), "{verb}: {}", help.err);
    }
    tidegate(&setup, "--version").assert(0, &[env!("CARGO_PKG_VERSION")]);
    tidegate(&setup, "sevre").assert(2, &["sevre", "'serve'"]);
}

#[test]
fn the_examples_of_the_help_work() {
    let server = start(&unconfigured());
    let help = tidegate(server.setup(), "call --help").out;
    let examples: Vec<&str> = help.lines().filter(|line| line.starts_with("  tidegate call ")).collect();
    assert!(examples.len() >= 5, "{help}");
    for example in examples {
        let ran = bash(server.setup(), example);
        assert!(ran.code == Some(0) && !ran.out.is_empty(), "{example}: {ran:?}");
    }
}

#[test]
fn the_demo_tells_its_stories_twice() {
    let server = start(&unconfigured());
    for _ in 0..2 {
        tidegate(server.setup(), "demo --seconds 1").assert(
            0,
            &[
                "24 guesses at alice's password from 3 addresses: 8 checked",
                "bob, from his own address, logs in at the first try; his reservation was given back",
                "delivery 1: processed",
                "delivery 5: dropped, delivery 1 has it",
                "30 requests: 1",
                "sent again: 1 (as answered before: nothing was charged twice)",
                "six people:",
                "the scraper:",
            ],
        );
    }
    let setup = server.setup().clone();
    server.terminate();
    tidegate(&setup, "demo").assert(2, &["tidegate: "]);
}

#[test]
fn fresh_secrets_can_be_used_as_they_are() {
    let setup = unconfigured();
    let secret = tidegate(&setup, "keygen");
    secret.assert(0, &[]);
    assert!(secret.out.trim_end().len() == 64 && secret.out != tidegate(&setup, "keygen").out, "{secret:?}");
    let variables = tidegate(&setup, "keygen --env").out;
    let setup = variables.lines().fold(setup, |setup, line| {
        let (name, value) = line.split_once('=').expect("a line sets a variable");
        setup.variable(name, value)
    });
    tidegate(&setup, "check").assert(0, &["configuration is good"]);
    // A client in another folder, with nothing but those variables.
    let server = start(&setup);
    let url = format!("http://{}", server.guard);
    let elsewhere =
        variables.lines().fold(Setup::new().variable("TIDEGATE_CLIENT_URL", url), |setup, line| {
            let (name, value) = line.split_once('=').expect("a line sets a variable");
            setup.variable(name, value)
        });
    tidegate(&elsewhere, "call win.hit login:alice 5/1m").assert(0, &["allowed"]);
}

#[test]
fn completions_are_scripts_that_their_shell_reads() {
    let setup = Setup::new();
    for shell in ["bash", "zsh", "fish"] {
        let script: Ran = tidegate(&setup, &format!("completions {shell}"));
        script.assert(0, &["tidegate", "serve", "win.hit", "control", "prefix-rotation", "canary"]);
    }
    bash(&setup, "set -e; source <(tidegate completions bash); complete -p tidegate")
        .assert(0, &["tidegate"]);
    tidegate(&setup, "completions tcsh").assert(2, &["tcsh"]);
}
