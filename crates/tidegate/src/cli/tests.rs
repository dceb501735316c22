use std::path::Path;

use clap::{CommandFactory, error::ErrorKind};
use zeroize::Zeroizing;

use super::*;
use crate::config::FileText;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("tidegate").chain(line.split_whitespace()))
}

fn sources(toml: &str) -> Sources {
    let file = FileText { path: Path::new("tidegate.toml").into(), text: Zeroizing::new(toml.to_owned()) };
    let mut sources = Sources { file: Some(file), ..Sources::default() };
    sources.flag("store.path", "/nowhere/at/all".into(), "--data-dir");
    sources
}

fn checked(toml: &str) -> (u8, String) {
    let mut out = Vec::new();
    let code = check(&sources(toml), false, &mut out).unwrap();
    (code, String::from_utf8(out).unwrap())
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn check_says_what_is_wrong_and_exits_with_it() {
    let fatal =
        "tidegate.toml:1: store.max_calls: must be a whole number from 1 to 10000; it is 0 (stops the start)";
    let table = [
        ("", 0, vec!["configuration is good"]),
        ("store.max_calls = 0", 78, vec![fatal, "1 fault"]),
        (
            "guard.secrets = [\"short\"]\nstore.max_calls = 0",
            78,
            vec!["store.max_calls", "guard.secrets[0]", "2 faults"],
        ),
        ("guard.secrets = [\"short\"]", 78, vec!["every RPC is answered 503", "1 fault"]),
        ("client.secret = \"short\"", 1, vec!["stops `tidegate call`", "1 fault"]),
        ("log.otlp_endpoint = \"http://otel:4317\"", 1, vec!["has no effect", "1 fault"]),
    ];
    for (toml, code, lines) in table {
        let (found, text) = checked(toml);
        assert_eq!(found, code, "{toml}\n{text}");
        assert_eq!(text.lines().count(), lines.len(), "{text}");
        for (line, expected) in text.lines().zip(lines) {
            assert!(line.contains(expected), "{line}\n{expected}");
        }
    }
}

#[test]
fn check_and_config_speak_json_too() {
    let toml = "guard.secrets = [\"short\"]\n\nstore.max_calls = 0\n[apps.a]\nroot = \".\"\n[guard.families.proxy]\nshares_bp = \"source=7\"";
    let mut out = Vec::new();
    assert_eq!(check(&sources(toml), true, &mut out).unwrap(), 78);
    let told: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let faults = told["faults"].as_array().unwrap();
    assert_eq!((&faults[0]["key"], &faults[0]["line"]), (&"store.max_calls".into(), &3.into()), "{told}");
    assert_eq!((&faults[1]["key"], &faults[1]["line"]), (&"guard.secrets[0]".into(), &1.into()), "{told}");
    assert_eq!(faults[1]["place"], "tidegate.toml:1");
    assert!(
        faults.len() == 2 && faults[1]["message"].as_str().is_some_and(|text| text.contains("32")),
        "{told}"
    );
    let mut out = Vec::new();
    assert_eq!(check(&sources(""), true, &mut out).unwrap(), 0);
    assert_eq!(out, b"{\"faults\":[]}\n");

    let (mut out, mut err) = (Vec::new(), Vec::new());
    let secret = "a-signing-secret-0123456789abcdef-0123";
    let toml = format!(
        "guard.operator_token = {secret:?}\n[apps.a]\nroot = \".\"\nshield.max_concurrency = 5\n\
                        [guard.families.proxy]\nshares_bp = \"source=7\""
    );
    assert_eq!(config(&sources(&toml), false, true, &mut out, &mut err).unwrap(), 0);
    let shown: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(
        (&shown["guard"]["operator_token"], &shown["store"]["url"]),
        (&"[redacted]".into(), &().into())
    );
    assert_eq!((&shown["store"]["deadline_ms"], &shown["apps"]["a"]["root"]), (&2000.into(), &".".into()));
    assert_eq!(shown["apps"]["a"]["shield"]["max_concurrency"], 5);
    assert_eq!(shown["guard"]["families"]["proxy"]["shares_bp"]["source"], 7);
    assert!(!shown.to_string().contains(secret));
}

#[test]
fn check_reads_the_data_directory_and_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("data");
    let check_there = || {
        let mut sources = Sources::default();
        sources.flag("store.path", directory.to_str().unwrap().into(), "--data-dir");
        let mut out = Vec::new();
        let code = check(&sources, false, &mut out).unwrap();
        (code, String::from_utf8(out).unwrap())
    };
    assert_eq!(check_there().0, 0);
    assert!(!directory.exists());
    crate::secrets::read_or_make(&directory).unwrap();
    assert_eq!(check_there().0, 0);
    std::fs::write(directory.join(crate::secrets::FILE_NAME), "pepper = \"short\"").unwrap();
    let (code, text) = check_there();
    assert_eq!(code, 78);
    assert!(text.contains("has no guard_secret"), "{text}");
}

