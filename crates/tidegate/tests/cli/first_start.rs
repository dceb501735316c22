//! A start in an empty folder: what is made, what is printed, and that it works.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use crate::{
    shell::{bash, start, tidegate, unconfigured},
    support::server::Ended,
};

#[test]
fn a_start_without_configuration_makes_secrets_for_its_owner_alone_and_keeps_them() {
    let server = start(&unconfigured());
    let banner = server.banner();
    for said in ["an acknowledged write is on disk", "made now, and kept in ./tidegate-data/secrets.toml"] {
        assert!(banner.contains(said), "{banner}\nlacks {said}");
    }
    let (setup, directory) = (server.setup().clone(), server.data_directory());
    assert_eq!(mode(&directory), 0o700);
    let entries = fs::read_dir(&directory).expect("it is there");
    for path in entries.map(|entry| entry.expect("it can be listed").path()) {
        let name = path.file_name().expect("a file has a name");
        assert!(name == "LOCK" || mode(&path) == 0o600, "{}: {:o}", path.display(), mode(&path));
    }
    let secrets = fs::read_to_string(directory.join("secrets.toml")).expect("made");
    let values: Vec<&str> = secrets.lines().filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(values.len(), 4, "a signing secret, an operator token, a pepper, an admin token");
    for (index, value) in values.iter().enumerate() {
        assert!(value.len() == 64 && !values[..index].contains(value), "256 bits each, all different");
    }
    tidegate(&setup, "call kv.set kept key value --ttl 1h").assert(0, &["written"]);

    let server = server.restart();
    assert!(!server.banner().contains("made now"), "{}", server.banner());
    assert_eq!(fs::read_to_string(directory.join("secrets.toml")).expect("kept"), secrets);
    tidegate(&setup, "call kv.get kept key").assert(0, &["value"]);
    for value in values {
        let leaks = server.banner().contains(value) || server.log().contains(value);
        assert!(!leaks, "a secret was printed");
    }
}

#[test]
fn what_the_start_says_to_try_works_as_it_stands() {
    let server = start(&unconfigured());
    let banner = server.banner();
    let lines: Vec<&str> = banner.lines().filter(|line| line.starts_with("  tidegate ")).collect();
    assert_eq!(lines.len(), 4, "{banner}");
    for line in lines {
        // Its visitors need not stay as long as for people.
        let line = line.replace("tidegate demo", "tidegate demo --seconds 1");
        let ran = bash(server.setup(), &line);
        assert!(ran.code == Some(0) && !ran.out.is_empty(), "{line}: {ran:?}");
    }
}

#[test]
fn secrets_that_others_can_read_are_refused() {
    let server = start(&unconfigured());
    let (setup, directory) = (server.setup().clone(), server.data_directory());
    server.terminate();
    let secrets = directory.join("secrets.toml");
    fs::set_permissions(&secrets, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let Err(Ended { status, log }) = setup.try_start() else { panic!("secrets that are open to others") };
    assert_eq!(status.code(), Some(78), "{log}");
    assert!(log.contains("secrets.toml") && log.contains("chmod 600"), "{log}");
    tidegate(&setup, "check").assert(78, &["secrets.toml", "chmod 600"]);
    tidegate(&setup, "call kv.get kept key").assert(2, &["secrets.toml", "chmod 600"]);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}
