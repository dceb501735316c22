use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use clap::Parser;
use tidegate_core::secret::Secret;
use tidegate_protocol::{
    control::{FairnessReset, Forget},
    identity::{Pepper, Purpose, digest},
};
use zeroize::Zeroizing;

use super::*;
use crate::{
    cli::{Cli, Verb},
    config::{self, FileText, Sources},
};

const PEPPER: &str = "pepper-for-test-vectors-0123456789abcdef";
const FAIRNESS: &str = "fairness-pepper-of-these-tests-0123456789";
const TOKEN: &str = "operator-token-of-these-tests-0123456789";

fn parsed(line: &str) -> Result<ControlArgs, clap::Error> {
    let cli = Cli::try_parse_from(["tidegate", "control"].into_iter().chain(line.split_whitespace()))?;
    let Verb::Control(arguments) = cli.verb else { panic!("{line}") };
    Ok(*arguments)
}

fn loaded(directory: &Path, toml: &str) -> Loaded {
    let text = format!("store.path = {:?}\n{toml}", directory.to_str().unwrap());
    let file = FileText { path: Path::new("tidegate.toml").into(), text: Zeroizing::new(text) };
    config::load(&Sources { file: Some(file), ..Sources::default() })
}

fn peppered(fairness: bool) -> Loaded {
    let secret = "client.secret = \"signing-secret-of-these-tests-0123456789\"\n";
    let fairness = if fairness { format!("client.fairness_pepper = {FAIRNESS:?}") } else { String::new() };
    loaded(Path::new("/nowhere/at/all"), &format!("{secret}client.key_pepper = {PEPPER:?}\n{fairness}"))
}

#[test]
fn verbs_and_the_calls_they_become() {
    let loaded = peppered(true);
    let hashed = |pepper: &str, purpose, value: &str| {
        digest(&Pepper::new(&Secret::new(pepper).unwrap()), purpose, value)
    };
    let family = |name: &str| Family::parse(name).unwrap();
    let reset =
        |axis, identity| Call::ResetFairness(FairnessReset { family: family("password"), axis, identity });
    let raw = format!("-{}", "A".repeat(42));
    let raw_digest = Digest::parse(&raw).unwrap();
    let source = |canonical| hashed(FAIRNESS, Purpose::Source, canonical);
    let network = |canonical| hashed(FAIRNESS, Purpose::Network, canonical);
    let partition = hashed(PEPPER, Purpose::Partition, "login:alice");
    let table = [
        ("state".to_owned(), Call::State),
        ("resume".into(), Call::Resume(Default::default())),
        (
            "resume proxy replay".into(),
            Call::Resume(tidegate_protocol::control::Resume {
                families: Some(vec![family("proxy"), family("replay")]),
            }),
        ),
        ("audit --limit 7".into(), Call::Audit { limit: 7 }),
        ("reset password".into(), reset(None, None)),
        ("reset password --axis network/24".into(), reset(Some(Axis::Network24), None)),
        (
            "reset password --axis source --identity 192.0.2.7".into(),
            reset(Some(Axis::Source), Some(source("192.0.2.7/32"))),
        ),
        (
            "reset password --axis source --identity ::ffff:192.0.2.7".into(),
            reset(Some(Axis::Source), Some(source("192.0.2.7/32"))),
        ),
        (
            "reset password --axis source --identity unknown".into(),
            reset(Some(Axis::Source), Some(source("unknown"))),
        ),
        (
            "reset password --axis network/24 --identity 192.0.2.7".into(),
            reset(Some(Axis::Network24), Some(network("192.0.2.0/24"))),
        ),
        (
            "reset password --axis network/48 --identity 2001:db8:0:1::7".into(),
            reset(Some(Axis::Network48), Some(network("2001:db8::/48"))),
        ),
        (
            "reset password --axis network/56 --identity 2001:db8:0:1::7".into(),
            reset(Some(Axis::Network56), Some(network("2001:db8::/56"))),
        ),
        (
            "reset password --axis principal --identity user_42".into(),
            reset(Some(Axis::Principal), Some(hashed(FAIRNESS, Purpose::Principal, "user_42"))),
        ),
        (format!("reset password --axis source --digest {raw}"), reset(Some(Axis::Source), Some(raw_digest))),
        ("forget login:alice".into(), Call::Forget(Forget { partition, key: None })),
        (
            "forget login:alice 15m".into(),
            Call::Forget(Forget { partition, key: Some(hashed(PEPPER, Purpose::Key, "15m")) }),
        ),
        (
            format!("forget login:alice --key-digest {raw}"),
            Call::Forget(Forget { partition, key: Some(raw_digest) }),
        ),
        (
            format!("forget --digest {raw} --key-digest {raw}"),
            Call::Forget(Forget { partition: raw_digest, key: Some(raw_digest) }),
        ),
    ];
    for (line, expected) in table {
        let verb = parsed(&line).unwrap_or_else(|error| panic!("{line}: {error}")).verb;
        assert_eq!(order::call(&verb, &loaded).unwrap(), expected, "{line}");
    }
    let verb = ControlVerb::Reset {
        family: family("password"),
        axis: Some(Axis::Source),
        identity: Some("192.0.2.7".into()),
        digest: None,
    };
    let expected = reset(Some(Axis::Source), Some(hashed(PEPPER, Purpose::Source, "192.0.2.7/32")));
    assert_eq!(order::call(&verb, &peppered(false)).unwrap(), expected, "without a fairness pepper");
}

