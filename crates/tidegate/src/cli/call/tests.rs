use clap::Parser;

use super::*;
use crate::cli::{Cli, Verb};

/// What the line asks for, or the reason why it is refused: by the flags, or by what they mean together.
fn call(line: &str) -> Result<Call, String> {
    let words = ["tidegate", "call"].into_iter().chain(line.split_whitespace());
    let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    let Verb::Call(args) = cli.verb else { panic!("{line}") };
    args.into_call().map_err(|error| error.to_string())
}

fn intent(line: &str) -> Intent {
    match call(line) {
        Ok(Call { payload: Payload::Intent(intent), .. }) => intent,
        other => panic!("{line}: {other:?}"),
    }
}

fn window(key: &str, limit: u64, period_ms: u64) -> WindowWord {
    WindowWord { key: key.into(), limit, period_ms }
}

fn budget(key: &str, limit: u64, period_ms: u64) -> BudgetWord {
    BudgetWord { key: key.into(), limit, period_ms }
}

#[test]
fn every_command() {
    let text = str::to_owned;
    let table = [
        (
            "win.hit login:alice 5/1m",
            Command::Hit {
                windows: vec![window("1m", 5, 60_000)],
                algorithm: AlgorithmWord::Sliding,
                cost: 1,
            },
        ),
        (
            "win.hit login:alice burst=20/1m 100/1m 0/60s --algorithm bucket --cost 0",
            Command::Hit {
                windows: vec![
                    window("burst", 20, 60_000),
                    window("1m", 100, 60_000),
                    window("60s", 0, 60_000),
                ],
                algorithm: AlgorithmWord::Bucket,
                cost: 0,
            },
        ),
        ("kv.get p k", Command::Get { key: text("k") }),
        (
            "kv.set p k v --ttl 10m",
            Command::Set {
                key: text("k"),
                value: text("v"),
                ttl_ms: Some(600_000),
                mode: SetMode::Always,
                keep_ttl: false,
            },
        ),
        (
            "kv.set p k v --ttl 1s --nx",
            Command::Set {
                key: text("k"),
                value: text("v"),
                ttl_ms: Some(1_000),
                mode: SetMode::Nx,
                keep_ttl: false,
            },
        ),
        (
            "kv.set p k v --xx --keep-ttl",
            Command::Set {
                key: text("k"),
                value: text("v"),
                ttl_ms: None,
                mode: SetMode::Xx,
                keep_ttl: true,
            },
        ),
        ("kv.del p k", Command::Delete { key: text("k") }),
        ("kv.ttl p k", Command::Ttl { key: text("k") }),
        ("kv.expire p k 2d", Command::Expire { key: text("k"), ttl_ms: 172_800_000 }),
        ("kv.incr p k --ttl 1h", Command::Increment { key: text("k"), by: 1, ttl_ms: 3_600_000 }),
        ("kv.incr p k -7 --ttl 1h", Command::Increment { key: text("k"), by: -7, ttl_ms: 3_600_000 }),
        (
            "res.reserve p 10/15m:source 20/1h:tar:get",
            Command::Reserve {
                budgets: vec![budget("source", 10, 900_000), budget("tar:get", 20, 3_600_000)],
                target: 1,
                cost: 1,
            },
        ),
        (
            "res.reserve p 10/15m:source 20/1h:target --target source --cost 2",
            Command::Reserve {
                budgets: vec![budget("source", 10, 900_000), budget("target", 20, 3_600_000)],
                target: 0,
                cost: 2,
            },
        ),
        ("res.refund p AAAAAAAAAAAAAAAAAAAAAA", Command::Refund { receipt: text("AAAAAAAAAAAAAAAAAAAAAA") }),
    ];
    for (line, expected) in table {
        assert_eq!(intent(line).command, expected, "{line}");
    }
}

