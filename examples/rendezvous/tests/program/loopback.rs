//! On loopback, as the README has it.

use crate::process::{HOST, JOINER, Process, credentials, program};

#[test]
fn two_players_meet_by_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let mut serve = program();
    serve.args(["serve", "--listen", "127.0.0.1:0", "--mediator", "127.0.0.1:0", "--credentials"]);
    let mut serve = Process::start(serve.arg(credentials(folder.path())));
    let (http, mediator) = serve.addresses();
    let player = |side: &str, token: &str| {
        let mut player = program();
        player.args([
            side,
            "--url",
            &format!("http://{http}"),
            "--mediator",
            &mediator,
            "--bind",
            "127.0.0.1:0",
        ]);
        Process::start(player.env("RENDEZVOUS_TOKEN", token))
    };
    for mut player in [player("host", HOST), player("join", JOINER)] {
        let line = player.line();
        assert!(line.starts_with("met the other player at 127.0.0.1:"), "{line}");
        assert!(player.succeeded());
    }
}

#[test]
fn the_demonstration_ends_by_itself() {
    let mut demo = Process::start(program().arg("demo"));
    demo.addresses();
    for _ in 0..2 {
        let line = demo.line();
        assert!(line.starts_with("met the other player at 127.0.0.1:"), "{line}");
    }
    assert!(demo.succeeded());
}

#[test]
fn what_is_wrong_with_the_credentials_is_said_without_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("credentials.json");
    std::fs::write(&path, r#"{"keys": [{"id": 1, "secret": "hunter2"}], "principals": []}"#).unwrap();
    let output = program().args(["serve", "--credentials"]).arg(path).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(said.contains("keys, entry 1: has 7 characters; at least 32 are needed"), "{said}");
    assert!(!said.contains("hunter2"));
}