#[test]
fn config_prints_the_effective_values_even_beside_faults() {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = config(&sources("guard.daily_budget = 0"), false, false, &mut out, &mut err).unwrap();
    assert_eq!(code, 78);
    let (out, err) = (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap());
    assert!(out.contains("daily_budget = 1000000  # default; what was set is faulty"), "{out}");
    assert!(err.contains("tidegate.toml:1: guard.daily_budget: "), "{err}");
}

#[test]
fn flags_are_sources() {
    let cli = parse("check --data-dir /var/lib/tidegate --log-format json --log-level debug").unwrap();
    let loaded = crate::config::load(&cli.global.sources(Vec::new()));
    let configuration = loaded.start().unwrap();
    assert_eq!(configuration.store.path, Path::new("/var/lib/tidegate"));
    assert_eq!(configuration.log.format, crate::config::LogFormat::Json);
    assert_eq!(configuration.log.level, "debug");
    let faulty = parse("--log-level loud check").unwrap().global.sources(Vec::new());
    let text = crate::config::load(&faulty).faults[0].to_string();
    assert!(text.starts_with("flag --log-level: log.level: "), "{text}");
}

#[test]
fn help_is_worth_reading() {
    let help = |line: &str| match parse(line) {
        Err(error) if error.kind() == ErrorKind::DisplayHelp => error.to_string(),
        other => panic!("{line}: {other:?}"),
    };
    let table = [
        (
            "-h",
            vec!["Abuse protection that you run yourself", "Examples:", "tidegate serve", "check", "keygen"],
        ),
        ("--help", vec!["Environment:", "TIDEGATE_<SECTION>__<KEY>", "Exit codes:", "78"]),
        ("call --help", vec!["win.hit", "res.reserve", "5/1m", "--socket", "Exit codes:"]),
        ("call win.hit --help", vec!["LIMIT/PERIOD", "--algorithm", "sliding", "--cost"]),
        ("control --help", vec!["state", "forget", "--token-file", "login:alice", "Exit codes:"]),
        ("control reset --help", vec!["network/48", "--identity", "--digest"]),
        (
            "drill --help",
            vec!["prefix-rotation", "--live", "--tiers-off", "spends the", "FAIL", "Exit codes:"],
        ),
        ("canary --help", vec!["--rpcs", "/metrics", "Exit codes:"]),
        ("keygen --help", vec!["--operator", "--pepper", "--env"]),
        ("store --help", vec!["verify", "repair"]),
    ];
    for (line, expected) in table {
        let help = help(line);
        for part in expected {
            assert!(help.contains(part), "`tidegate {line}` lacks {part:?}\n{help}");
        }
    }
}

#[test]
fn keygen_prints_fresh_secrets_that_the_configuration_takes() {
    let printed = |line: &str| {
        let Verb::Keygen(keygen) = parse(line).unwrap().verb else { panic!("{line}") };
        let mut out = Vec::new();
        keygen.run(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let (first, second) = (printed("keygen"), printed("keygen"));
    assert_ne!(first, second);
    assert_eq!(first.trim_end().len(), 64);
    assert_eq!(printed("keygen --secret --pepper").lines().count(), 2);
    assert!(printed("keygen --operator --env").starts_with("TIDEGATE_GUARD__OPERATOR_TOKEN="));

    let lines = printed("keygen --env");
    let environment: Vec<_> = lines
        .lines()
        .map(|line| line.split_once('=').unwrap())
        .map(|(name, value)| (OsString::from(name), OsString::from(value)))
        .collect();
    assert_eq!(environment.len(), 3);
    let loaded = crate::config::load(&Sources { environment, ..Sources::default() });
    assert!(loaded.faults.is_empty(), "{:?}", loaded.faults);
    assert!(loaded.client.key_pepper.is_some() && !loaded.start().unwrap().guard.unwrap().secrets.is_empty());
}

#[test]
fn completions_know_the_verbs() {
    for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Zsh, clap_complete::Shell::Fish] {
        let mut out = Vec::new();
        completions(shell, &mut out);
        let script = String::from_utf8(out).unwrap();
        assert!(script.contains("keygen") && script.contains("win.hit"), "{shell}");
    }
}