#[test]
fn the_flags_of_a_request_stand_anywhere() {
    let asked = intent(
        "--family password win.hit login:alice 5/1m --op 9m3V0rG1TqyXo6mZyJmQ0w --source ::ffff:192.0.2.7 --principal u1 --good",
    );
    assert_eq!(
        (asked.family.as_str(), asked.partition.as_str(), asked.good),
        ("password", "login:alice", true)
    );
    assert_eq!(asked.operation.as_deref(), Some("9m3V0rG1TqyXo6mZyJmQ0w"));
    assert_eq!(asked.source.unwrap().source(), "192.0.2.7/32");
    assert_eq!(asked.principal.as_deref(), Some("u1"));
    assert_eq!(intent("kv.get p k").family, "proxy");
}

#[test]
fn where_it_goes_and_what_is_printed() {
    let table = [
        ("kv.get p k", Target::Configured, Output::People),
        ("kv.get p k --json", Target::Configured, Output::Json),
        ("--curl kv.get p k", Target::Configured, Output::Curl),
        ("kv.get p k --url http://127.0.0.1:1", Target::Url("http://127.0.0.1:1".into()), Output::People),
        (
            "kv.get p k --url https://guard.example",
            Target::Url("https://guard.example".into()),
            Output::People,
        ),
        ("kv.get p k --socket ./guard.sock", Target::Socket("./guard.sock".into()), Output::People),
    ];
    for (line, target, output) in table {
        let call = call(line).unwrap();
        assert_eq!((call.target, call.output), (target, output), "{line}");
    }
    let file = call("--file request.json --json").unwrap();
    assert_eq!(file.payload, Payload::File("request.json".into()));
}

#[test]
fn what_is_refused() {
    let table = [
        ("", "say what to send"),
        ("--file a.json kv.get p k", "takes no command beside it"),
        ("kv.get p k --url http://guard.example", "must be https"),
        ("kv.get p k --url https://a --socket b", "cannot be used with"),
        ("kv.get p k --json --curl", "cannot be used with"),
        ("kv.get p k --source 192.0.2.7:80", "must be an IP address"),
        ("kv.get p", "<KEY>"),
        ("win.hit p", "<WINDOW>"),
        ("win.hit p 5", "LIMIT/PERIOD"),
        ("win.hit p 5/1", "a whole number and a unit"),
        ("win.hit p 5/1month", "the unit must be"),
        ("win.hit p +5/1m", "the limit must be a whole number"),
        ("win.hit p 9007199254740992/1m", "the limit must be a whole number"),
        ("win.hit p =5/1m", "the name before `=` is empty"),
        (
            "win.hit p 5/1m 6/1m",
            "two of the windows have the key \"1m\"; name one of them, such as burst=5/1m",
        ),
        ("win.hit p 1/1m 1/2m 1/3m 1/4m 1/5m", "unexpected value '1/5m'"),
        ("win.hit p 5/1m --cost=-1", "whole number"),
        ("win.hit p 5/1m --algorithm leaky", "sliding"),
        ("kv.set p k v", "needs --ttl"),
        ("kv.set p k v --keep-ttl", "needs --xx, or a --ttl"),
        ("kv.set p k v --ttl 1m --nx --xx", "cannot be used with"),
        ("kv.incr p k", "--ttl <TTL>"),
        ("kv.incr p k 1.5 --ttl 1h", "whole number"),
        ("res.reserve p 10/15m", "LIMIT/PERIOD:KEY"),
        ("res.reserve p 10/15m:", "LIMIT/PERIOD:KEY"),
        ("res.reserve p 10/15m:a 20/1h:a", "two of the budgets have the key \"a\""),
        ("res.reserve p 10/15m:a --target b", "must be the key of one of the budgets: a"),
    ];
    for (line, expected) in table {
        match call(line) {
            Err(message) => assert!(message.contains(expected), "{line}\n{message}\nlacks {expected}"),
            Ok(call) => panic!("{line}: {call:?}"),
        }
    }
}