#[test]
fn what_does_not_fit_together_is_said() {
    let refused = [
        ("", "Usage"),
        ("reset", "<FAMILY>"),
        ("reset Password", "a family's name"),
        ("reset password --axis sources", "must be one of source, network/24"),
        ("reset password --identity 192.0.2.7", "--axis"),
        ("reset password --axis source --digest alice", "43 base64url characters"),
        ("forget", "PARTITION"),
        ("forget login:alice --digest AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "cannot be used"),
        ("forget login:alice 15m --key-digest AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "cannot be used"),
        ("audit --limit 0", "from 1 to 1000"),
        ("audit --limit 1001", "from 1 to 1000"),
    ];
    for (line, said) in refused {
        let error = parsed(line).expect_err(line).to_string();
        assert!(error.contains(said), "{line}: {error}");
    }
    let loaded = peppered(false);
    for (line, said) in [
        ("reset password --axis source --identity alice", "must be an IP address"),
        ("reset password --axis network/24 --identity unknown", "must be an IP address"),
        ("reset password --axis network/48 --identity 192.0.2.7", "in no network/48"),
        ("reset password --axis network/24 --identity 2001:db8::1", "in no network/24"),
    ] {
        let error = order::call(&parsed(line).unwrap().verb, &loaded).expect_err(line).to_string();
        assert!(error.contains(said), "{line}: {error}");
    }
}

#[test]
fn a_token_comes_from_the_flag_the_configuration_or_the_data_directory() {
    let folder = tempfile::tempdir().unwrap();
    let none = operator_token(&loaded(folder.path(), ""));
    assert!(matches!(none, Err(CredentialsError::Missing)), "{none:?}");

    let (made, _) = crate::secrets::read_or_make(folder.path()).unwrap();
    assert_eq!(operator_token(&loaded(folder.path(), "")).unwrap(), made.operator_token);

    let file = folder.path().join("token");
    fs::write(&file, format!("{TOKEN}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let in_file = loaded(folder.path(), &format!("guard.operator_token_file = {file:?}"));
    assert_eq!(operator_token(&in_file).unwrap().expose(), TOKEN);
    let other_faults = "guard.daily_budget = 0\nguard.secrets = [\"short\"]\nadmin.listen = \"x\"";
    let plain = loaded(folder.path(), &format!("guard.operator_token = {TOKEN:?}\n{other_faults}"));
    assert_eq!(operator_token(&plain).unwrap().expose(), TOKEN, "an operator may be about to stop it");
    assert_eq!(credentials::token(Some(&file), &loaded(folder.path(), "")).unwrap().expose(), TOKEN);

    fs::write(&file, "short").unwrap();
    for (result, said) in [
        (credentials::token(Some(&file), &plain), "has 5 characters"),
        (credentials::token(Some(Path::new("/nowhere")), &plain), "/nowhere"),
        (operator_token(&loaded(folder.path(), "guard.operator_token = \"short\"")), "guard.operator_token"),
    ] {
        let error = result.expect_err(said).to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_token_never_goes_out_in_clear_text() {
    let folder = tempfile::tempdir().unwrap();
    crate::secrets::read_or_make(folder.path()).unwrap();
    let reach = Reach { url: Some("http://guard.example".into()), token_file: None };
    let error = reach.client(&loaded(folder.path(), "")).expect_err("not in clear text").to_string();
    assert!(error.contains("must be https"), "{error}");
    let here = Reach::default().client(&loaded(folder.path(), "guard.listen = \"127.0.0.1:9\"")).unwrap();
    assert!(format!("{here:?}").contains("http://127.0.0.1:9"), "{here:?}");
}
